"""Training steps and predictions of networks of 4C3F's shape in three libraries, against plain torch.

Batch 128, one thread, interleaved in one process; the obvious network with cross-entropy is the base. Run by
benchmarks/peers.py steps, in its environment. Writes results/peers-steps.json.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable

import obvious
import torch
from peer_networks import ENTRIES, Entry, plain
from timing import interleaved, print_ratios
from torch import nn

from results import write_table

BATCH, BASE = 128, "plain torch, cross-entropy"


def step_of(entry: Entry, x: torch.Tensor, y: torch.Tensor) -> Callable[[], None]:
    """Return a training step."""
    optimizer = entry.optimizer(entry.rates[0])

    def step() -> None:
        error = entry.error(x, y)
        optimizer.zero_grad()
        error.backward()
        optimizer.step()

    return step


def prediction_of(model: nn.Module, x: torch.Tensor) -> Callable[[], torch.Tensor]:
    """Return a prediction without gradients."""

    @torch.no_grad()
    def predict() -> torch.Tensor:
        logits: torch.Tensor = model(x)
        return logits

    return predict


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    x, y = torch.rand(BATCH, 3, 32, 32), torch.randint(10, (BATCH,))
    base = obvious.c4f3()
    adam = torch.optim.Adam(base.parameters(), lr=1e-3, fused=True)
    steps = {BASE: obvious.training_step(base, lambda: (x, y), adam)}
    entries = {name: make() for name, make in ENTRIES.items()}
    steps |= {name: step_of(entry, x, y) for name, entry in entries.items()}
    trained = print_ratios(interleaved(steps, rounds), BASE)
    predictions = {BASE: prediction_of(base.eval(), x)}
    predictions |= {name: prediction_of(entry.model.eval(), x) for name, entry in entries.items()}
    exported = {f"{name}, exported": prediction_of(plain(e.model), x) for name, e in entries.items()}
    predicted = print_ratios(interleaved({**predictions, **exported}, rounds), BASE)
    table = [
        [name, str(trained[name]), str(predicted[name]), str(predicted[f"{name}, exported"])]
        for name in entries
    ]
    note = "4C3F's shape, batch 128, one thread, interleaved: ratios to plain torch, medians and quartiles"
    write_table(
        "peers-steps",
        note,
        ["library", "training step", "prediction", "prediction, plain layers"],
        table,
        command=shlex.join(["python", "benchmarks/peers.py", "steps", *sys.argv[1:]]),
    )


if __name__ == "__main__":
    main()
