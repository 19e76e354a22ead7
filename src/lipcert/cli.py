"""The command line: one function per command, its signature the flags. Heavy imports stay inside."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from lipcert import completion

app = typer.Typer(
    name="lipcert",
    help="Train, prove and certify classifiers with deterministic L2 robustness certificates.",
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

Budget = Annotated[
    str | None, typer.Option(help="A smaller budget of the recipe, such as smoke.", show_default="full")
]
Data = Annotated[
    str | None, typer.Option(help="A data set, for a model file without a run.", show_default="the run's")
]
SplitName = Annotated[str, typer.Option(help="train, val or test.")]
Radii = Annotated[str | None, typer.Option(help="Comma-separated.", show_default="the run's")]
RoundingName = Annotated[str, typer.Option(help="float64, float32 (as deployed) or ignored.")]
Model = Annotated[
    str,
    typer.Argument(
        help="A run directory, a .safetensors file or a name (`lipcert list trained`).",
        autocompletion=completion.models,
    ),
]
Local = Annotated[bool, typer.Option(help="Prove bounds on balls around every sample as well.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key; repeatable.")
]
Jobs = Annotated[int | None, typer.Option(help="Trainings at a time.", show_default="one a core")]
Overwrite = Annotated[bool, typer.Option(help="Replace what the output directory holds.")]

_START = """\
lipcert: classifiers whose every prediction has a proved L2 radius

  lipcert train moons-cll                         a first training: a minute, no data needed
  lipcert verify moons-cll                        prove the certificate of a bundled model
  lipcert train folder --set data.root=photos     your own images: a folder with a folder a class
  lipcert predict RUN photo.jpg                   class, certified radius, nearest rival
  lipcert export RUN model.onnx                   for runtimes without torch, the radius an output
  lipcert explore                                 a page to play with
  lipcert reproduce moons --seeds 1..3            a figure of the paper

