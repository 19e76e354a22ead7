"""Cache long proofs on disk, under the hash of everything they depend on.

These are the weights to the last bit, the geometry, the effort, the code of the provers, and torch's version.
`lipcert verify` never reads the cache: see `fresh_proofs`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path

import platformdirs
import torch
from torch import Tensor

import lipcert
from lipcert.atomic import write_json
from lipcert.bounds.contract import Proof
from lipcert.hashing import tensors_sha256

# Shorter proofs are not worth a file.
_LONG = 1.0  # seconds

_asked: ContextVar[bool] = ContextVar("_asked", default=True)


@contextlib.contextmanager
def fresh_proofs() -> Iterator[None]:
    """Prove every bound from the weights inside this context, without the cache."""
    token = _asked.set(False)
    try:
        yield
    finally:
        _asked.reset(token)


def remembered(weight: Tensor, settings: object, prove: Callable[[], Proof]) -> Proof:
    """Return the proof, from the cache if it took long. The repr of `settings` covers all but the weights."""
    if not _asked.get() or weight.is_meta:
        return prove()
    path = _folder() / f"{_key(weight, settings)}.json"
    known = _read(path)
    if known is not None:
        return known
    start = time.perf_counter()
    proof = prove()
    if time.perf_counter() - start > _LONG:
        _write(path, proof)
    return proof


def _folder() -> Path:
    return platformdirs.user_cache_path("lipcert") / "proofs"


def _key(weight: Tensor, settings: object) -> str:
    what = f"{tensors_sha256({'weight': weight})} {settings!r} {_PROVERS} {torch.__version__}"
    return hashlib.sha256(what.encode()).hexdigest()


def _fingerprint() -> str:
    digest = hashlib.sha256()
    package = Path(lipcert.__file__).parent
    for path in sorted([*(package / "bounds").rglob("*.py"), *(package / "nn").rglob("*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


# The fingerprint of the proving code, taken at import: the files may change during a long run.
_PROVERS = _fingerprint()


def _read(path: Path) -> Proof | None:
    """Read a proof; None for a missing or damaged file, so that the bound is proved again."""
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
        proof = Proof(float.fromhex(entry["upper"]), str(entry["prover"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return proof if entry.get("sum") == _sum(path, proof) else None


def _write(path: Path, proof: Proof) -> None:
    entry = {"upper": proof.value.hex(), "prover": proof.prover, "sum": _sum(path, proof)}
    with contextlib.suppress(OSError):  # a disk that cannot be written costs time, not correctness
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, entry)


def _sum(path: Path, proof: Proof) -> str:
    """Tie the number to its file name, so that a damaged file is detected."""
    return hashlib.sha256(f"{path.name} {proof.value.hex()} {proof.prover}".encode()).hexdigest()
