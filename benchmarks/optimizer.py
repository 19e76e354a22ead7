"""The optimiser's part of a training step of 4C3F: Adam and Muon, batch 128, CLL, one and two threads.

Newton and Schulz as the authors of Muon have it, five steps on the matrix itself in float32, is there for
comparison. Images are noise: the time does not depend on them. Writes results/optimizer.json.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from unittest.mock import patch

import step
import torch
from timing import interleaved
from torch import Tensor

from lipcert.train.optimizers import MakeOptimizer
from lipcert.train.optimizers import muon as module
from lipcert.train.optimizers.adam import adam
from lipcert.train.optimizers.muon import muon
from lipcert.train.step import Single
from results import write_table

ROUNDS = 25


Way = Callable[[Sequence[Tensor], Sequence[Tensor], Sequence[float]], None]


def newton_schulz(
    parameters: Sequence[Tensor], directions: Sequence[Tensor], lengths: Sequence[float]
) -> None:
    """Five steps with the numbers of Jordan et al., in place of `subtract_orthogonalised`."""
    a, b, c = 3.4445, -4.7750, 2.0315
    for p, matrix, length in zip(parameters, directions, lengths, strict=True):
        x = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
        x = x / x.norm()
        for _ in range(5):
            s = x @ x.T
            x = torch.addmm(x, torch.addmm(s, s, s, beta=b, alpha=c), x, beta=a)
        step = x if matrix.shape[0] <= matrix.shape[1] else x.T
        p.sub_(step.reshape(p.shape), alpha=length)


def by_torch_alone(
    parameters: Sequence[Tensor], directions: Sequence[Tensor], lengths: Sequence[float]
) -> None:
    """Take torch's own product of matrices, MKL's, where ours takes oneDNN's."""
    with (
        patch.object(module, "product", torch.matmul),
        patch.object(module, "is_worthwhile", lambda left, right: False),
    ):
        module_steps(parameters, directions, lengths)


module_steps = module.subtract_orthogonalised


def training(make: MakeOptimizer) -> Single:
    """With the constants improved at every step, as the recipe for short trainings has it."""
    return step.training("4c3f", "engine, CLL", optimizer=make, turns=1)


def measure(threads: int) -> list[list[str]]:
    torch.set_num_threads(threads)
    works: dict[str, tuple[Single, Way]] = {
        "Adam": (training(adam), module.subtract_orthogonalised),
        "Muon": (training(muon), module.subtract_orthogonalised),
        "Muon, products by torch alone": (training(muon), by_torch_alone),
        "Muon, Newton and Schulz": (training(muon), newton_schulz),
    }

    def whole(name: str) -> None:
        steps, way = works[name]
        with patch.object(module, "subtract_orthogonalised", way):
            steps.advance()

    def alone(name: str) -> None:
        steps, way = works[name]
        with patch.object(module, "subtract_orthogonalised", way):
            steps.training.optimizer.step()

    jobs = {f"{kind} {name}": partial(f, name) for name in works for kind, f in (("w", whole), ("a", alone))}
    timings = interleaved(jobs, rounds=ROUNDS)
    return [
        [
            name,
            str(threads),
            str(timings[f"a {name}"].ratio(timings[f"w {name}"])),
            str(timings[f"w {name}"].ratio(timings["w Adam"])),
        ]
        for name in works
    ]


if __name__ == "__main__":
    rows = [row for threads in (1, 2) for row in measure(threads)]
    for row in rows:
        print(*row, sep="  ")
    note = "4C3F, batch 128, CLL, interleaved in one process, medians and quartiles"
    write_table(
        "optimizer", note, ["optimiser", "threads", "its part of a step", "a step / one with Adam"], rows
    )