lipcert list recipes     what can be trained        lipcert doctor    what is installed and found
lipcert --help           every command              lipcert --install-completion    for your shell"""


@app.callback(invoke_without_command=True)
def start(context: typer.Context) -> None:
    """Train, prove and certify classifiers with deterministic L2 robustness certificates."""
    if context.invoked_subcommand is None:
        print(_START)


@app.command()
def train(
    recipes: Annotated[
        list[str],
        typer.Argument(
            metavar="RECIPE...",
            help="Packaged names (`lipcert list recipes`) or YAML files.",
            autocompletion=completion.recipes,
        ),
    ],
    budget: Budget = None,
    stack: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUES", help="Train all values as one, such as seed=1..9; repeatable."),
    ] = None,
    set_: Settings = None,
    output: Annotated[
        Path | None,
        typer.Option(help="Run directory; of several runs, the one they go in.", show_default="runs/NAME"),
    ] = None,
    resume: Annotated[bool, typer.Option(help="Continue from the last checkpoint.")] = False,
    overwrite: Overwrite = False,
    accelerator: Annotated[str, typer.Option(help="cpu, cuda, mps or auto.")] = "auto",
    devices: Annotated[str, typer.Option(help="How many a node, or auto.")] = "1",
    nodes: Annotated[int, typer.Option(help="How many machines.")] = 1,
    strategy: Annotated[str, typer.Option(help="Of Lightning Fabric, such as ddp.")] = "auto",
    precision: Annotated[str, typer.Option(help="32; bf16-mixed or 16-mixed on accelerators.")] = "32",
) -> None:
    """Train a recipe, prove its bounds, certify its data; or several of one model as one training.

    Example: lipcert train moons-cll --set seed=2 --output runs/second
    """
    from lipcert.recipes import execute, execute_stack, read_recipe, read_stack
    from lipcert.report.evaluation import write_evaluation
    from lipcert.report.tables import run_table
    from lipcert.train.hardware import Hardware, is_first_process

    hardware = Hardware(accelerator, devices, nodes, strategy, precision)
    if stack or len(recipes) > 1:
        named = read_stack(recipes, budget, set_ or [], stack or [])
        places = {(output or Path("runs")) / name: recipe for name, recipe in named.items()}
        runs = execute_stack(places, resume=resume, overwrite=overwrite, hardware=hardware)
    else:
        settled = read_recipe(recipes[0], budget, set_ or [])
        place = output or Path("runs") / settled.name
        runs = [execute(settled, place, resume=resume, overwrite=overwrite, hardware=hardware)]
    if is_first_process():
        _print(run_table(runs))
        for run in runs:
            for picture in write_evaluation(run):
                print(f"wrote {picture}")
            print(f"run: {run.path}")
        print(f"next: {_next_step(runs[0])}")


@app.command()
def certify(
    model: Model,
    data: Data = None,
    split: SplitName = "test",
    radii: Radii = None,
    rounding: RoundingName = "float64",
    effort: Annotated[str, typer.Option(help="Of the proof: auto, exact or fast.")] = "auto",
    local: Local = False,
    output: Annotated[Path, typer.Option(help="Where the certificate goes.")] = Path("certificate.json"),
) -> None:
    """Prove the bounds of a trained model, certify a split of its data, and write certificate.json.

    Example: lipcert certify runs/moons-cll --radii 0.05,0.1,0.15
    """
    from lipcert.atomic import write_json
    from lipcert.recipes.certifying import certify_model
    from lipcert.report.tables import certificate_table

    findings = certify_model(model, data, split, radii, rounding, effort, local)
    _print(certificate_table(findings))
    write_json(output, findings.to_json())
    print(f"certificate: {output}")
    print(f"next: lipcert verify {output} {model}")


@app.command()
def verify(
    certificate: Annotated[str, typer.Argument(help="A certificate.json, or a MODEL that has one.")],
    model: Annotated[
        str | None, typer.Argument(help="The MODEL it speaks of.", show_default="the one beside it")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="Folder of the data.", show_default="where certify looks: $LIPCERT_DATA, the cache"
        ),
    ] = None,
    bounds_only: Annotated[
        bool, typer.Option("--bounds-only", help="Prove the bounds, leave the counts unchecked.")
    ] = False,
) -> None:
    """Prove a certificate's bounds again, count again on its data; exit status 1 if anything does not hold.

    Exit status 2 if something cannot be checked, such as the counts where the data is missing.

    Example: lipcert verify runs/moons-cll
    """
    from lipcert.recipes.certifying import verify_file
    from lipcert.report.tables import check_table

    checks = verify_file(certificate, model, data, bounds_only)
    _print(check_table(checks))
    if any(check.holds is False for check in checks):
        sys.exit(1)
    if not bounds_only and any(check.is_unchecked for check in checks):
        _fail(2, "not everything was checked: no recipe.yaml beside the model; --bounds-only accepts that")


@app.command()
def predict(
    model: Model,
    images: Annotated[list[Path], typer.Argument(metavar="IMAGE_OR_DIR...", help="Files and directories.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    abstain_below: Annotated[
        float | None, typer.Option(help="Name no class where the radius is not above this.", metavar="R")
    ] = None,
) -> None:
    """Classify images: class, probability, certified L2 radius, nearest rival.

    Example: lipcert predict runs/folder photo.jpg more/ --abstain-below 0.1
    """
    from lipcert.recipes.predicting import as_json, predict_files
    from lipcert.report.tables import prediction_table

    found, complaints = predict_files(model, images, abstain_below, quiet=not sys.stderr.isatty())
    if json:
        print(as_json(found))
    elif found:
        _print(prediction_table(found))
    for line in complaints:
        print(f"lipcert: {line}", file=sys.stderr)
    if complaints:
        sys.exit(2)


@app.command()
def export(
    model: Model,
    output: Annotated[Path, typer.Argument(metavar="FILE", help="Such as model.onnx.")],
    float32: Annotated[
        bool, typer.Option("--float32", help="A float32 graph; its roundings cost some of the radius.")
    ] = False,
    effort: Annotated[str, typer.Option(help="Of the proof: auto, exact or fast.")] = "auto",
) -> None:
    """Write an ONNX file with logits, class and certified radius as outputs. Needs the extra `onnx`.

    Example: lipcert export cifar10-4c3f-cll model.onnx
    """
    from lipcert.recipes.exporting import export_model

    for line in export_model(model, output, float32, effort):
        print(line)
    print(f"next: python examples/onnx_only.py {output}, or any ONNX runtime")


@app.command()
def attack(
    model: Model,
    data: Data = None,
    split: SplitName = "test",
    radii: Radii = None,
    rounding: RoundingName = "float64",
    budget: Annotated[
        str, typer.Option(help="full (1000 samples, 500 steps), cpu (128, 50) or smoke (16, 10).")
    ] = "cpu",
    local: Local = False,
    output: Annotated[Path, typer.Option(help="Where the findings go; the picture beside.")] = Path(
        "attack.json"
    ),
) -> None:
    """Attack a certified model; exit status 1 if a certificate breaks. Needs the extra `attack`.

    Attacks: margin, rounding, PGD, APGD-CE and APGD-T (AutoAttack), DeepFool, FMN, Brendel-Bethge.

    Example: lipcert attack runs/moons-cll --budget smoke
    """
    from lipcert.atomic import write_json
    from lipcert.recipes.attacking import attack_model
    from lipcert.report.band import band_figure, band_table

    quiet = not sys.stderr.isatty()
    band, findings = attack_model(model, data, split, radii, rounding, budget, local, quiet)
    _print(band_table(findings))
    write_json(output, findings)
    picture = band_figure(band, findings, output.with_suffix(".png"))
    print(f"wrote {output}, {picture}")
    if band.broken:
        sys.exit(1)


@app.command()
def tightness(
    run: Annotated[Path, typer.Argument(help="A run directory.")],
    budget: Annotated[
        str, typer.Option(help="full (4000 pairs, 1000 steps), cpu (64, 200) or smoke.")
    ] = "full",
) -> None:
    """Search two points that stretch most; their slope over the proved constant is the tightness.

    Example: lipcert tightness runs/moons-cll --budget cpu
    """
    from lipcert.recipes.tightness import measure

    found = measure(run, budget, quiet=not sys.stderr.isatty())
    print(
        f"{found['lower']:.6g} (witnessed) ≤ K_f ≤ {found['upper']:.6g} (proved): "
        f"tightness {100 * found['tightness']:.1f} %, {found['pairs']} pairs, {found['steps']} steps"
    )
    print(f"wrote {run / 'tightness.json'}")


@app.command()
def inspect(
    model: Annotated[
        str,
        typer.Argument(help="A run directory, a .safetensors file, a name, or FILE.py:NAME, which is run."),
    ],
    input_shape: Annotated[
        str | None, typer.Option(help="For FILE.py:NAME, such as 3,32,32.", show_default="the model's")
    ] = None,
    effort: Annotated[str, typer.Option(help="auto, exact or fast.")] = "auto",
) -> None:
    """Show a model layer by layer, with estimated and proved Lipschitz constants.

    Example: lipcert inspect runs/moons-cll
    """
    from lipcert.report.inspection import inspection_of

    _print(inspection_of(model, input_shape, effort))


@app.command()
def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help="A figure or table (`lipcert list reproductions`).", autocompletion=completion.reproductions
        ),
    ],
    budget: Budget = None,
    seeds: Annotated[
        str | None, typer.Option(help="Such as 1, 1..3 or 1,5,7.", show_default="the budget's")
    ] = None,
    set_: Settings = None,
    jobs: Jobs = None,
    output: Annotated[
        Path | None, typer.Option(help="Directory for runs, figure, results.", show_default="runs/NAME")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Train and draw a figure of the paper; what is already finished is kept.

    Example: lipcert reproduce moons --seeds 1..3
    """
    from lipcert.reproductions import carry_out, parse_seeds
    from lipcert.sweeps import LocalCrew

    report = carry_out(
        name,
        output or Path("runs") / name,
        crew=LocalCrew(jobs),
        budget=budget,
        seeds=None if seeds is None else parse_seeds(seeds),
        settings=set_ or [],
        overwrite=overwrite,
    )
    for table in report.tables:
        _print(table)
    for path in report.written:
        print(f"wrote {path}")
    print("next: look at the figure; lipcert report RUN... makes a page of the runs beside it")
    if report.failures:
        _fail(1, f"{report.failures}; the same command tries again")


