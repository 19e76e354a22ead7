"""Constants of pairs of classes from several dense layers together: what `effort="tight"` costs and gains.

The bundled model cifar10-4c3f-cll on the 10,000 test images of CIFAR-10. Both rows have the same proved norms
of the layers before, those of `effort="auto"`. Seconds are of one core. Writes results/tight-tails.json.
"""

from __future__ import annotations

import time

import torch
from torch import Tensor

import lipcert
from lipcert.bounds.provers.proof_cache import fresh_proofs
from lipcert.certificates.certificate import Certificate, certified_accuracy
from lipcert.certificates.certifier import Certifier
from lipcert.certificates.radius import nearest_rival
from lipcert.certificates.tails.dense_tail import DenseTail
from lipcert.certificates.tails.tight_pairs import tight_pairs
from lipcert.data import Dataset, load
from results import write_table

MODEL = "cifar10-4c3f-cll"


def margins(prover: Certifier, data: Dataset) -> tuple[Tensor, Tensor]:
    """Return the predicted classes and the margins to all rivals, as the model computes them."""
    x = torch.split(torch.arange(len(data)), 500)
    logits = torch.cat([prover.proved.model(data.floats(some)).double() for some in x])
    top = logits.argmax(1)
    return top, logits.gather(1, top[:, None]) - logits


def certified(top: Tensor, margin: Tensor, pairs: Tensor, labels: Tensor) -> list[str]:
    """Return the certified accuracies at 36/255, 72/255 and 108/255 in percent."""
    radius, rival = nearest_rival(margin, pairs[top], top)
    found = certified_accuracy(Certificate(top, radius, rival, "ignored"), labels)
    return [f"{100 * one.value:.2f}" for one in found]


@torch.no_grad()
def main() -> None:
    """Prove K_ij by the product and by multipliers, and certify with both."""
    prover = lipcert.certifier(lipcert.load(MODEL), (3, 32, 32))
    proved = prover.proved
    tail = DenseTail.of(proved.features, proved.bound, proved.head.rows)
    assert tail is not None
    start = time.process_time()
    with fresh_proofs():
        tight = torch.minimum(proved.pairs, tight_pairs(tail))
    seconds = time.process_time() - start
    data = load("cifar10", split="test")
    top, margin = margins(prover, data)
    apart = ~torch.eye(proved.classes, dtype=torch.bool)
    rows = []
    for name, pairs, took in (("product of norms", proved.pairs, 0.0), ("tight", tight, seconds)):
        less = 100 * (1 - pairs[apart] / proved.pairs[apart])
        gains = [f"{float(one):.2f}" for one in (less.min(), less.mean(), less.max())]
        rows.append([name, f"{took:.0f}", *gains, *certified(top, margin, pairs, data.y)])
    titles = ["K_ij from", "seconds", "least %", "mean %", "most %", "CRA 36", "CRA 72", "CRA 108"]
    write_table("tight-tails", f"{MODEL}, {len(data)} test images, rounding ignored", titles, rows)


if __name__ == "__main__":
    main()
