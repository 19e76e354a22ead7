"""Code of one's own is used by every command, kept by runs, and executed only if a user names it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from lipcert import extensions
from lipcert.commands.support import completion
from lipcert.commands.support.registries import KINDS
from lipcert.errors import InputError, LipcertWarning
from lipcert.losses import LOSSES
from lipcert.recipes import read_recipe, read_run_recipe
from lipcert.runs import Run
from tests.laws.test_commands import all_commands

pytestmark = pytest.mark.usefixtures("own_registries")

Cli = Callable[..., tuple[int, str, str]]

MINE = '''
"""A loss, a layer and a model of one's own."""
from dataclasses import dataclass
from torch import nn
from lipcert.bounds import Constant, rule
from lipcert.losses import CLL
from lipcert.losses.base import LOSSES
from lipcert.models import MODELS
from lipcert.nn import MinMax

print("executed")

@LOSSES.register("mine", example={"eps": 0.1, "slack": 0.05})
@dataclass(frozen=True)
class Mine(CLL):
    """CLL by another name."""

class Mirror(nn.Module):
    def forward(self, x):
        return -1.0 * x.flip(1)

@rule(Mirror, examples=[lambda: (Mirror(), (4,))])
class MirrorRule(Constant):
    """The constant is 1."""

@MODELS.register("my-net", example={"num_classes": 2})
def my_net(num_classes: int = 2, input_shape=(2,)):
    """A mirror in a network."""
    return nn.Sequential(nn.Linear(2, 4), Mirror(), MinMax(), nn.Linear(4, num_classes))
