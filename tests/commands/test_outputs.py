"""Output places: checked before work begins, left clean by a start that fails, named by a full disk."""

from __future__ import annotations

import contextlib
import json
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lipcert import atomic
from lipcert.errors import InputError, LipcertError
from lipcert.models.model_names import model_place
from lipcert.recipes import execution
from lipcert.runs import Run

Cli = Callable[..., tuple[int, str, str]]

SMOKE = ["train", "moons-cll", "--budget", "smoke", "--set", "train.epochs=1"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--accelerator", "cdua"],
            "expected one of auto, cpu, cuda, gpu, mps, tpu, got 'cdua' (did you mean cuda?)",
        ),
        (["--accelerator", "mps"], "--accelerator mps: there is none that torch can use here"),
        (["--strategy", "dpp"], "strategy"),
    ],
)
def test_hardware_that_is_not_there_leaves_nothing_behind(
    arguments: list[str], said: str, cli: Cli, tmp_path: Path
) -> None:
    for more in ([], ["--stack", "seed=1..2"]):
        status, _, err = cli(*SMOKE, *arguments, *more)
        assert status == 2
        assert said in err
        assert list(tmp_path.iterdir()) == []


def test_a_start_that_fails_leaves_its_place_free(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> float:
        raise LipcertError("no memory on the device")

    monkeypatch.setattr(execution, "fit", fail)
    status, _, err = cli(*SMOKE, "--output", "all/my runs/one")
    assert (status, err.splitlines()[-1]) == (1, "lipcert: no memory on the device")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    status, _, err = cli(*SMOKE, "--output", "all/my runs/one")
    assert status == 0, err


def test_what_a_failed_training_has_done_is_kept(tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    for resume in (False, True):
        with contextlib.suppress(LipcertError), run.opened({"seed": 1}, resume=resume, overwrite=False):
            run.metrics_file.write_text("{}\n", encoding="utf-8")
            raise LipcertError("later")
        assert run.recipe.is_file()


@pytest.mark.parametrize("output", ["file/new", "/proc/lipcert"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["certify", "moons-cll", "--output", "{}.json"],
        ["attack", "moons-cll", "--output", "{}.json"],
        ["export", "moons-cll", "{}.onnx"],
        ["report", "one", "-o", "{}.html"],
        ["sweep", "moons-cll", "--over", "seed=1", "--output", "{}"],
        ["reproduce", "moons-demo", "--output", "{}"],
        ["train", "moons-cll", "--output", "{}"],
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_any_work(
    arguments: list[str], output: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    (tmp_path / "one").symlink_to(model_place("moons-cll"))
    for work in (
        "lipcert.commands.work.certify_model.certifier",
        "lipcert.commands.work.export_model.certifier",
        "lipcert.report.report_page._details",
        "lipcert.recipes.execution.build",
        "lipcert.commands.work.sweep_run.run_trials",
        "lipcert.commands.work.reproduction.run_trials",
    ):
        monkeypatch.setattr(work, _must_not_begin)
    status, out, err = cli(*(part.format(output) for part in arguments))
    assert (status, out) == (2, "")
    assert "cannot be written" in err
    assert len(err.splitlines()) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"file", "one"}


def _must_not_begin(*_: object, **__: object) -> None:
    raise AssertionError("work began")


def test_a_certificate_goes_into_the_run_and_never_over_that_of_another_model(cli: Cli) -> None:
    for seed, name in enumerate(("one", "two")):
        status, _, err = cli(*SMOKE, "--set", f"seed={seed}", "--set", f"name={name}", "--output", name)
        assert status == 0, err
    before = Path("one/certificate.json").read_bytes()
    status, out, err = cli("certify", "one")
    assert status == 0, err
    assert "certificate: one/certificate-test.json" in out
    assert "lipcert verify one/certificate-test.json one" in out
    assert Path("one/certificate.json").read_bytes() == before
    assert not Path("certificate.json").exists()
    assert cli("certify", "one", "--radii", "0.1")[0] == 0  # the same model: replaced
    assert json.loads(Path("one/certificate-test.json").read_text(encoding="utf-8"))["recipe"] == "one"

    assert cli("certify", "one", "--output", "new folder/c.json")[0] == 0
    status, _, err = cli("certify", "two", "--output", "new folder/c.json")
    assert status == 2
    assert "new folder/c.json: is the certificate of another model (one); remove it, or choose" in err
    Path("thesis.json").write_text("{}", encoding="utf-8")
    for other, said in (("thesis.json", "not a lipcert certificate"), ("one", "found a directory")):
        status, _, err = cli("certify", "two", "--output", other)
        assert status == 2
        assert said in err
    assert cli(*SMOKE, "--set", "seed=9", "--output", "one", "--overwrite")[0] == 0
    assert not Path("one/certificate-test.json").exists()  # it spoke of the weights of before


def test_a_bundled_model_is_certified_into_the_current_directory(cli: Cli, tmp_path: Path) -> None:
    assert cli("certify", "moons-cll")[0] == 0
    assert [path.name for path in tmp_path.iterdir()] == ["certificate.json"]


@contextlib.contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Let no file of this process be larger, as on a disk that is nearly full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_named_with_the_file_and_nothing_half_is_left(cli: Cli, tmp_path: Path) -> None:
    with largest_file(5000):
        status, _, err = cli(*SMOKE, "--output", "run")
    assert status == 1
    full = "cannot be written (File too large); make room"
    assert err.splitlines()[-1].startswith(f"lipcert: run/checkpoints/last.ckpt: {full}")
    assert not list(tmp_path.rglob("*.part"))
    status, _, err = cli(*SMOKE, "--output", "run", "--resume")
    assert status == 0, err
    with largest_file(5000):
        status, _, err = cli("export", "moons-cll", "model.onnx")
    assert status == 1
    assert err.startswith(f"lipcert: model.onnx: {full}")
    assert {path.name for path in tmp_path.iterdir()} == {"run"}


def test_a_probe_leaves_nothing(tmp_path: Path) -> None:
    atomic.check_file_place(tmp_path / "new" / "file")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="found a directory"):
        atomic.check_file_place(tmp_path)


@pytest.mark.parametrize(
    ("columns", "longest"), [("60", 60), ("0", 20), ("5", 20), ("wide", 120), ("", 120)], ids=str
)
def test_a_pipe_is_as_wide_as_it_is_told(
    columns: str, longest: int, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    status, out, err = cli("list", "recipes")
    assert (status, err) == (0, "")
    lines = [line.rstrip() for line in out.splitlines()]
    assert max(map(len, lines)) <= longest
    assert "cifar10-4c3f-cll" in "".join(lines)


def test_a_place_for_csv_is_checked_before_any_image_is_read(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lipcert.certificates.predictions.predict_files", lambda *_: pytest.fail("too late"))
    status, _, err = cli("predict", "moons-cll", "photo.png", "--csv", "/proc/found.csv")
    assert status == 2
    assert err.startswith("lipcert: /proc/found.csv: cannot be written (")
    assert err.endswith("); choose another place\n")


def test_no_name_is_no_directory(cli: Cli) -> None:
    status, _, err = cli("certify", "")
    assert (status, err.count("\n")) == (2, 1)
    assert "model: expected a run directory, a file, the name of a model or hf://OWNER/NAME, got ''" in err