@app.command()
def sweep(
    recipe: Annotated[
        str,
        typer.Argument(
            help="A packaged name (`lipcert list recipes`) or a YAML file.",
            autocompletion=completion.recipes,
        ),
    ],
    over: Annotated[
        list[str],
        typer.Option(metavar="KEY=VALUES", help="Such as seed=1..9 or loss.eps=0.1,0.2; repeatable."),
    ],
    budget: Budget = None,
    set_: Settings = None,
    output: Annotated[
        Path | None, typer.Option(help="Directory for the runs.", show_default="runs/RECIPE-sweep")
    ] = None,
    backend: Annotated[str, typer.Option(help="local, or ray (the extra `ray`).")] = "local",
    address: Annotated[
        str | None, typer.Option(help="Of a Ray cluster.", show_default="a Ray of this machine")
    ] = None,
    jobs: Jobs = None,
    overwrite: Overwrite = False,
) -> None:
    """Train every combination of some values; what is already finished is kept.

    Example: lipcert sweep cifar10-4c3f-cll --budget cpu --over loss.slack=0.05,0.15,0.25 --over seed=1..3
    """
    from lipcert.sweeps.command import carry_out

    found = carry_out(recipe, over, budget, set_ or [], output, backend, address, jobs, overwrite)
    _print(found.table)
    for line in found.lines:
        print(line)
    if found.failures:
        _fail(1, found.failures)


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN_OR_SWEEP...", help="Directories of them.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The page; tables and figures go into a folder beside it.")
    ] = Path("report.html"),
) -> None:
    """Compare finished runs and sweeps on one page, the paper's rows beside them. Needs the extra `report`.

    Example: lipcert report runs/cifar10-4c3f-cll runs/cifar10-4c3f-gloro -o report.html
    """
    from lipcert.pages.report import write_report

    written = write_report(runs, output)
    for table in written.tables:
        _print(table)
    page, *others = written.paths
    print(f"wrote {page}, and {len(others)} files in {page.with_suffix('')}")
    print(f"next: open {page} in a browser; it needs no network")


