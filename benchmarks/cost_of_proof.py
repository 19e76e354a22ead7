"""What proofs and rounding cost: certified accuracy with estimated, with proved constants, for each rounding.

Give run directories; writes results/cost-of-proof.json: `python benchmarks/cost_of_proof.py runs/moons-cll`
"""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path

import torch
from torch import Tensor

from lipcert import Bounded, certifier
from lipcert.atomic import write_json
from lipcert.certificate import certified_accuracy
from lipcert.environment import environment
from lipcert.recipes.certifying import Subject


def estimated_radius(it: Subject, x: Tensor) -> Tensor:
    """What the field reports: power iteration to convergence, no regard to rounding."""
    model = it.model.double()
    lip = Bounded(model, it.data.input_shape).converge()
    with torch.no_grad():
        logits = model(x.double())
        top = logits.argmax(dim=1)
        quotient = (logits.gather(1, top[:, None]) - logits) / lip.rows(top)
    return quotient.scatter(1, top[:, None], torch.inf).amin(dim=1)


def rows(source: str) -> list[list[str]]:
    """A row a kind of certificate."""
    it = Subject.open(source, None, "test", None, "float64", "auto")
    x, y = it.data.floats(slice(None)), it.data.y
    certificates = {"proved, rounding ignored": it.prover(x, "ignored")}
    certificates["proved, float64"] = it.prover(x, "float64")
    certificates["proved, float32 as deployed"] = it.prover(x, "float32")
    certificates["proved fast, float64"] = certifier(it.model, it.data.input_shape, "fast")(x)
    radius = {name: c.radius for name, c in certificates.items()}
    base = certificates["proved, float64"]
    radius = {"estimated, rounding ignored": estimated_radius(it, x), **radius}
    found = []
    for name, values in radius.items():
        certificate = type(base)(base.prediction, values, base.rival, base.rounding)
        accuracies = certified_accuracy(certificate, y, it.radii)
        shown = " / ".join(f"{100 * a.value:.2f}" for a in accuracies)
        lost = float((base.radius - values).abs().max())
        found.append([Path(source).name, name, f"{float(values.mean()):.9f}", f"{lost:.2g}", shown])
        print(*found[-1], sep="  ", flush=True)
    return found


def main() -> None:
    sources = sys.argv[1:]
    result = {
        "command": " ".join(["python benchmarks/cost_of_proof.py", *sources]),
        "note": "test split; differences of a radius are to the default, proved with float64 rounding",
        "date": date.today().isoformat(),
        "environment": environment(),
        "titles": [
            "run",
            "certificate",
            "mean radius",
            "largest difference",
            "CRA [%]",
        ],
        "table": [row for source in sources for row in rows(source)],
    }
    write_json(Path("results/cost-of-proof.json"), result)


if __name__ == "__main__":
    main()
