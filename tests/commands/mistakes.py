"""Mistakes by name: a command line, its exit status, and what the one line on stderr says.

The files that they name are made by mistaken_files.py.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from tests.commands.mistaken_files import SMALL


@dataclass(frozen=True)
class Mistake:
    """A command that cannot work; `without` is a package that is not installed."""

    name: str
    command: str
    said: str  # a regular expression
    status: int = 2
    without: str = ""

    @property
    def words(self) -> list[str]:
        return shlex.split(self.command)


SMOKE = "train moons-cll --budget smoke"
FOLDER = "train folder --budget smoke --set data.root="
SWEEP = "sweep moons-cll --budget smoke"
ARRAYS = (
    f"{SMOKE} --set train.batch_size=5 --set train.validate_every=0 --set certify.splits=[train] "
    "--set 'data={name: arrays, path: PATH}'"
)


def settings(*found: tuple[str, str]) -> list[Mistake]:
    """Settings of `--set` that no recipe can have."""
    return [
        Mistake(f"set {setting}", f"{SMOKE} --set {shlex.quote(setting)}", said) for setting, said in found
    ]


def arrays(name: str, said: str) -> Mistake:
    return Mistake(f"arrays {name}", ARRAYS.replace("PATH", name), said)


USAGE = [
    Mistake("unknown command", "fly", "No such command 'fly'"),
    Mistake("unknown command of a group", "data fly", "No such command 'fly'"),
    Mistake("unknown option of lipcert", "--fly", "No such option: --fly"),
    Mistake("unknown option", "train moons-cll --epochs 3", "No such option: --epochs"),
    Mistake("missing recipe", "train", "Missing argument 'RECIPE...'"),
    Mistake("missing model", "certify", "Missing argument"),
    Mistake("missing certificate", "verify", "Missing argument"),
    Mistake("missing image", "predict net.safetensors", "Missing argument 'IMAGE_OR_DIR...'"),
    Mistake("missing file", "export run", "Missing argument 'FILE'"),
    Mistake("missing reproduction", "reproduce", "Missing argument"),
    Mistake("missing runs", "report", "Missing argument"),
    Mistake("missing values of a sweep", SWEEP, "Missing option '--over'"),
    Mistake("missing data set", "data fetch", "Missing argument"),
    Mistake("one argument too many", "certify run run", r"unexpected extra argument\(s\) \(run\)"),
    Mistake("an argument of the doctor", "doctor now", r"unexpected extra argument\(s\) \(now\)"),
    Mistake("text for a number", f"{SMOKE} --nodes x", "'--nodes'"),
    Mistake("text for jobs", f"{SWEEP} --over seed=1 --jobs x", "'--jobs'"),
    Mistake("text for a radius", "predict net.safetensors photo.png --abstain-below x", "'--abstain-below'"),
    Mistake("port too large", "explore run --port 70000", "'--port'.* 65535"),
    Mistake("missing file to check", "check", "Missing argument 'FILE'"),
    Mistake("file to check that is gone", "check gone.py", "gone.py: no such Python file"),
    Mistake("module to check that is gone", "check no.such.module", "no.such.module: no such module"),
    Mistake("checks into a directory", "check gone.py --output run", "run: expected the name of a file"),
    Mistake("missing name of a new file", "new loss", "Missing argument 'NAME'"),
    Mistake("new file of no kind", "new los mine", "KIND: expected one of attack, .*did you mean loss"),
    Mistake("name of a new file", "new loss 3x", "NAME: expected letters and digits, .*got '3x'"),
    Mistake("new loss of lipcert's name", "new loss cll", "NAME: .* cll: lipcert has a loss of this name"),
    Mistake("new layer of lipcert's name", "new layer MinMax", "lipcert has a layer of this name"),
    Mistake("new file named as Python's word", "new loss lambda", "lambda, which is a word of Python"),
    Mistake("new file named as an import", "new layer constant", "the file imports under this name"),
    Mistake("new file that hides a module", "new data json", "json.py would hide the installed module json"),
    Mistake(
        "new file that is no Python", "new loss mine --output mine.txt", "expected a file that ends in .py"
    ),
    Mistake("unknown data set to fetch", "data fetch mnist", "mnist.* expected one of cifar10, cifar100"),
    Mistake("unknown kind", "list unicorns", "list: .*unicorns"),
    Mistake("unknown loss", "list losses hope", "hope"),
    Mistake("unknown layer", "list layers hope", "hope"),
]

RECIPES = [
    Mistake("unknown recipe", "train no-such-recipe", "no-such-recipe"),
    Mistake("empty recipe name", "train ''", "''"),
    Mistake("missing file of a recipe", "train gone.yaml", r"gone.yaml: cannot be read \(No such file"),
    Mistake("folder for a recipe", "train folder.yaml", r"folder.yaml: cannot be read \(Is a directory\)"),
    Mistake("binary recipe", "train binary.yaml", "binary.yaml: not a text file"),
    Mistake("recipe cut short", "train cut.yaml", r"cut.yaml: not YAML \(line 1"),
    Mistake("recipe of words", "train words.yaml", "expected keys and values .*found str"),
    Mistake("empty recipe", "train empty.yaml", "expected keys and values .*found nothing"),
    Mistake("recipe that is a list", "train list.yaml", "expected keys and values .*found list"),
    Mistake("recipe that extends itself", "train loop.yaml", "loop.yaml: extends itself"),
    Mistake("recipe that extends nothing", "train heir.yaml", "heir.yaml: extends: .*no-such-recipe"),
    Mistake("recipe that extends a number", "train number.yaml", "extends: expected the name .*got 3"),
    Mistake("recipe without data", "train claim.yaml", "claim.yaml: data: missing"),
    Mistake("recipe with code", "train python.yaml", "python.yaml: not YAML"),
    Mistake("key twice", "train twice.yaml", r"not YAML \(line 3, the key seed comes twice\)"),
    Mistake("recipe nested too deeply", "train deep.yaml", "deep.yaml: not YAML .nested too deeply"),
    Mistake("budgets that are a list", "train budgets.yaml", r"budgets: expected keys and values, got \[1\]"),
    Mistake(
        "budget that is a number", "train budget.yaml --budget tiny", "budgets.tiny: expected keys .*got 3"
    ),
    Mistake(
        "value of a budget",
        "train budgetkey.yaml --budget tiny",
        "train.epochs: expected a number > 0, got 0",
    ),
    Mistake("key that is a number", "train intkey.yaml", "intkey.yaml: 3"),
    Mistake("recipe named outside", "train outside.yaml", "name: expected a name .*got '../../outside'"),
    Mistake("unknown budget", "train moons-cll --budget huge", "huge.* full, cpu, smoke"),
    Mistake(
        "recipe of the run is no recipe", f"{SMOKE} --output bad-recipe --resume", "bad-recipe/recipe.yaml"
    ),
    Mistake(
        "recipe of the run is binary", f"{SMOKE} --output binary-recipe --resume", "--overwrite begins anew"
    ),
]

SETTINGS = [
    *settings(
        ("nonsense", "--set nonsense: expected key=value"),
        ("=3", "--set =3: expected key=value"),
        ("..=3", "--set ..=3: expected key=value"),
        ("train.=3", "--set train.=3: expected key=value"),
        ("a.b=[1", r"--set a.b=\[1: the value is not YAML"),
        ("bogus=1", "bogus"),
        ("train.epoch=3", "train.epoch"),
        ("train.epochs=many", "train.epochs: expected a whole number, got 'many'"),
        ("train.epochs=0", "train.epochs: expected a number > 0, got 0"),
        ("train.epochs=2.5", "train.epochs: expected a whole number, got 2.5"),
        ("train.epochs=1e30", r"train.epochs: expected a whole number, got 1e\+30"),
        ("train.epochs=yes", "train.epochs: expected a number, got True"),
        ("train.dtype=float16", "train.dtype: expected one of 'float32', 'float64', got 'float16'"),
        ("train.batch_size=2001", "train.batch_size: 2001 is larger than the 2000"),
        ("train.threads=0", "train.threads: expected a number > 0, got 0"),
        ("train.ema=1", "train.ema: expected a number < 1.0, got 1"),
        ("train.compile=maybe", "train.compile: expected true or false, got 'maybe'"),
        (
            "train.estimate=lanczos",
            "train.estimate: expected one of 'krylov', 'power', 'block', got 'lanczos'",
        ),
        ("train.augment=standard", "train.augment: expected keys and values, got 'standard'"),
        ("train.augment={name: paint}", "train.augment.name: .*paint"),
        ("train.augment={crop: 4}", "train.augment, .* are for uint8 images"),
        ("train.validate_every=-1", "train.validate_every: expected a number >= 0, got -1"),
        ("train=null", "train: missing"),
        ("loss=3", "loss: expected keys and values, got 3"),
        ("loss.name=nll", "loss.name: .*nll"),
        ("loss.name=[1]", r"loss.name: expected a text, got \[1\]"),
        ("loss.slak=0.1", "loss.slak"),
        ("loss.slack=0.75", "loss.slack: expected between 0 and 0.5, got 0.75"),
        ("loss.slack=abc", "loss.slack: expected a number, got 'abc'"),
        ("loss.eps=-1", "loss.eps: expected a number > 0, got -1.0"),
        ("loss.eps=", "loss.eps: missing"),
        ("loss.eps=yes", "loss.eps: expected a number, got True"),
        ("loss.sides=three", "loss.sides: expected one of 'one', 'two', got 'three'"),
        ("model.name=resnet", "model.name: .*resnet"),
        ("model.name=4c3f", r"model.input_shape: expected \(channels, height, width\), got \(2,\)"),
        ("model.widths=wide", "model.widths: expected a list, got 'wide'"),
        ("model.widths=3", "model.widths: expected a list, got 3"),
        ("model.widths=[3]", r"model.widths: expected even numbers >= 2 .*got \[3\]"),
        ("model.widths=[1000000000]", "model: the weights need .* GB.* choose smaller sizes"),
        ("model.widths=[1e30]", "model.widths"),
        ("data.train=1000000000000", "data.train: expected at most 100,000,000 points"),
        ("data.name=mnist", "data.name: .*mnist"),
        ("data.train=1", "data.train: expected at least 2 points, got 1"),
        ("data.noise=-1", "data.noise: expected a radius >= 0, got -1.0"),
        ("data.val=0", "train.validate_every: expected 0, got 2"),
        ("optimizer.lr=-1", "optimizer.lr: expected a number > 0, got -1.0"),
        ("optimizer.name=lion", "optimizer.name: .*lion"),
        ("optimizer.no_decay=3", "optimizer.no_decay: expected a list, got 3"),
        ("optimizer.no_decay=[bias9]", "optimizer.no_decay: no parameter matches 'bias9'; the model has"),
        ("schedule=3", "schedule: expected keys and values, got 3"),
        ("schedule.loss.slack.name=wavy", "schedule.loss.slack.name: .*wavy"),
        ("schedule.loss.slack.gamma=x", "schedule.loss.slack.gamma: expected a number, got 'x'"),
        ("schedule.optimizer.lr.at=[400]", r"schedule.optimizer.lr.at: expected a fraction .*got 400.0"),
        ("schedule.loss.eps={name: linear, end: 0}", "schedule.loss.eps: is impossible at the end"),
        ("schedule.optimizer.lr={name: linear, end: -1}", "schedule.optimizer.lr: expected a number >= 0"),
        ("schedule.loss.sides.name=cosine", "schedule.loss.sides: expected a number of the loss"),
        ("schedule.model.widths.name=cosine", "schedule.model.widths: expected a number of the loss"),
        ("certify.radii=0.1", "certify.radii: expected a list, got 0.1"),
        ("certify.radii=[]", r"certify.radii: expected at least 1 of them, got \[\]"),
        ("certify.radii=[-1]", r"certify.radii: expected radii > 0, got \[-1.0\]"),
        ("certify.splits=[dev]", "certify.splits.0: expected one of 'train', 'val', 'test', got 'dev'"),
        ("certify.rounding=up", "certify.rounding: expected one of .*got 'up'"),
        ("certify.tightness=huge", "certify.tightness: expected one of .*got 'huge'"),
        ("seed=-1", "seed: expected a number >= 0, got -1"),
        ("seed=one", "seed: expected a whole number, got 'one'"),
        ("seed=99999999999999999999", "seed: expected a number < 4294967296"),
        ("name=a/b", "name: expected a name for a directory, without /, got 'a/b'"),
        ("name=''", "name: expected a name for a directory, .*got ''"),
        ("start=nowhere", "nowhere: no such run directory"),
        ("start=net.safetensors", "start: net.safetensors: its weights do not fit"),
    ),
]

PLACES = [
    Mistake("output is a file", f"{SMOKE} --output file", "file: .*file"),
    Mistake("output below a file", f"{SMOKE} --output file/run", "file/run: .*Not a directory"),
    Mistake("output holds other files", f"{SMOKE} --output taken", "taken: .*--output chooses another place"),
    Mistake("output holds a run", f"{SMOKE} --output run", "run: .*--resume continues it"),
    Mistake("output has an impossible name", f"{SMOKE} --output {'x' * 300}", "File name too long"),
    Mistake("both ways to go on", f"{SMOKE} --output run --resume --overwrite", "--resume: .*--overwrite"),
    Mistake(
        "another recipe resumed", f"{SMOKE} --output run --resume", "cannot resume, the recipe differs in"
    ),
    Mistake(
        "checkpoint of another program",
        f"{SMOKE} {' '.join(f'--set {setting}' for setting in SMALL)} --output bad-checkpoint --resume",
        "last.ckpt: cut short, or not a lipcert checkpoint; remove it",
    ),
    Mistake(
        "output of a stack is a file", f"{SMOKE} --stack seed=1..2 --output file", "file/moons-cll-seed1"
    ),
    Mistake("output of a figure is a file", "reproduce fig-calibration --output file", "file: .*written"),
    Mistake("output of a sweep is a file", f"{SWEEP} --over seed=1 --output file", "file: .*written"),
    Mistake(
        "output of a sweep is broken", f"{SWEEP} --over seed=1 --output bad-sweep", "bad-sweep/sweep.json"
    ),
    Mistake(
        "output holds another sweep", f"{SWEEP} --over seed=2 --output sweep", "sweep: holds another sweep"
    ),
    Mistake("ending of a report", "report run -o report.pdf", r"--output report.pdf: expected .*\.html"),
    Mistake("no name for a report", "report run -o ''", "--output .: expected a name that ends in .html"),
    Mistake("ending of an export", "export run model.txt", r"model.txt: expected a name that ends in \.onnx"),
    Mistake(
        "folder for CSV",
        "predict net.safetensors photo.png --csv nothing",
        "--csv: expected a file .*nothing",
    ),
    Mistake("no folder for CSV", "predict net.safetensors photo.png --csv gone/a.csv", "--csv: .*gone/a.csv"),
    Mistake("two formats", "predict net.safetensors photo.png --csv - --json", "--csv: expected one format"),
]

DATA = [
    Mistake("no folder of images", f"{FOLDER}gone", "data.root: .*gone: no such folder"),
    Mistake("file for a folder", f"{FOLDER}photo.png", "data.root: .*photo.png: no such folder"),
    Mistake("empty folder", f"{FOLDER}nothing", "data: nothing: expected one subfolder per class .*found 0"),
    Mistake(
        "one class", f"{FOLDER}single-class", r"expected one subfolder per class \(at least 2\), found 1"
    ),
    Mistake("classes without images", f"{FOLDER}void", "data: void: no images of 2 of 2 classes"),
    Mistake("a class without images", f"{FOLDER}half", r"data: half: no images of 1 of 2 classes \(dogs\)"),
    Mistake("unreadable image", f"{FOLDER}unreadable", "data: unreadable/cats/0.png: not a readable image"),
    Mistake("image of 16 bits", f"{FOLDER}deep-pixels", "deep-pixels/cats/0.png: more than 8 bits"),
    Mistake("class with one image", f"{FOLDER}one-image", "data.test: class 0 has a single sample"),
    Mistake("class of the test alone", f"{FOLDER}splits", "splits/test: class 'birds' is not among"),
    Mistake("images without pixels", f"{FOLDER}photos --set data.size=0", "data.size: expected from 1 to"),
    Mistake(
        "huge images", f"{FOLDER}photos --set data.size=100000", "data.size: expected from 1 to 4096 .*100000"
    ),
    Mistake(
        "share of validation",
        f"{FOLDER}photos --set data.val=2",
        "data.val: expected a share between 0 and 1",
    ),
    Mistake(
        "share of the test", f"{FOLDER}photos --set data.test=-1", "data.test: expected a share .*got -1.0"
    ),
    Mistake("no CIFAR", "train cifar10-4c3f-cll --set data.root=nothing", "`lipcert data fetch cifar10`"),
    Mistake("CIFAR cut short", "train cifar10-4c3f-cll --set data.root=cifar", "data_batch_1.bin: cut short"),
    arrays("gone.npz", "data.path: .*gone.npz: no such file; expected an .npz file"),
    arrays("poem.npz", "data.path: poem.npz: expected an .npz file"),
    arrays("photos", "data.path: photos: expected an .npz file"),
    arrays("alone.npy", "data.path: alone.npy: expected an .npz file .*found a single array"),
    arrays("objects.npz", "data.path: objects.npz: expected an .npz file .*without objects"),
    arrays("unnamed.npz", "unnamed.npz: expected x and y, or x_train and y_train, found a"),
    arrays("floats.npz", r"floats.npz: expected whole-number labels \(n,\)"),
    arrays("short.npz", "data: expected 30 int64 labels, got .29"),
    arrays("negative.npz", "negative.npz: expected labels from 0 on, got -1"),
    arrays("nan.npz", "data: expected finite samples, got NaN or infinity"),
    arrays("one-class.npz", "data: expected at least 2 classes, got 1"),
    arrays("channels-last.npz", r"images of shape \(8, 8, 3\): expected channels first"),
    arrays("texts.npz", "texts.npz: x: expected numbers, got <U1"),
    arrays("complex.npz", "complex.npz: x: expected real numbers, got torch.complex128"),
    arrays("no-samples.npz", r"data: expected samples of shape \(n, ...\), n > 0"),
    Mistake(
        "too few names of classes", f"{ARRAYS.replace('PATH', 'good.npz')} --set data.classes=[a]", "classes"
    ),
]

STACKS = [
    Mistake("stack without values", f"{SMOKE} --stack seed", "--stack: expected KEY=VALUES .*got 'seed'"),
    Mistake("stack of nothing", f"{SMOKE} --stack seed=", "--stack: expected KEY=VALUES"),
    Mistake("stack of a range backwards", f"{SMOKE} --stack seed=3..1", "--stack: expected KEY=VALUES"),
    Mistake("stack of one value twice", f"{SMOKE} --stack seed=1,1", "--stack: seed has a value twice"),
    Mistake("stack of one key twice", f"{SMOKE} --stack seed=1 --stack seed=2", "--stack: seed comes twice"),
    Mistake("stack of texts", f"{SMOKE} --stack seed=one", "seed: expected a whole number, got 'one'"),
    Mistake("stack of rates", f"{SMOKE} --stack optimizer.lr=0.1,0.2", "--stack: .* differ in optimizer"),
    Mistake("stack of an unknown key", f"{SMOKE} --stack bogus=1", "bogus"),
    Mistake("stack of two models", f"{SMOKE} moons-soc", "moons-cll and moons-soc differ in model"),
    Mistake("stack of a recipe twice", f"{SMOKE} moons-cll", "--stack: moons-cll comes twice"),
    Mistake(
        "stack on two devices", f"{SMOKE} --stack seed=1..2 --devices 2", "--stack: trains in one process"
    ),
    Mistake(
        "stack of a huge range", f"{SMOKE} --stack seed=1..999999999", "expected a range of at most 100,000"
    ),
    Mistake("no devices", f"{SMOKE} --devices 0", "--devices: expected a number > 0 or auto, got '0'"),
    Mistake(
        "many devices", f"{SMOKE} --devices many", "--devices: expected a number > 0 or auto, got 'many'"
    ),
    Mistake("no nodes", f"{SMOKE} --nodes 0", "--nodes: expected at least 1, got 0"),
    Mistake(
        "float16 without an accelerator", f"{SMOKE} --precision 16-mixed", "16-mixed: needs an accelerator"
    ),
    Mistake("unknown precision", f"{SMOKE} --precision 8", "--precision: expected one of .*got '8'"),
]

SWEEPS = [
    Mistake("sweep without values", f"{SWEEP} --over loss.eps", "--over: expected KEY=VALUES"),
    Mistake("sweep of nothing", f"{SWEEP} --over loss.eps=", "--over: expected KEY=VALUES"),
    Mistake("sweep without a key", f"{SWEEP} --over =1", "--over: expected KEY=VALUES"),
    Mistake("sweep of an unknown key", f"{SWEEP} --over loss.epsilon=1", "loss.epsilon"),
    Mistake("sweep of one value twice", f"{SWEEP} --over seed=1,1", "--over: seed has a value twice"),
    Mistake("sweep of one key twice", f"{SWEEP} --over seed=1 --over seed=2", "--over: seed comes twice"),
    Mistake(
        "sweep of equal numbers", f"{SWEEP} --over loss.eps=0.1,0.10", "--over: .* are the same training"
    ),
    Mistake("sweep of impossible values", f"{SWEEP} --over loss.eps=-1", "loss.eps: expected a number > 0"),
    Mistake("sweep of half a value", f"{SWEEP} --over 'loss={{name: gloro'", "the value is not YAML"),
    Mistake(
        "unknown backend", f"{SWEEP} --over seed=1 --backend slurm", "--backend: expected one of local, ray"
    ),
    Mistake(
        "address without Ray", f"{SWEEP} --over seed=1 --address there:1", "--address: is for --backend ray"
    ),
    Mistake("no jobs", f"{SWEEP} --over seed=1 --jobs 0", "--jobs: expected at least 1, got 0"),
    Mistake("no Ray", f"{SWEEP} --over seed=1 --backend ray", r"pip install 'lipcert\[ray\]'", without="ray"),
    Mistake("unknown recipe of a sweep", "sweep no-such-recipe --over seed=1", "no-such-recipe"),
    Mistake("unknown reproduction", "reproduce fig-1000", "fig-1000"),
    Mistake("text for seeds", "reproduce moons --seeds one", "--seeds: expected something like .*got 'one'"),
    Mistake(
        "seed twice", "reproduce moons --seeds 1,1", "--seeds: expected different numbers >= 0, got '1,1'"
    ),
    Mistake("no seeds", "reproduce moons --seeds ''", "--seeds: expected"),
    Mistake("no jobs for a figure", "reproduce moons --jobs 0 --budget smoke", "--jobs: expected at least 1"),
    Mistake("unknown budget of a figure", "reproduce moons --budget huge", "full, cpu, smoke, got .huge"),
    Mistake(
        "key that the figure sets", "reproduce grid --set loss.eps=0.3", "--set loss.eps: grid sets it itself"
    ),
    Mistake(
        "setting of a figure", "reproduce moons --set train.epochs=0", "train.epochs: expected a number > 0"
    ),
]

MODELS = [
    Mistake("no such model", "certify nowhere", "nowhere: no such run directory or .safetensors file"),
    Mistake("folder without a model", "certify nothing", "nothing: no model.safetensors in this directory"),
    Mistake("unfinished run", "certify no-model", r"no-model: .*\(is the run finished\?\)"),
    Mistake(
        "model cut short", "inspect cut.safetensors", "cut.safetensors: not a safetensors file, or cut short"
    ),
    Mistake("poem for a model", "inspect poem.safetensors", "poem.safetensors: not a safetensors file"),
    Mistake("image for a model", "inspect photo.png", "photo.png: not a safetensors file"),
    Mistake("model of another library", "inspect foreign.safetensors", "expected a file written by lipcert"),
    Mistake("model without a card", "inspect no-card.safetensors", "its model card cannot be read"),
    Mistake(
        "model of another version", "inspect version.safetensors", "written by another version of lipcert"
    ),
    Mistake("unknown architecture", "inspect architecture.safetensors", "architecture.safetensors: .*vgg"),
    Mistake("weights of another width", "inspect wider.safetensors", "the weights do not fit a 4c3f: 0.bias"),
    Mistake("arguments of another model", "inspect arguments.safetensors", "no 4c3f can be made .*depth"),
    Mistake("replaced weights", "inspect replaced", "the weights are not those of the certificate"),
    Mistake("broken recipe of a run", "certify bad-recipe", r"bad-recipe/recipe.yaml: not YAML \(line 1"),
    Mistake(
        "broken certificate of a run", "inspect bad-certificate", "certificate.json: cut short, or not JSON"
    ),
    Mistake(
        "unknown split", "certify run --split dev", "--split: expected one of train, val, test, got 'dev'"
    ),
    Mistake(
        "unknown rounding",
        "certify run --rounding up",
        "--rounding: expected one of float64, float32, ignored",
    ),
    Mistake("unknown effort", "certify run --effort much", "--effort: expected one of auto, exact, fast"),
    Mistake("text for radii", "certify run --radii x", "--radii: expected a number .*got 'x'"),
    Mistake("negative radius", "certify run --radii -1", "--radii: expected numbers > 0, got '-1'"),
    Mistake("no radii", "certify run --radii ''", "--radii: expected a number .*got ''"),
    Mistake("model file without data", "certify net.safetensors", "net.safetensors: .*give --data"),
    Mistake("data of another shape", "certify net.safetensors --data moons", r"made for inputs \(3, 8, 8\)"),
    Mistake("data without a place", "certify net.safetensors --data folder", "folder: expected root as well"),
    Mistake("unknown data", "certify net.safetensors --data mnist", "mnist"),
    Mistake("no shape", "inspect own.py:linear", "--input-shape: a model of your own needs one"),
    Mistake(
        "text for a shape",
        "inspect own.py:linear --input-shape x",
        "--input-shape: expected positive numbers .*'x'",
    ),
    Mistake("shape of another model", "inspect own.py:linear --input-shape 3", "input_shape: .*cannot take"),
    Mistake(
        "negative shape",
        "inspect own.py:linear --input-shape -2",
        "--input-shape: expected positive numbers .*'-2'",
    ),
    Mistake("shape of a run", "inspect run --input-shape 3", r"--input-shape: run is made for \(2,\)"),
    Mistake("layer without a rule", "inspect own.py:Sorts --input-shape 2", "no Lipschitz rule", status=1),
    Mistake(
        "layer without a bound", "inspect own.py:odd --input-shape 2", "LayerNorm.* use BatchNorm", status=1
    ),
    Mistake("number for a model", "inspect own.py:number --input-shape 2", "returns one, found int"),
    Mistake("own model without data", "certify own.py:linear", "--data: a model of your own needs data"),
    Mistake(
        "own model, no such data", "certify own.py:linear --data mnist", "--data: expected one of .*mnist"
    ),
    Mistake(
        "own model of another shape",
        "certify own.py:linear --data photos --input-shape 3,8,8",
        "input_shape: .*cannot take",
    ),
    Mistake("own model on images", "certify own.py:linear --data photos", "--input-shape: photos/ needs one"),
    Mistake(
        "own model on oblong images",
        "certify own.py:linear --data photos --input-shape 3,8,9",
        "--input-shape: expected 3,H,H or 1,H,H",
    ),
    Mistake(
        "own model on a missing part",
        "certify own.py:linear --data splits --input-shape 3,8,8 --split val",
        "--split: splits has the parts test, train, got 'val'",
    ),
    Mistake(
        "own model without weights",
        "certify own.py:linear --data moons --weights gone.pt",
        "gone.pt: no such",
    ),
    Mistake("weights of a run", "certify run --weights net.pt", "--weights: only for a model of your own"),
    Mistake("shape of a certified run", "certify run --input-shape 2", "--input-shape: only for a model of"),
    Mistake(
        "weights of a certificate", "verify run --weights net.pt", "--weights: only for a model of your own"
    ),
    Mistake("weights of an inspected run", "inspect run --weights net.pt", "--weights: only for a model of"),
    Mistake("weights of an attacked run", "attack run --weights net.pt", "--weights: only for a model of"),
    Mistake(
        "nothing of this name",
        "inspect own.py:gone --input-shape 2",
        "expected a module or a function 'gone'",
    ),
    Mistake("model that fails", "inspect own.py:fails --input-shape 2", "own.py:fails: KeyError: 'broken'"),
    Mistake(
        "model that ends the process", "inspect own.py:leaves --input-shape 2", "own.py:leaves: SystemExit"
    ),
    Mistake("estimate of no recipe", "estimate moons-ccl", "did you mean moons-cll"),
    Mistake("estimate of no device", "estimate moons-cll --device gpu", "--device"),
    Mistake("import of no file", "list losses --import none.py", "none.py: no such Python file"),
    Mistake("file that ends the process", "inspect exits.py:x --input-shape 2", "exits.py: SystemExit"),
    Mistake("file that is no Python", "inspect syntax.py:x --input-shape 2", "syntax.py: SyntaxError"),
    Mistake("no such Python file", "inspect gone.py:x --input-shape 2", "gone.py: no such Python file"),
]

CERTIFICATES = [
    Mistake("name of a certificate mistyped", "verify moon-cll", r"did you mean moons-cll\?"),
    Mistake("no such certificate", "verify gone.json run", "gone.json: cannot be read .No such file"),
    Mistake(
        "run without a certificate",
        "verify no-certificate",
        "no-certificate/certificate.json: cannot be read",
    ),
    Mistake("image for a certificate", "verify photo.png run", "photo.png: cut short, or not JSON"),
    Mistake("empty certificate", "verify empty.json run", "empty.json: cut short, or not JSON"),
    Mistake("binary certificate", "verify binary.json run", "binary.json: cut short, or not JSON"),
    Mistake("certificate that is a list", "verify list.json run", "list.json: not a lipcert certificate"),
    Mistake("certificate nested too deeply", "verify deep.json run", "deep.json: nested too deeply"),
    Mistake("key of a certificate twice", "verify twice.json run", "twice.json: the key a occurs twice"),
    Mistake("unknown key of a certificate", "verify unknown-key.json run", r"\(extra: unknown key\)"),
    Mistake("certificate of NaN", "verify nan.json run", "nan.json: expected finite numbers, got NaN"),
    Mistake(
        "old certificate", "verify old.json run", "old.json: of format 1, expected 2; .*`lipcert certify`"
    ),
    Mistake(
        "certificate of no splits", "verify no-splits.json run", "no-splits.json: not a lipcert certificate"
    ),
    Mistake("certificate of unknown data", "verify unknown-data.json run", "mnist.*--bounds-only"),
    Mistake("certificate of no data", "verify no-data.json run", "data.name: missing"),
    Mistake("certificate for another model", "verify run net.safetensors", r"made for inputs \(3, 8, 8\)"),
    Mistake("certificate for no model", "verify run nowhere", "nowhere: no such run directory"),
    Mistake("data that is not read", "verify run --data photos", "--data: expected none, because moons"),
    Mistake("data for bounds", "verify run --bounds-only --data photos", "--bounds-only: .*leave out --data"),
]

USES = [
    Mistake("tightness of nothing", "tightness nowhere", "nowhere: .*give a run directory"),
    Mistake("tightness of a name", "tightness moons-cll", "moons-cll: .*give a run directory"),
    Mistake("tightness of an unfinished run", "tightness no-model", "no-model: no model.safetensors"),
    Mistake(
        "tightness that is damaged", "tightness bad-tightness --budget smoke", "bad-tightness/tightness.json"
    ),
    Mistake(
        "budget of tightness", "tightness run --budget huge", "--budget: expected one of full, cpu, smoke"
    ),
    Mistake("attack on nothing", "attack nowhere", "nowhere: no such run directory"),
    Mistake("budget of an attack", "attack run --budget huge", "--budget: expected one of full, cpu, smoke"),
    Mistake("radii of an attack", "attack run --radii x", "--radii: expected a number"),
    Mistake("split of an attack", "attack run --split dev", "--split: expected one of train, val, test"),
    Mistake(
        "prediction of nothing", "predict net.safetensors gone.png", "gone.png: no such file or directory"
    ),
    Mistake("prediction of a text", "predict net.safetensors text.png", "text.png: not a readable image"),
    Mistake(
        "prediction of a folder", "predict net.safetensors nothing", "nothing: no images in this directory"
    ),
    Mistake(
        "image for points", "predict moons-cll photo.png", r"takes inputs of shape \(2,\), not grey or RGB"
    ),
    Mistake(
        "negative radius to abstain",
        "predict net.safetensors photo.png --abstain-below -1",
        "--abstain-below: expected a radius >= 0, got -1.0",
    ),
    Mistake("export of nothing", "export nowhere model.onnx", "nowhere: no such run directory"),
    Mistake("export without ONNX", "export run model.onnx", r"pip install 'lipcert\[onnx\]'", without="onnx"),
    Mistake(
        "hub without its package",
        "inspect hf://me/moons",
        r"hf://me/moons: huggingface_hub is missing; pip install 'lipcert\[hub\]' brings it",
        without="huggingface_hub",
    ),
    Mistake(
        "published without the package of the hub",
        "publish run new",
        r"publish: huggingface_hub is missing; pip install 'lipcert\[hub\]' brings it",
        without="huggingface_hub",
    ),
    Mistake("published without a run", "publish net.safetensors new", "expected a run directory, which has"),
    Mistake("published unfinished", "publish no-certificate new", r"no certificate\.json in it"),
    Mistake("published over other files", "publish run taken", "taken: holds other files"),
    Mistake("published into itself", "publish run run --overwrite", "run: holds the run itself"),
    Mistake("page without Gradio", "explore run", r"pip install 'lipcert\[explore\]'", without="gradio"),
    Mistake("report of nothing", "report nowhere", "nowhere: no such directory"),
    Mistake("report of a file", "report file", "file: no such directory"),
    Mistake("report of a folder", "report nothing", "nothing: neither a run .* nor a sweep"),
    Mistake("report of a run twice", "report run run", "a directory is named twice"),
    Mistake("report of an unfinished run", "report no-certificate", r"\(is the run finished\?\)"),
    Mistake(
        "report of a sweep that has not begun", "report sweep", "nothing in these sweeps is finished yet"
    ),
    Mistake(
        "report of a broken sweep", "report bad-sweep", "bad-sweep/sweep.json: cannot be read as a sweep"
    ),
    Mistake("report of an uneven sweep", "report uneven-sweep", "uneven-sweep/sweep.json: cannot be read"),
    Mistake(
        "report of a broken certificate", "report bad-certificate", "certificate.json: cut short, or not JSON"
    ),
    Mistake("report of broken samples", "report bad-samples", "bad-samples/certified.npz: "),
    Mistake("report without samples", "report no-samples", "no-samples/certified.npz: cannot be read"),
    Mistake("report of broken metrics", "report bad-metrics", "bad-metrics/metrics.jsonl: cannot be read"),
    Mistake(
        "report of binary metrics", "report binary-metrics", "binary-metrics/metrics.jsonl: cannot be read"
    ),
    Mistake(
        "report without Plotly", "report run", r"pip install 'lipcert\[report\]'", without="plotly.offline"
    ),
]

MISTAKES = [
    *USAGE,
    *RECIPES,
    *SETTINGS,
    *PLACES,
    *DATA,
    *STACKS,
    *SWEEPS,
    *MODELS,
    *CERTIFICATES,
    *USES,
]