@app.command()
def explore(
    model: Annotated[
        str | None,
        typer.Argument(
            help="A run, a .safetensors file or a name.",
            show_default="cifar10-4c3f-cll",
            autocompletion=completion.models,
        ),
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, show_default="7860, or the next that is free")
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the page.")] = True,
) -> None:
    """Open a page to train two moons, attack images and see a run's curves. Needs the extra `explore`.

    Example: lipcert explore runs/cifar10-4c3f-cll --no-browser
    """
    from lipcert.errors import InputError

    try:
        import gradio  # noqa: F401
    except ImportError:
        raise InputError("explore: Gradio is missing; pip install 'lipcert[explore]' brings it") from None
    try:
        from lipcert.explore.exhibit import DEFAULT, Exhibit
        from lipcert.explore.server import serve

        serve(Exhibit.open(model or DEFAULT), port, browser)
    except KeyboardInterrupt:
        sys.exit(130)


data_app = typer.Typer(help="Data sets on this machine.", no_args_is_help=True)
app.add_typer(data_app, name="data")


@data_app.command("fetch")
def data_fetch(
    name: Annotated[
        str,
        typer.Argument(
            help=f"{', '.join(completion.DATA_SETS[:-1])} or {completion.DATA_SETS[-1]}.",
            autocompletion=completion.data_sets,
        ),
    ],
    root: Annotated[
        Path | None, typer.Option(help="Where to.", show_default="$LIPCERT_DATA or the user's cache")
    ] = None,
) -> None:
    """Download a data set from its official address, with its checksum.

    Example: lipcert data fetch cifar10
    """
    from lipcert.data.fetch import fetch

    place = fetch(name, root)
    print(f"{name}: {place}")
    print(f"next: lipcert list recipes | grep {name.partition('-')[0]}")


@app.command("list")
def list_(
    kind: Annotated[
        str,
        typer.Argument(help=f"{', '.join(completion.KINDS)}.", autocompletion=completion.kinds),
    ],
) -> None:
    """Show what there is of a kind, with a line about each.

    Example: lipcert list recipes
    """
    from lipcert.report.listing import listing

    _print(listing(kind))


@app.command()
def doctor() -> None:
    """Show versions, devices, data found, extras that are missing and how to get them.

    Example: lipcert doctor
    """
    from lipcert.doctor import findings

    for table in findings():
        _print(table)


def _next_step(run: Any) -> str:
    """What one does with a trained model."""
    from lipcert.models.files import read_card

    takes_images = len(read_card(run.model).input_shape) == 3
    return f"lipcert {f'predict {run.path} IMAGE...' if takes_images else f'inspect {run.path}'}"


def main() -> None:
    """Run the command line. Exit status: 0 done, 1 failed, 2 the input was wrong, 130 interrupted."""
    from lipcert.errors import LipcertError, exit_status

    try:
        status = app(standalone_mode=False)
        if status == 130:  # Ctrl-C where nothing was under way that had to be saved
            _fail(130, "interrupted")
        sys.exit(status)
    except LipcertError as error:
        _fail(exit_status(error), str(error))
    except OSError as error:  # a full disk, a directory that went away
        _fail(1, str(error))
    except Exception as error:
        if not hasattr(error, "format_message"):  # what typer raises for a wrong flag has one
            raise
        if type(error).__name__ == "NoArgsIsHelpError":
            sys.exit(0)  # the help is printed already
        _fail(2, f"{error.format_message()} (--help shows what there is)")


def _fail(status: int, line: str) -> NoReturn:
    print(f"lipcert: {line}", file=sys.stderr)
    sys.exit(status)


def _print(what: Any) -> None:
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        console.width = 120  # a pipe or a file has no width of its own
    console.print(what)


if __name__ == "__main__":
    main()
