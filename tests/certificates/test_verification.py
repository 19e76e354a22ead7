"""A certificate file is proved and counted again; whatever was touched does not hold, or is refused."""

from __future__ import annotations

import copy
import json
import math
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lipcert import InputError
from lipcert.certificates.certifier import Certifier, certifier
from lipcert.certificates.loading import load
from lipcert.certificates.statement import claimed, read_certificate
from lipcert.certificates.verification import Check, _proves_as
from lipcert.commands.work.certify_model import certify_model, verify_file
from lipcert.models.model_files import read_card, save
from lipcert.recipes import execute, read_recipe

Tree = dict[str, Any]
Way = tuple[str | int, ...]  # to a place in the tree

# Leaves that are notes: what they say is no claim.
NOTES = {"environment", "seconds"}
# Leaves that say how everything else was made. It is made again that way, so an edit that changes no number
# leaves another true certificate.
CONDITIONS = {"effort", "rounding", "local"}
# Constants are proved from above: a larger one is a weaker truth.
CONSTANTS = {"k_features", "k_f", "k_hf", "smallest", "median", "largest", "upper"}

SMALL = [
    "model.widths=[4]",
    "data={name: moons, train: 120, val: 80, noise: 0.2, seed: 3}",
    "certify.radii=[0.02, 0.1]",
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("verify") / "run"
    execute(read_recipe("moons-cll", "smoke", SMALL), path)
    return path


@pytest.fixture(scope="module")
def prover(run: Path) -> Certifier:
    return certifier(load(run), (2,))


def claim_of(run: Path) -> Tree:
    found: Tree = json.loads((run / "certificate.json").read_text())
    return found


def broken(path: Path, model: Path) -> list[str]:
    return [check.statement for check in verify_file(path, str(model)) if check.holds is False]


def is_accepted(claim: Tree | str, run: Path, place: Path) -> bool:
    """Whether `lipcert verify` would exit with 0; what it refuses, it refuses in one line."""
    file = place / "edited.json"
    file.write_text(claim if isinstance(claim, str) else json.dumps(claim))
    try:
        checks = verify_file(file, str(run))
    except InputError as error:
        complaint = str(error)
    else:
        return all(check.holds is True for check in checks if check.is_claim)
    assert complaint.isprintable()
    return False


def leaves(tree: Any, path: Way = ()) -> Iterator[tuple[Way, Any]]:
    """Every number, text, truth value and null, with the way to it."""
    if not isinstance(tree, dict | list):
        yield path, tree
        return
    for key, below in tree.items() if isinstance(tree, dict) else enumerate(tree):
        yield from leaves(below, (*path, key))


def objects(tree: Any, path: Way = ()) -> Iterator[Way]:
    """The way to every object, the outermost first."""
    if isinstance(tree, dict):
        yield path
    if isinstance(tree, dict | list):
        for key, below in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from objects(below, (*path, key))


def with_value(tree: Tree, path: Way, value: Any) -> Tree:
    """A copy with another value at one place."""
    edited = copy.deepcopy(tree)
    place: Any = edited
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return edited


def slightly_changed(path: Way, value: Any) -> Any:
    """Another value for a leaf, which makes its statement false."""
    if value is None:
        return 0.5
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return f"{value}x"
    if isinstance(value, int):
        return value + 1
    if path[-1] in CONSTANTS:
        return value * (1 - 1e-7)
    if path[-1] in ("radius", "noise"):  # by which everything is made again: enough for other samples
        return value + 0.1
    return math.nextafter(value, math.inf)


def test_an_untouched_certificate_holds(run: Path, tmp_path: Path) -> None:
    checks = verify_file(run / "certificate.json", str(run))
    assert len(checks) > 20
    assert [check.statement for check in checks if check.holds is not True] == [
        "environment, seconds and the folder of the data"
    ]
    assert is_accepted(claim_of(run), run, tmp_path)


def test_no_leaf_of_the_file_can_be_changed_unnoticed(run: Path, tmp_path: Path) -> None:
    claim = claim_of(run)
    found = list(leaves(claim))
    assert len(found) > 50
    unnoticed = [
        (path, value)
        for path, value in found
        if not {*map(str, path)} & (NOTES | CONDITIONS)
        and is_accepted(with_value(claim, path, slightly_changed(path, value)), run, tmp_path)
    ]
    assert unnoticed == []


def test_notes_and_larger_constants_hold(run: Path, tmp_path: Path) -> None:
    claim = claim_of(run)
    for path, value in leaves(claim):
        if "environment" in path:
            assert is_accepted(with_value(claim, path, f"{value}x"), run, tmp_path), path
        elif path[-1] in {"seconds", *CONSTANTS}:
            assert is_accepted(with_value(claim, path, 2 * value + 1), run, tmp_path), path


@pytest.mark.parametrize(
    ("key", "value"), [("effort", "most"), ("effort", 1), ("rounding", "float16"), ("rounding", None)]
)
def test_conditions_are_known_ones(key: str, value: object, run: Path, tmp_path: Path) -> None:
    assert not is_accepted({**claim_of(run), key: value}, run, tmp_path)


def test_every_number_is_made_under_the_stated_conditions(run: Path, tmp_path: Path) -> None:
    claim = claim_of(run)
    assert not is_accepted({**claim, "rounding": "float32", "local": [0.1]}, run, tmp_path)  # not to be had
    assert is_accepted({**claim, "rounding": "ignored"}, run, tmp_path)  # the same counts, counted so


def test_no_leaf_may_be_of_another_kind(run: Path, tmp_path: Path) -> None:
    claim = claim_of(run)
    unnoticed = [
        (path, other)
        for path, value in leaves(claim)
        for other in ([value], {"value": value}, float("nan"), float("-inf"), *alike(path, value))
        if is_accepted(with_value(claim, path, other), run, tmp_path)
    ]
    assert unnoticed == []


def alike(path: Way, value: Any) -> list[Any]:
    """What Python takes for the same number; the data is made anew, whatever its arguments are written as."""
    if path[0] == "data" or isinstance(value, str) or value is None:
        return []
    others: list[Any] = [str(value)]
    if isinstance(value, int):
        others.append(float(value))
    if value in (0, 1):
        others.append(bool(value))
    return others


def test_unknown_and_repeated_keys_are_refused_at_every_level(run: Path, tmp_path: Path) -> None:
    claim = claim_of(run)
    for path in objects(claim):
        text = json.dumps(with_value(claim, (*path, "surplus"), 1))
        assert not is_accepted(text, run, tmp_path), path
        place: Any = claim
        for key in path:
            place = place[key]
        first, value = next(iter(place.items()))
        twin = json.dumps(with_value(claim, (*path, "surplus"), value)).replace('"surplus"', f'"{first}"')
        (tmp_path / "twice.json").write_text(twin)
        with pytest.raises(InputError, match=f"twice.json: the key {first} occurs twice"):
            read_certificate(tmp_path / "twice.json")


def test_what_is_missing_is_named(run: Path, tmp_path: Path) -> None:
    claim = claim_of(run)
    for key in claim.keys() - {"seconds"}:  # a note
        (tmp_path / "less.json").write_text(json.dumps({k: v for k, v in claim.items() if k != key}))
        with pytest.raises(InputError, match=rf"less.json: not a lipcert certificate \(.*{key}"):
            read_certificate(tmp_path / "less.json")


EDITS: dict[str, Callable[[Tree], Any]] = {
    "k_f": lambda c: c.update(k_f=c["k_f"] * 0.999),
    "k_features": lambda c: c.update(k_features=c["k_features"] * 0.999),
    "k_hf": lambda c: c.update(k_hf=c["k_hf"] * 0.999),
    "ε": lambda c: c["loss"].update(eps=0.2),
    "the slack": lambda c: c["loss"].update(slack=0.1),
    "a loss without slack": lambda c: c["loss"].update(slack=None),
    "another loss": lambda c: c["loss"].update(name="gloro"),
    "the seed": lambda c: c.update(seed=2),
    "class names exchanged": lambda c: c["model"]["classes"].reverse(),
    "the widths": lambda c: c["model"]["arguments"].update(widths=[5]),
    "a width of another type": lambda c: c["model"]["arguments"].update(widths=[4.0]),
    "a layer's bound": lambda c: c["layers"][0].update(upper=c["layers"][0]["upper"] * (1 - 1e-6)),
    "a layer's kind": lambda c: c["layers"][0].update(kind="Conv2d"),
    "a layer missing": lambda c: c["layers"].pop(),
    "a layer more": lambda c: c["layers"].append(c["layers"][0]),
    "a clean radius": lambda c: c["splits"]["val"]["clean"].update(radius=0.5),
    "a prover": lambda c: c["layers"][0].update(prover="gram"),
    "the pairs": lambda c: c["pairs"].update(median=c["pairs"]["median"] * 0.999),
    "the hash": lambda c: c.update(model_sha256="0" * 64),
    "a count": lambda c: c["splits"]["val"]["certified"][0].update(count=c["splits"]["val"]["samples"]),
    "a value": lambda c: c["splits"]["train"]["clean"].update(value=1.0),
    "an interval": lambda c: c["splits"]["train"]["clean"]["interval"].reverse(),
    "the radius": lambda c: c["splits"]["train"]["certified"][0].update(radius=0.5),
    "the data": lambda c: c["data"].update(noise=0.05),
    "the data's hash": lambda c: c["splits"]["val"].update(sha256="0" * 64),
    "the splits exchanged": lambda c: c.update(
        splits={"train": c["splits"]["val"], "val": c["splits"]["train"]}
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_claim_does_not_hold(edit: str, run: Path, tmp_path: Path) -> None:
    claim = claim_of(run)
    before = json.dumps(claim)
    EDITS[edit](claim)
    assert json.dumps(claim) != before
    (tmp_path / "edited.json").write_text(json.dumps(claim))
    assert broken(tmp_path / "edited.json", run)


def proved_constants(prover: Certifier) -> dict[Way, float]:
    layers: dict[Way, float] = {
        ("layers", i, "upper"): x.upper for i, x in enumerate(prover.proved.bound.layers)
    }
    return {
        **layers,
        ("k_features",): prover.proved.bound.value,
        ("k_f",): prover.k_f,
        **{("pairs", name): prover.k_f for name in ("smallest", "median", "largest")},  # one pair
    }


def test_a_constant_holds_from_the_proof_on(run: Path, prover: Certifier, tmp_path: Path) -> None:
    """One unit in the last place below it fails; the proof itself holds."""
    claim = claim_of(run)
    for path, proved in proved_constants(prover).items():
        below = math.nextafter(proved, -math.inf)
        assert not is_accepted(with_value(claim, path, below), run, tmp_path), path
        assert is_accepted(with_value(claim, path, proved), run, tmp_path), path


def test_claims_leave_room_for_the_proofs_of_other_machines(run: Path, prover: Certifier) -> None:
    for path, proved in proved_constants(prover).items():
        stated: Any = claim_of(run)
        for key in path:
            stated = stated[key]
        assert proved == stated == 1 or proved * (1 + 1e-8) <= stated <= proved * (1 + 3e-8)


@given(st.floats(1e-300, 1e300))
def test_what_is_claimed_is_nine_digits_above_the_proof(proved: float) -> None:
    stated = claimed("k_f", proved)
    assert float(f"{stated:.8e}") == stated
    assert stated == proved or proved * (1 + 0.999e-8) <= stated <= proved * (1 + 2.1e-8)
    assert claimed("k_f", stated) == stated


def test_an_infinite_constant_is_not_claimed() -> None:
    assert claimed("k_f", 0.0) == 0
    for value in (math.inf, 1.7976931348623157e308):
        with pytest.raises(InputError, match="k_f: expected a finite constant"):
            claimed("k_f", value)


def test_a_weight_changed_in_its_last_bit_does_not_hold(run: Path, tmp_path: Path) -> None:
    card = read_card(run / "model.safetensors")
    model = load(run)
    with torch.no_grad():
        model[0].weight.view(torch.int32)[0, 0] ^= 1  # type: ignore[index,union-attr,operator]
    save(model, card, tmp_path / "model.safetensors")
    assert "the weights are those of the certificate" in broken(
        run / "certificate.json", tmp_path / "model.safetensors"
    )


def test_class_names_exchanged_in_the_model_file_do_not_hold(run: Path, tmp_path: Path) -> None:
    """The hash of the weights does not cover them."""
    shutil.copytree(run, tmp_path / "run")
    file = tmp_path / "run" / "model.safetensors"
    save(load(run), replace(read_card(file), classes=("lower", "upper")), file)
    assert broken(tmp_path / "run", tmp_path / "run") == [
        "the class names are those of the model file",
        "train: the class names are those of the data",
        "val: the class names are those of the data",
    ]
    with pytest.raises(InputError, match="made for the classes lower, upper, the data has upper, lower"):
        certify_model(str(tmp_path / "run"), None, "val", None, "float64", "auto", False)


def test_the_wrong_model_does_not_hold(run: Path, tmp_path: Path) -> None:
    execute(read_recipe("moons-gloro", "smoke"), tmp_path / "other")
    assert broken(run / "certificate.json", tmp_path / "other")


@pytest.mark.parametrize(
    ("before", "after", "statement"),
    [
        ("eps: 0.15", "eps: 0.1", "with the loss cll, ε 0.15, slack 1e-12"),
        ("end: 1.0e-12", "end: 1.0e-10", "with the loss cll, ε 0.15, slack 1e-12"),
        ("seed: 1\n", "seed: 4\n", "made by the recipe moons-cll, seed 1"),
        ("name: moons-cll", "name: other", "made by the recipe moons-cll, seed 1"),
    ],
)
def test_the_training_is_that_of_the_recipe(
    before: str, after: str, statement: str, run: Path, tmp_path: Path
) -> None:
    shutil.copytree(run, tmp_path / "run")
    recipe = tmp_path / "run" / "recipe.yaml"
    assert before in recipe.read_text()
    recipe.write_text(recipe.read_text().replace(before, after))
    assert statement in broken(tmp_path / "run", tmp_path / "run")


def test_k_hf_is_made_of_the_loss_of_the_recipe(tmp_path: Path) -> None:
    """A temperature is no number of the certificate, but K_hf depends on it."""
    loss = ["loss={name: gloro, eps: 0.1, temperature: 4.0}", "schedule.loss.slack=null"]
    execute(read_recipe("moons-cll", "smoke", [*SMALL, *loss]), tmp_path / "run")
    claim = claim_of(tmp_path / "run")
    assert claim["k_hf"] == pytest.approx(4 * claim["k_f"], rel=1e-7)
    assert is_accepted(claim, tmp_path / "run", tmp_path)
    recipe = tmp_path / "run" / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("temperature: 4.0", "temperature: 5.0"))
    assert broken(tmp_path / "run", tmp_path / "run") == [f"k_hf ≤ {claim['k_hf']!r}"]


NOT_CERTIFICATES = {
    "nothing": b"",
    "cut short": b"{",
    "a list": b"[]",
    "empty": b"{}",
    "the format alone": b'{"format": 2}',
    "an earlier format": b'{"format": 1}',
    "a later format": b'{"format": 3}',
    "not UTF-8": b'{"format": "\xff"}',
    "a number without end": b'{"format": ' + b"9" * 5000 + b"}",
    "a number too large": b'{"format": 1e999}',
    "NaN": b'{"format": NaN}',
    "infinity": b'{"format": -Infinity}',
    "deep objects": b'{"a":' * 100_000,
    "deep lists": b'{"data":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "too long": b'{"format": 2' + b" " * (1 << 24) + b"}",
    "a key that is no text to print": b'{"\\u001b[31m\\n\\ud800": 1}',
}


@pytest.mark.parametrize("content", NOT_CERTIFICATES)
def test_what_is_not_a_certificate_is_refused_in_one_line(content: str, run: Path, cli, tmp_path) -> None:
    (tmp_path / "bad.json").write_bytes(NOT_CERTIFICATES[content])
    status, out, err = cli("verify", "bad.json", str(run))
    assert (status, out) == (2, "")
    assert err.startswith("lipcert: bad.json: ")
    assert err[:-1].isprintable()
    assert len(err) < 200


@pytest.mark.parametrize("depth", [10, 200, 400, 900])
def test_values_that_are_nested_are_refused(depth: int, run: Path, tmp_path: Path) -> None:
    claim = claim_of(run)
    deep = "[" * depth + "]" * depth
    for start in ('"data": {', '"arguments": {'):
        nested = json.dumps(claim).replace(start, f'{start}"surplus": {deep}, ')
        assert not is_accepted(nested, run, tmp_path)


@pytest.mark.parametrize("number", [10**18, 10**400, 10**4000])
def test_huge_numbers_are_refused(number: int, run: Path, tmp_path: Path) -> None:
    claim = claim_of(run)
    ways: list[Way] = [
        ("seed",),
        ("model", "num_classes"),
        ("splits", "val", "samples"),
        ("splits", "val", "clean", "count"),
        ("splits", "val", "clean", "value"),
        ("data", "seed"),
    ]
    for path in ways:
        assert not is_accepted(with_value(claim, path, number), run, tmp_path), path


def test_files_that_cannot_be_read(run: Path, cli, tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    for name in ("missing.json", "folder.json"):
        status, _, err = cli("verify", name, str(run))
        assert status == 2
        assert f"{name}" in err
        assert "cannot be read" in err
        assert err.count("\n") == 1


def test_a_run_that_cannot_be_written_to_is_verified(run: Path, cli, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    for path in [*(tmp_path / "run").iterdir(), tmp_path / "run"]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    assert cli("verify", "run")[0] == 0
    (tmp_path / "run").chmod(0o755)


def test_the_command_says_what_does_not_hold(run: Path, cli, tmp_path: Path) -> None:
    claim = claim_of(run)
    (tmp_path / "edited.json").write_text(json.dumps({**claim, "k_f": claim["k_f"] / 2}))
    for path, status, said in [
        (run / "certificate.json", 0, "every statement holds"),
        (tmp_path / "edited.json", 1, "1 statement does NOT hold"),
    ]:
        found, out, _ = cli("verify", str(path), str(run))
        assert found == status
        assert said in out
        assert "not a claim" in out
        assert "not checked" not in out


def test_text_of_the_file_is_only_text(run: Path, cli, tmp_path: Path) -> None:
    odd = "[bold]x[/bold]\x1b[31m\n\ud800" + 100 * "long "
    (tmp_path / "odd.json").write_text(json.dumps({**claim_of(run), "recipe": odd}))
    status, out, _ = cli("verify", "odd.json", str(run))
    assert status == 1
    assert r"[bold]x[/bold]\x1b[31m\n\ud800long" in out.replace("\n", "")
    assert "\x1b" not in out


def unchecked(checks: list[Check]) -> list[str]:
    return [check.statement for check in checks if check.is_unchecked]


def test_bounds_only_leaves_the_counts_unchecked(run: Path, cli, tmp_path: Path) -> None:
    checks = verify_file(run, None, bounds_only=True)
    assert unchecked(checks) == ["train: counts", "val: counts"]
    assert not any(check.holds is False for check in checks)
    status, out, _ = cli("verify", str(run), "--bounds-only")
    assert status == 0
    assert "not everything was checked" in out
    assert out.count("not checked") == 2
    claim = claim_of(run)
    claim["k_f"] /= 2
    (tmp_path / "edited.json").write_text(json.dumps(claim))
    assert cli("verify", "edited.json", str(run), "--bounds-only")[0] == 1
    status, _, err = cli("verify", str(run), "--bounds-only", "--data", ".")
    assert status == 2
    assert "leave out --data" in err


def test_without_its_data_a_certificate_cannot_be_checked(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LIPCERT_DATA", raising=False)
    for extra in ([], ["--data", "nowhere"]):
        status, out, err = cli("verify", "cifar10-4c3f-cll", *extra)
        assert (status, out) == (2, "")
        assert "cifar10: no cifar-10-batches-bin" in err
        assert "--bounds-only" in err
        assert err.count("\n") == 1


def test_data_is_found_where_certify_finds_it_or_where_it_is_said_to_be(cli, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    y = np.arange(60) % 2
    np.savez(tmp_path / "points.npz", x=generator.normal(size=(60, 2)) + 3 * y[:, None], y=y)
    data = "data={name: arrays, path: points.npz}"
    execute(read_recipe("moons-cll", "smoke", [data, "model.widths=[4]", "train.batch_size=20"]), "run")
    assert cli("verify", "run")[0] == 0
    Path("points.npz").rename("moved.npz")
    status, _, err = cli("verify", "run")
    assert status == 2
    assert "--bounds-only" in err
    assert cli("verify", "run", "--data", "moved.npz")[0] == 0
    assert cli("verify", "run", "--bounds-only")[0] == 0


def test_without_the_recipe_the_loss_cannot_be_checked(run: Path, cli, tmp_path: Path) -> None:
    for name in ("model.safetensors", "certificate.json"):
        shutil.copy(run / name, tmp_path)
    status, out, err = cli("verify", "certificate.json")
    assert status == 2
    assert out.count("not checked") == 3  # recipe and seed, loss, k_hf
    assert "no recipe.yaml beside the model; --bounds-only" in err
    assert cli("verify", "certificate.json", "--bounds-only")[0] == 0
    # What says nothing of the training needs no recipe.
    assert cli("certify", "model.safetensors", "--data", "moons", "--output", "alone.json")[0] == 0
    assert "k_hf" not in json.loads(Path("alone.json").read_text(encoding="utf-8"))
    assert cli("verify", "alone.json", "model.safetensors")[0] == 0


def test_certify_states_what_verify_checks(run: Path, cli) -> None:
    arguments = ["--split", "test", "--radii", "0.05", "--rounding", "float32", "--output", "c.json"]
    assert cli("certify", str(run), *arguments)[0] == 0
    again, before = json.loads(Path("c.json").read_text(encoding="utf-8")), claim_of(run)
    for key in ("model", "model_sha256", "k_f", "k_hf", "loss", "recipe", "seed"):
        assert again[key] == before[key]
    assert "seconds" not in again
    assert cli("verify", "c.json", str(run))[0] == 0


def test_a_tight_certificate_is_proved_again(run: Path, cli) -> None:
    assert cli("certify", str(run), "--split", "test", "--effort", "tight", "--output", "tight.json")[0] == 0
    tight, before = json.loads(Path("tight.json").read_text(encoding="utf-8")), claim_of(run)
    assert tight["effort"] == "tight"
    assert tight["k_f"] < before["k_f"]
    assert cli("verify", "tight.json", str(run))[0] == 0
    # Under another effort the same constants do not come out, so the effort cannot be exchanged.
    Path("tight.json").write_text(json.dumps({**tight, "effort": "exact"}), encoding="utf-8")
    assert cli("verify", "tight.json", str(run))[0] != 0


@pytest.mark.parametrize("data", [{}, {"name": ["moons"]}, {"name": None}])
def test_a_certificate_that_names_no_data(data: Tree, run: Path, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(json.dumps({**claim_of(run), "data": data}))
    with pytest.raises(InputError, match=r"not a lipcert certificate \(data.name"):
        verify_file(tmp_path / "c.json", str(run))


@pytest.mark.parametrize(
    ("mine", "theirs", "same"),
    [
        ("fourier", "fourier", True),
        ("gram-iteration", "fourier", True),  # certificates from before there was Gram iteration
        ("fourier", "gram-iteration", False),
        ("gram-iteration", "gram", False),
        ("cholesky", "cholesky", True),
        ("cholesky", "known", False),
    ],
)
def test_a_prover_may_replace_another_of_the_same_bound(mine: str, theirs: str, same: bool) -> None:
    assert _proves_as(mine, theirs) == same
