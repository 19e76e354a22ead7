"""Long proofs are kept, and only for exactly the weights they are about."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from lipcert.bounds import upper
from lipcert.bounds.contract import Proof
from lipcert.bounds.provers import proof_cache as memory
from lipcert.bounds.provers.proof_cache import fresh_proofs, remembered


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(memory, "_LONG", -1.0)
    monkeypatch.setattr(memory, "_folder", lambda: tmp_path / "proofs")
    return tmp_path / "proofs"


class Prover:
    """Counts how often it is asked."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> Proof:
        self.times += 1
        return Proof(1.5, "gram")


def test_a_proof_is_made_once(folder: Path) -> None:
    prove, weight = Prover(), torch.randn(3, 4)
    first, second = (remembered(weight, ("same", 1), prove) for _ in range(2))
    assert first == second == Proof(1.5, "gram")
    assert prove.times == 1
    assert len(list(folder.iterdir())) == 1


def test_another_bit_another_setting_other_code_are_another_proof(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prove, weight = Prover(), torch.randn(3, 4)
    remembered(weight, "a", prove)
    changed = weight.clone()
    changed[1, 2] = torch.nextafter(changed[1, 2], torch.tensor(9.0))
    remembered(changed, "a", prove)
    remembered(weight, "b", prove)
    remembered(weight.double(), "a", prove)
    monkeypatch.setattr(memory, "_PROVERS", "corrected")
    remembered(weight, "a", prove)
    assert prove.times == 5


@pytest.mark.parametrize("damage", [b"", b"{", b'{"upper": "0x1p-3", "prover": "gram", "sum": ""}', b"[]"])
def test_a_damaged_entry_is_proved_again(folder: Path, damage: bytes) -> None:
    prove, weight = Prover(), torch.randn(3, 4)
    remembered(weight, "a", prove)
    (entry,) = folder.iterdir()
    entry.write_bytes(damage)
    assert remembered(weight, "a", prove) == Proof(1.5, "gram")
    assert prove.times == 2


def test_fresh_proofs_ask_nobody(folder: Path) -> None:
    prove, weight = Prover(), torch.randn(3, 4)
    remembered(weight, "a", prove)
    with fresh_proofs():
        remembered(weight, "a", prove)
    assert prove.times == 2


def test_a_folder_that_cannot_be_made_costs_nothing_but_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setattr(memory, "_LONG", -1.0)
    monkeypatch.setattr(memory, "_folder", lambda: tmp_path / "file" / "proofs")
    assert remembered(torch.zeros(2), "a", Prover()) == Proof(1.5, "gram")


def test_layers_of_one_weight_and_two_geometries_do_not_meet(folder: Path) -> None:
    small, large = nn.Conv2d(2, 2, 3, padding=1), nn.Conv2d(2, 2, 3, padding=0)
    large.weight = small.weight
    values = [
        upper(conv, (2, n, n), effort=effort).value  # type: ignore[arg-type]
        for conv in (small, large)
        for n in (14, 16)
        for effort in ("exact", "fast")
    ]
    assert len(list(folder.iterdir())) == 8
    assert len(set(values)) >= 6


def test_short_proofs_are_not_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(memory, "_folder", lambda: tmp_path / "proofs")
    upper(nn.Linear(3, 3), (3,))
    assert not (tmp_path / "proofs").exists()


def test_the_key_depends_on_the_code_of_provers_rules_and_layers() -> None:
    read = []
    original = Path.read_bytes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_bytes", lambda self: read.append(self) or original(self))
        memory._fingerprint()
    names = {"/".join(path.parts[-3:]) for path in read}
    assert {"bounds/provers/gram.py", "bounds/rules/linear.py", "lipcert/nn/soc.py"} <= names