'''

RECIPE = """
extends: moons-cll
imports: [../code/my.py]
model: {name: my-net}
loss: {name: mine, eps: 0.15, slack: 0.01}
schedule: {loss.slack: null}
"""


@pytest.fixture
def forget(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Forget the code of one's own, as a new process would."""

    def forget() -> None:
        for kind in KINDS.values():
            entries = kind.open()._entries
            for name in [n for n, e in entries.items() if e.constructor.__module__.startswith("lipcert_ext")]:
                del entries[name]
        extensions._LOADED.clear()
        extensions._GIVEN.clear()

    return forget


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "my.py").write_text(MINE, encoding="utf-8")
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "mine.yaml").write_text(RECIPE, encoding="utf-8")
    return tmp_path


def test_every_command_has_the_option() -> None:
    commands = all_commands()
    assert len(commands) > 10
    options = {name: [o for p in command.params for o in p.opts] for name, command in commands.items()}
    assert not [name for name, own in options.items() if "--import" not in own]


def test_a_run_is_trained_certified_and_moved(cli: Cli, place: Path, forget: Callable[[], None]) -> None:
    status, out, err = cli("train", "recipes/mine.yaml", "--output", "runs/a", "--set", "train.epochs=1")
    assert status == 0, err
    assert out.count("executed") == 1
    (kept,) = yaml.safe_load(Path("runs/a/recipe.yaml").read_text(encoding="utf-8"))["imports"]
    assert kept == {"file": "../../code/my.py", "sha256": hashlib.sha256(MINE.encode()).hexdigest()}

    forget()
    status, out, err = cli("certify", "runs/a", "--split", "val")
    assert (status, err.count("\n")) == (2, 1)
    assert "executed" not in out
    assert "code/my.py; if you trust it, add --import code/my.py" in err

    Path("moved").mkdir()
    os.rename("runs", "moved/runs")
    os.rename("code", "moved/code")
    status, out, err = cli("certify", "moved/runs/a", "--split", "val", "--import", "moved/code/my.py")
    assert status == 0, err


def test_a_command_keeps_what_it_was_given(cli: Cli, place: Path) -> None:
    ours = ("--set", "loss.name=mine", "--set", "loss.eps=0.1", "--set", "loss.slack=0.1")
    arguments = ("train", "moons-cll", "--budget", "smoke", "--output", "b", *ours)
    assert cli(*arguments)[0] == 2
    status, _, err = cli(*arguments, "--import", "code/my.py")
    assert status == 0, err
    assert read_run_recipe(Run("b")).imports[0].extension.source == "code/my.py"


def test_a_run_does_not_execute_what_its_recipe_names(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    run = Run(place / "run")
    run.path.mkdir()
    run.recipe.write_text(RECIPE, encoding="utf-8")  # a list of names, as a user's recipe has it
    with pytest.raises(InputError, match=r"made with code that is no part of lipcert: .*my\.py"):
        read_run_recipe(run)
    assert not extensions.loaded()
    extensions.load("code/my.py")
    assert read_run_recipe(run).model.name == "my-net"


def test_a_changed_file_is_said(cli: Cli, place: Path, forget: Callable[[], None]) -> None:
    train = ("train", "recipes/mine.yaml", "--output", "run", "--set", "train.epochs=1")
    assert cli(*train)[0] == 0
    forget()
    Path("code/my.py").write_text(MINE + "# changed\n", encoding="utf-8")
    extensions.load("code/my.py")
    with pytest.warns(LipcertWarning, match=r"run: made with another content of .*my\.py"):
        read_run_recipe(Run("run"))
    status, _, err = cli(*train, "--resume")
    assert status == 2
    assert "the recipe differs in imports" in err


def test_workers_of_a_sweep_load_it(cli: Cli, place: Path) -> None:
    status, out, err = cli(
        "sweep", "recipes/mine.yaml", "--over", "seed=1,2", "--set", "train.epochs=1", "--output", "sweep"
    )
    assert status == 0, err
    assert "mine" in out


def test_lists_and_completion_know_it(cli: Cli, place: Path) -> None:
    status, out, err = cli("list", "losses", "mine", "--import", "code/my.py")
    assert status == 0, err
    assert "CLL by another name." in out


def test_completion_reads_the_file_without_executing_it(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    sources = ["code/my.py", "no/such.py"]
    losses, models = (SimpleNamespace(params={"kind": k, "import_": sources}) for k in ("losses", "models"))
    assert completion.names(losses, "mi") == ["mine"]  # type: ignore[arg-type]
    assert completion.names(models, "my") == ["my-net"]  # type: ignore[arg-type]
    assert "executed" not in capsys.readouterr().out


def test_a_model_of_a_file_is_certified_beside_its_extension(cli: Cli, place: Path) -> None:
    source = "code/my.py:my_net"
    status, out, err = cli("inspect", source, "--input-shape", "2", "--import", "code/my.py")
    assert status == 0, err
    assert "Mirror" in out
    assert out.count("executed") == 1


@pytest.mark.parametrize(
    ("source", "content", "said"),
    [
        ("none.py", None, "no such Python file"),
        ("no.such.module", None, "no such module; expected an installed module or a file that ends in .py"),
        ("bad.py", "1 / 0", "bad.py: ZeroDivisionError: division by zero"),
        ("wrong.py", "def", "wrong.py: SyntaxError: invalid syntax"),
        ("ends.py", "raise SystemExit(3)", "ends.py: SystemExit: 3"),
        (
            "twice.py",
            "from lipcert.losses.base import LOSSES\n@LOSSES.register('cll')\nclass A: pass",
            "twice.py: loss 'cll' is registered twice",
        ),
    ],
)
def test_what_cannot_be_loaded_is_one_line(
    cli: Cli, tmp_path: Path, source: str, content: str | None, said: str
) -> None:
    if content is not None:
        (tmp_path / source).write_text(content, encoding="utf-8")
    status, _, err = cli("list", "losses", "--import", source)
    assert (status, err.count("\n")) == (2, 1)
    assert said in err


@pytest.mark.parametrize(
    ("imports", "said"),
    [
        ("my.py", "expected a list such as \\[my.py\\], got 'my.py'"),
        ("[3]", "expected files that end in .py or modules, got 3"),
        ("[{file: my.py}]", "expected files that end in .py or modules"),
    ],
)
def test_imports_are_checked(tmp_path: Path, imports: str, said: str) -> None:
    recipe = tmp_path / "r.yaml"
    recipe.write_text(f"extends: moons-cll\nimports: {imports}\n", encoding="utf-8")
    with pytest.raises(InputError, match=said):
        read_recipe(str(recipe))


def test_recipes_without_imports_are_written_as_before() -> None:
    assert "imports" not in read_recipe("moons-cll").model_dump(mode="json")


def installed(folder: Path, code: str) -> dict[str, str]:
    """Lay out a package with an entry point as pip would; return the environment that finds it."""
    (folder / "my_plugin.py").write_text(code, encoding="utf-8")
    info = folder / "my_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-plugin\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[lipcert.plugins]\nmine = my_plugin\n", encoding="utf-8")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}


def test_an_installed_package_is_a_plugin(tmp_path: Path) -> None:
    env = installed(tmp_path, MINE)
    command = [sys.executable, "-m", "lipcert", "list", "losses", "mine"]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert (done.returncode, "CLL by another name." in done.stdout) == (0, True), done.stderr


def test_a_broken_plugin_is_named(tmp_path: Path) -> None:
    env = installed(tmp_path, "1 / 0")
    done = subprocess.run(
        [sys.executable, "-m", "lipcert", "list", "losses"], env=env, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "the plugin mine of my-plugin cannot be loaded (my_plugin: ZeroDivisionError" in done.stderr


def test_lipcert_s_own_names_stay(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    before = set(LOSSES)
    extensions.load("code/my.py")
    assert set(LOSSES) == before | {"mine"}
