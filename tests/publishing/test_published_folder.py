"""A published folder has what a user needs and nothing else; any other content is refused by name."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import safetensors.torch
import torch
import yaml
from huggingface_hub import ModelCard

import lipcert
from lipcert import extensions
from lipcert.atomic import write_json
from lipcert.certificates.statement import DataSource, read_certificate
from lipcert.commands.support.registries import KINDS
from lipcert.commands.work.certify_model import verify_file
from lipcert.data.examples import write_folder
from lipcert.errors import InputError
from lipcert.models.manifest import FILES, MANIFEST, read_manifest, write_manifest
from lipcert.models.model_names import model_place
from lipcert.publishing import publish, published_folder
from lipcert.publishing.portable import portable_data
from lipcert.recipes import execute, read_recipe
from lipcert.runs import Run

Cli = Callable[..., tuple[int, str, str]]

SMALL = ("train.epochs=1", "data.val=100", "model.widths=[4]")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run that holds more than is published."""
    place = tmp_path_factory.mktemp("runs") / "run"
    execute(read_recipe("moons-cll", "smoke", SMALL), place)
    (place / "notes.txt").write_text("a secret", encoding="utf-8")
    (place / "figures").mkdir(exist_ok=True)
    (place / "figures" / "draft.png").write_bytes(b"a picture")
    (place / "certificate-test.json").write_text("{}", encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def original(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published") / "model"
    publish(str(run), folder)
    return folder


@pytest.fixture
def published(original: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(original, tmp_path / "model"))


def files_in(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


def test_a_folder_holds_its_files_and_no_other(run: Path, published: Path) -> None:
    assert (run / "checkpoints" / "last.ckpt").is_file()
    assert files_in(published) == {*FILES, MANIFEST}
    manifest = read_manifest(published)
    assert list(manifest.files) == list(FILES)
    for name, record in manifest.files.items():
        content = (published / name).read_bytes()
        assert (record.bytes, record.sha256) == (len(content), hashlib.sha256(content).hexdigest())


def test_model_and_certificate_are_the_same_to_the_bit(run: Path, published: Path) -> None:
    x = torch.randn(64, 2)
    ours, theirs = lipcert.load(run), lipcert.load(published)
    assert torch.equal(ours(x), theirs(x))
    before, after = lipcert.certify(ours, x), lipcert.certify(theirs, x)
    assert torch.equal(before.radius, after.radius)
    assert torch.equal(before.prediction, after.prediction)
    assert (published / "certificate.json").read_bytes() == (run / "certificate.json").read_bytes()
    assert (published / "model.safetensors").read_bytes() == (run / "model.safetensors").read_bytes()
    assert all(check.holds is not False and not check.is_unchecked for check in verify_file(published, None))


def test_the_page_has_metadata_and_the_counts_of_the_certificate(published: Path) -> None:
    card = ModelCard.load(published / "README.md")
    stated = read_certificate(published / "certificate.json")
    assert (card.data.library_name, card.data.pipeline_tag) == ("lipcert", "tabular-classification")
    found = {
        (r.dataset_split, r.metric_name, r.metric_type, r.metric_value, str(r.metric_args))
        for r in card.data.eval_results or []
    }
    told, kind, args = (
        "certified robust accuracy, L2 radius 0.15",
        "certified-robust-accuracy",
        {"norm": "L2", "radius": 0.15},
    )
    assert len(stated.splits) == 2
    for name, split in stated.splits.items():
        assert (name, "clean accuracy", "accuracy", split.clean.value, "None") in found
        assert (name, told, kind, split.certified[0].value, str(args)) in found
    assert len(found) == 4
    assert "lipcert verify ." in card.text
    described = json.loads((published / "config.json").read_text(encoding="utf-8"))
    assert {key: described[key] for key in ("name", "num_classes", "classes")} == {
        "name": "mlp",
        "num_classes": 2,
        "classes": stated.model.classes,
    }


@pytest.mark.parametrize("name", FILES)
def test_one_changed_byte_is_refused_by_name(name: str, published: Path) -> None:
    lipcert.load(published)
    content = bytearray((published / name).read_bytes())
    content[len(content) // 2] ^= 1
    (published / name).write_bytes(content)
    said = f"{name} is not as it was published: its SHA-256"
    for ask in (lipcert.load, model_place, lambda place: verify_file(place, None)):
        with pytest.raises(InputError, match=said):
            ask(published)
    with pytest.raises(InputError, match=said):
        lipcert.load(published / "model.safetensors")


@pytest.mark.parametrize("name", FILES)
def test_a_missing_or_cut_file_is_refused_by_name(name: str, published: Path) -> None:
    content = (published / name).read_bytes()
    (published / name).write_bytes(content[:-1])
    with pytest.raises(InputError, match=f"{name} is not as .*: expected {len(content):,} bytes, found"):
        lipcert.load(published)
    (published / name).unlink()
    with pytest.raises(InputError, match=rf"{name} cannot be read \(No such file"):
        lipcert.load(published)
    (published / name).mkdir()
    with pytest.raises(InputError, match=name):
        lipcert.load(published)


@pytest.mark.parametrize(
    "name",
    [
        "../outside.py",
        "/etc/passwd",
        "code/../../x.py",
        "code/.x.py",
        "code/a/b.py",
        "code\\x.py",
        "a\x1b[2J",
        "",
    ],
)
def test_no_name_leads_out_of_the_folder(name: str, published: Path) -> None:
    """Even where the file is there and its hash is correct."""
    (published.parent / "outside.py").write_text("", encoding="utf-8")
    tree = json.loads((published / MANIFEST).read_text(encoding="utf-8"))
    tree["files"][name] = {"bytes": 0, "sha256": hashlib.sha256(b"").hexdigest()}
    write_json(published / MANIFEST, tree)
    with pytest.raises(InputError, match=rf"{MANIFEST}: not the manifest .*or code/NAME\.py, got") as raised:
        lipcert.load(published)
    assert str(raised.value).isprintable()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": 2}, "format"),
        ({"files": {}}, "README.md is not among them"),
        ({"files": []}, "files"),
        ({"extra": 1}, "extra: unknown key"),
    ],
)
def test_a_manifest_of_another_form_is_refused(change: dict[str, object], said: str, published: Path) -> None:
    tree = json.loads((published / MANIFEST).read_text(encoding="utf-8"))
    write_json(published / MANIFEST, {**tree, **change})
    with pytest.raises(InputError, match=f"{MANIFEST}: not the manifest of a published model .*{said}"):
        lipcert.load(published)


def test_weights_that_are_not_certified_are_refused_even_with_their_hash(
    run: Path, published: Path, tmp_path: Path
) -> None:
    execute(read_recipe("moons-cll", "smoke", (*SMALL, "seed=2")), tmp_path / "other")
    shutil.copy(tmp_path / "other" / "model.safetensors", published)
    write_manifest(published, FILES)
    with pytest.raises(InputError, match="weights are not those of the certificate"):
        lipcert.load(published)
    assert [c.statement for c in verify_file(published, None) if c.holds is False][:1] == [
        "the weights are those of the certificate"
    ]


def test_a_folder_is_published_once_unless_told_otherwise(run: Path, published: Path, tmp_path: Path) -> None:
    before = {name: (published / name).read_bytes() for name in files_in(published)}
    with pytest.raises(InputError, match="holds a published model; --overwrite replaces it"):
        publish(str(run), published)
    (published / "mine.txt").write_text("kept", encoding="utf-8")
    publish(str(run), published, overwrite=True)
    assert files_in(published) == {*before, "mine.txt"}
    assert all((published / name).read_bytes() == content for name, content in before.items())

    with pytest.raises(InputError, match="holds other files"):
        publish(str(run), tmp_path, overwrite=True)
    with pytest.raises(InputError, match="holds the run itself"):
        publish(str(run), run, overwrite=True)
    with pytest.raises(InputError, match="expected a directory, found a file"):
        publish(str(run), published / "mine.txt")
    with pytest.raises(InputError, match="expected a run directory, which has recipe and certificate"):
        publish(str(run / "model.safetensors"), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_an_unfinished_or_changed_run_is_not_published(run: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    model = (copy / "model.safetensors").read_bytes()
    (copy / "model.safetensors").write_bytes(model[:-4] + b"\x00\x00\x00\x40")
    with pytest.raises(InputError, match="weights are not those of the certificate"):
        publish(str(copy), tmp_path / "new")
    (copy / "certificate.json").unlink()
    with pytest.raises(InputError, match=r"no certificate\.json in it"):
        publish(str(copy), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_an_error_leaves_nothing_behind(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(published_folder, "write_manifest", full)
    with pytest.raises(OSError, match="No space left"):
        publish(str(run), tmp_path / "above" / "new")
    assert not (tmp_path / "above").exists()


def test_nothing_is_written_into_a_published_folder(cli: Cli, published: Path) -> None:
    before = files_in(published)
    status, _, err = cli("certify", str(published), "--split", "val")
    assert status == 0, err
    assert files_in(published) == before
    assert Path("certificate.json").is_file()
    assert cli("verify", "certificate.json", str(published))[0] == 0


def test_the_command_says_what_it_wrote_and_what_is_next(cli: Cli, run: Path) -> None:
    status, out, err = cli("publish", str(run), "out", "--license", "mit")
    assert status == 0, err
    assert out.splitlines()[-1] == "next: lipcert verify out"
    assert ModelCard.load(Path("out/README.md")).data.license == "mit"
    assert cli("verify", "out")[0] == 0
    assert cli("publish", "moons-cll", "bundled")[0] == 0
    assert cli("publish", "bundled", "again")[0] == 0
    assert Path("again/certificate.json").read_bytes() == Path("bundled/certificate.json").read_bytes()


def test_no_path_of_this_machine_is_published(cli: Cli, tmp_path: Path) -> None:
    photos = tmp_path / "private" / "photos"
    write_folder(photos)
    started = tmp_path / "private" / "first"
    folder = ("--budget", "smoke", "--set", f"data.root={photos}", "--set", "train.epochs=1")
    assert cli("train", "folder", *folder, "--output", str(started))[0] == 0
    status, _, err = cli(
        "train", "folder", *folder, "--set", f"start={started}", "--output", "private/second"
    )
    assert status == 0, err
    assert "private" in Path("private/second/recipe.yaml").read_text(encoding="utf-8")

    status, _, err = cli("publish", "private/second", "out")
    assert status == 0, err
    for name in files_in(Path("out")):
        content = Path("out", name).read_bytes()
        assert str(tmp_path).encode() not in content, name
        assert b"private" not in content, name
    recipe = yaml.safe_load(Path("out/recipe.yaml").read_text(encoding="utf-8"))
    assert (recipe["data"]["root"], recipe["start"]) == ("photos", "first")
    assert read_certificate(Path("out/certificate.json")).data.model_dump()["root"] == "photos"

    status, _, err = cli("verify", "out")
    assert (status, err.count("\n")) == (2, 1)
    assert "--data names its folder" in err
    status, _, err = cli("certify", "out", "--split", "val")
    assert (status, err.count("\n")) == (2, 1)
    assert "run this in the directory that holds photos" in err
    assert cli("verify", "out", "--data", str(photos))[0] == 0
    os.chdir("private")
    assert cli("certify", "../out", "--split", "val")[0] == 0


def test_an_argument_that_names_a_place_is_refused(run: Path, tmp_path: Path) -> None:
    copy = Run(shutil.copytree(run, tmp_path / "copy"))
    tree = yaml.safe_load(copy.recipe_text())
    for place in ("/home/me/notes", "~/notes", "C:\\notes"):
        copy.recipe.write_text(yaml.safe_dump({**tree, "claim": place}), encoding="utf-8")
        with pytest.raises(InputError, match="claim: expected no place on this machine"):
            publish(str(copy.path), tmp_path / "new")
    assert not (tmp_path / "new").exists()


OWN = '''
"""A model of one's own."""
from torch import nn
from lipcert.models import MODELS
from lipcert.nn import MinMax

@MODELS.register("own-net", example={"num_classes": 2})
def own_net(num_classes: int = 2, input_shape=(2,)):
    """A network."""
    return nn.Sequential(nn.Linear(2, 4), MinMax(), nn.Linear(4, num_classes))
'''


@pytest.fixture
def forget(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Forget the code of one's own, as a new process would."""
    monkeypatch.setattr(extensions, "_LOADED", {})
    monkeypatch.setattr(extensions, "_GIVEN", [])
    models = KINDS["models"].open()
    list(models)

    def forget() -> None:
        models._entries.pop("own-net", None)
        extensions._LOADED.clear()
        extensions._GIVEN.clear()

    yield forget
    forget()


def test_code_of_ones_own_is_published_and_never_executed_by_itself(
    cli: Cli, tmp_path: Path, forget: Callable[[], None]
) -> None:
    (tmp_path / "own.py").write_text(OWN, encoding="utf-8")
    own = ("--set", "model={name: own-net}", "--import", "own.py")
    assert (
        cli("train", "moons-cll", "--budget", "smoke", "--set", "train.epochs=1", *own, "--output", "run")[0]
        == 0
    )
    status, _, err = cli("publish", "run", "out", "--import", "own.py")
    assert status == 0, err
    assert files_in(Path("out")) == {*FILES, MANIFEST, "code/own.py"}
    assert "Read it" in Path("out/README.md").read_text(encoding="utf-8")

    forget()
    Path("own.py").unlink()
    for ask in (("verify", "out"), ("inspect", "out"), ("publish", "out", "new")):
        status, _, err = cli(*ask)
        assert (status, err.count("\n")) == (2, 1)
        assert "if you trust it, add --import out/code/own.py" in err
    assert cli("verify", "out", "--import", "out/code/own.py")[0] == 0
    Path("out/code/own.py").write_text(OWN.replace("4", "8"), encoding="utf-8")
    status, _, err = cli("inspect", "out")
    assert (status, "code/own.py is not as it was published" in err) == (2, True)


def test_changed_code_is_not_published(cli: Cli, tmp_path: Path, forget: Callable[[], None]) -> None:
    (tmp_path / "own.py").write_text(OWN, encoding="utf-8")
    own = ("--set", "model={name: own-net}", "--import", "own.py")
    assert (
        cli("train", "moons-cll", "--budget", "smoke", "--set", "train.epochs=1", *own, "--output", "run")[0]
        == 0
    )
    forget()
    (tmp_path / "own.py").write_text(OWN + "# changed\n", encoding="utf-8")
    with pytest.warns(UserWarning, match="another content"):
        status, _, err = cli("publish", "run", "out", "--import", "own.py")
    assert (status, err.count("\n"), "expected the content that" in err) == (2, 1, True)
    assert not Path("out").exists()


def test_data_with_a_usual_place_is_looked_for_there() -> None:
    described = DataSource.model_validate({"name": "cifar10", "root": "/data/private", "val": 0.1})
    assert portable_data(described).model_dump() == {"name": "cifar10", "val": 0.1}


def hostile(published: Path, metadata: str, extra: str = "weight") -> None:
    """Give a folder a file of weights with any description, and a manifest that fits."""
    file = published / "model.safetensors"
    tensors = {**safetensors.torch.load_file(file), extra: torch.zeros(1)}
    safetensors.torch.save_file(tensors, file, metadata={"lipcert": metadata})
    write_manifest(published, FILES)


def test_descriptions_of_a_malicious_author_are_one_plain_line(published: Path, cli: Cli) -> None:
    with safetensors.safe_open(published / "model.safetensors", framework="pt") as file:
        card = json.loads(file.metadata()["lipcert"])
    for odd, said in [
        ("[" * 100_000, "model card cannot be read"),
        (json.dumps({**card, "name": "\x1b[2J"}), r"unknown model '\x1b[2J'"),
        (json.dumps({**card, "arguments": {"\x1b[2J\n": 1}}), r"\x1b[2J\n: unknown argument"),
        (json.dumps({**card, "arguments": {"widths": [10**9, 10**9]}}), "choose smaller sizes"),
        (json.dumps(card), r"weights do not fit a mlp: \x1b[2J"),
    ]:
        hostile(published, odd, extra="\x1b[2J")
        status, out, err = cli("inspect", str(published))
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert err.rstrip("\n").isprintable()
        assert said in err


def test_recipes_of_a_malicious_author_end_soon_and_execute_nothing(published: Path, cli: Cli) -> None:
    recipe = (published / "recipe.yaml").read_text(encoding="utf-8").replace("claim:", "was:")
    grown = ["- &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    grown += [f"- &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]  # 9¹² values
    for content, said in [
        ("claim:\n" + "\n".join(grown) + "\n" + recipe, "values, its YAML aliases stand for more"),
        ("claim: &a [*a]\n" + recipe, "values, its YAML aliases stand for more"),
        ("claim: !!python/object/apply:os.mkdir [executed]\n" + recipe, "could not determine a constructor"),
        ("imports: [os.path]\n" + recipe, "if you trust it, add --import os.path"),
    ]:
        (published / "recipe.yaml").write_text(content, encoding="utf-8")
        write_manifest(published, FILES)
        status, out, err = cli("verify", str(published))
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert said in err
    assert not Path("executed").exists()
