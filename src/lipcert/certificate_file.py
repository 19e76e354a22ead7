"""What a certificate says, as plain data, and whether it holds.

The file names the weights and the data by their hashes, gives every layer's proved bound, and the
certified accuracies with their counts. `verify` proves and counts again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import track
from torch import Tensor, nn

from lipcert.bounds.memory import fresh_proofs
from lipcert.certificate import (
    Certificate,
    CertifiedAccuracy,
    Certifier,
    Rounding,
    binomial_interval,
    certified_accuracy,
    certifier,
)
from lipcert.data import Dataset
from lipcert.environment import environment
from lipcert.errors import InputError
from lipcert.hashing import tensors_sha256
from lipcert.shards import ALONE, Shard

# Another machine's sums may differ in the last bits; a proof is repeated to this precision.
_SAME = 1e-9

_FORMAT = 1

# Samples certified at once.
_BATCH = 512


def describe(
    model: nn.Module,
    prover: Certifier,
    source: Mapping[str, Any],
    splits: Mapping[str, tuple[Dataset, Certificate]],
    radii: Sequence[float],
) -> dict[str, Any]:
    """What was certified of the splits of the data that `source` names, ready for JSON."""
    ((rounding, balls),) = {(certificate.rounding, certificate.balls) for _, certificate in splits.values()}
    return {
        "format": _FORMAT,
        "environment": environment(),
        "model_sha256": tensors_sha256(model.state_dict()),
        "rounding": rounding,
        "local": list(balls),
        "effort": prover.effort,
        "k_features": prover.bound.value,
        "k_f": prover.k_f,
        "pairs": _summary(prover),
        "layers": [asdict(layer) for layer in prover.bound.layers],
        "data": dict(source),
        "splits": {name: _accuracies(*parts, radii) for name, parts in splits.items()},
    }


def _summary(prover: Certifier) -> dict[str, float]:
    """The proved constants K_ij of all pairs of classes, in three numbers."""
    off_diagonal = ~torch.eye(prover.classes, dtype=torch.bool)
    pairs = prover.pairs[off_diagonal]
    return {"smallest": float(pairs.min()), "median": float(pairs.median()), "largest": float(pairs.max())}


def certify_data(
    prover: Certifier,
    data: Dataset,
    rounding: Rounding = "float64",
    shard: Shard = ALONE,
    local: Sequence[float] = (),
) -> Certificate:
    """Of every sample, batch by batch; several processes share the samples, and all get the whole."""
    mine = shard.mine(torch.arange(len(data)))
    batches = torch.split(mine, _BATCH)
    console = Console(stderr=True)
    quiet = not console.is_terminal or len(batches) < 4 or shard.index > 0
    shown = track(batches, "certifying", console=console, transient=True, disable=quiet)
    parts = [prover(data.floats(batch), rounding, local=local) for batch in shown if len(batch)]

    def column(name: str, kind: torch.dtype) -> Tensor:
        own = torch.cat([torch.zeros(0, dtype=kind), *(getattr(part, name) for part in parts)])
        return shard.gathered(own, mine, len(data))

    return Certificate(
        column("prediction", torch.int64),
        column("radius", torch.float64),
        column("rival", torch.int64),
        rounding,
        tuple(local),
    )


def _accuracies(data: Dataset, certificate: Certificate, radii: Sequence[float]) -> dict[str, Any]:
    clean, *certified = certified_accuracy(certificate, data.y, [0.0, *radii])
    return {
        "sha256": tensors_sha256({"x": data.x, "y": data.y}),
        "samples": len(data),
        "clean": _row(clean),
        "certified": [_row(c) for c in certified],
    }


def _row(accuracy: CertifiedAccuracy) -> dict[str, Any]:
    return {
        "radius": accuracy.radius,
        "count": accuracy.count,
        "value": accuracy.value,
        "interval": list(accuracy.interval),
    }


_PARTS: dict[str, type] = {
    "model_sha256": str,
    "rounding": str,
    "k_features": float,
    "effort": str,
    "k_f": float,
    "pairs": dict,
    "layers": list,
    "data": dict,
    "splits": dict,
}


@dataclass(frozen=True)
class Check:
    """One statement of a certificate: True it holds, False it does not, None it was not checked."""

    statement: str
    holds: bool | None


def read_certificate(path: Path) -> dict[str, Any]:
    """The certificate in a file, with everything `verify` needs."""
    try:
        claim = json.loads(path.read_text())
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError:
        raise InputError(f"{path}: cut short, or not JSON") from None
    if not isinstance(claim, dict):
        raise InputError(f"{path}: not a lipcert certificate")
    for key, kind in _PARTS.items():
        if not isinstance(claim.get(key), kind):
            raise InputError(f"{path}: not a lipcert certificate ({key} is missing or of the wrong kind)")
    return claim


def verify(
    claim: Mapping[str, Any], model: nn.Module, input_shape: Sequence[int], splits: Mapping[str, Dataset]
) -> list[Check]:
    """Prove the bounds again from the weights, and count again on the splits that are given."""
    try:
        return list(_checks(claim, model, input_shape, splits))
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, ZeroDivisionError, AttributeError) as error:
        raise InputError(
            f"certificate: something in it is missing or of the wrong kind ({error!r})"
        ) from None


def _checks(
    claim: Mapping[str, Any], model: nn.Module, input_shape: Sequence[int], splits: Mapping[str, Dataset]
) -> Iterator[Check]:
    yield Check("the format is known", claim.get("format") == _FORMAT)
    same_weights = tensors_sha256(model.state_dict()) == claim["model_sha256"]
    yield Check("the weights are those of the certificate", same_weights)
    with fresh_proofs():
        prover = certifier(model, input_shape, claim["effort"])
    layers = [asdict(layer) for layer in prover.bound.layers]
    yield Check("the layers are those of the certificate", _outline(layers) == _outline(claim["layers"]))
    for mine, theirs in zip(layers, claim["layers"], strict=False):
        yield Check(f"{mine['path']}: K ≤ {theirs['upper']:.9g}", _same(mine["upper"], theirs["upper"]))
    for name, value in (("k_features", prover.bound.value), ("k_f", prover.k_f)):
        yield Check(f"{name} ≤ {claim[name]:.9g}", _same(value, claim[name]))
    for name, value in _summary(prover).items():
        yield Check(f"the {name} K_ij ≤ {claim['pairs'][name]:.9g}", _same(value, claim["pairs"][name]))
    if "k_hf" in claim:
        yield Check("k_hf, which depends on the loss", None)
    for name, split in claim["splits"].items():
        yield Check(f"{name}: values and intervals follow from the counts", _consistent(split))
        if name not in splits:
            yield Check(f"{name}: counts", None)
            continue
        radii = [row["radius"] for row in split["certified"]]
        certificate = certify_data(prover, splits[name], claim["rounding"], local=claim.get("local", ()))
        again = _accuracies(splits[name], certificate, radii)
        yield Check(f"{name}: the data is that of the certificate", again["sha256"] == split["sha256"])
        for row, counted in zip(_rows(split), _rows(again), strict=True):
            statement = f"{name}: {row['count']} of {split['samples']} at radius {row['radius']:.4g}"
            yield Check(statement, row["count"] == counted["count"] and again["samples"] == split["samples"])


def _outline(layers: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, tuple[int, ...], str]]:
    return [(layer["path"], layer["kind"], tuple(layer["shape"]), layer["prover"]) for layer in layers]


def _rows(split: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [split["clean"], *split["certified"]]


def _consistent(split: Mapping[str, Any]) -> bool:
    total = split["samples"]
    return split["clean"]["radius"] == 0 and all(
        0 <= row["count"] <= total
        and row["value"] == row["count"] / total
        and len(row["interval"]) == 2
        and all(map(_same, row["interval"], binomial_interval(row["count"], total)))
        for row in _rows(split)
    )


def _same(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=_SAME)
