"""What proofs and rounding cost: certified accuracy with estimated, with proved constants, for each rounding.

Give run directories; writes results/cost-of-proof.json: `python benchmarks/cost_of_proof.py runs/moons-cll`
"""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import torch
from torch import Tensor

from lipcert import Bounded, certifier
from lipcert.certificates.certificate import certified_accuracy
from lipcert.certificates.verification import certify_data
from lipcert.commands.work.certify_model import Subject
from results import write_table


@torch.no_grad()
def estimated_radius(it: Subject) -> Tensor:
    """What the field reports: power iteration to convergence, no regard to rounding."""
    model = copy.deepcopy(it.model).double()
    lip = Bounded(model, it.data.input_shape).converge()
    found = []
    for index in torch.split(torch.arange(len(it.data)), 512):
        logits = model(it.data.floats(index, torch.float64))
        top = logits.argmax(dim=1)
        quotient = (logits.gather(1, top[:, None]) - logits) / lip.rows(top)
        found.append(quotient.scatter(1, top[:, None], torch.inf).amin(dim=1))
    return torch.cat(found)


def rows(source: str) -> list[list[str]]:
    """A row a kind of certificate."""
    it = Subject.open(source, None, "test", None, "exact")
    data, y = it.data, it.data.y
    fast = certifier(it.model, data.input_shape, "fast")
    base = certify_data(it.prover, data, "float64")
    radius = {
        "estimated, rounding ignored": estimated_radius(it),
        "proved, rounding ignored": certify_data(it.prover, data, "ignored").radius,
        "proved, float64": base.radius,
        "proved, float32 as deployed": certify_data(it.prover, data, "float32").radius,
        "proved fast, float64": certify_data(fast, data, "float64").radius,
    }
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
    note = "test split; differences of a radius are to the default, proved with float64 rounding"
    titles = [
        "run",
        "certificate",
        "mean radius",
        "largest difference",
        "CRA [%]",
    ]
    write_table("cost-of-proof", note, titles, [row for source in sources for row in rows(source)])


if __name__ == "__main__":
    main()
