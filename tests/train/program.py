"""A small training for `test_processes.py`.

program.py OUTPUT DEVICES [stop=STEP] [die=RANK] [model=NAME] [optimizer=NAME]
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import torch
from torch import nn

from lipcert.certificates.certifier import Certifier
from lipcert.certificates.verification import certify_data
from lipcert.data import Dataset
from lipcert.data.augmentations.standard import Standard
from lipcert.errors import InterruptedRunError
from lipcert.losses import CLL
from lipcert.nn import AOLConv2d, CPLConv2d, LLNLinear, MinMax, SandwichConv2d, SLLLinear, SOCConv2d
from lipcert.runs import Run
from lipcert.train import Hardware, Plan
from lipcert.train.hardware import is_first_process, shard_of
from lipcert.train.loop import fit
from lipcert.train.optimizers.adam import adam
from lipcert.train.optimizers.muon import muon
from lipcert.train.step import Single

MODELS = {
    "plain": lambda: [nn.Conv2d(1, 4, 3, 2, 1), MinMax(), nn.Flatten(), nn.Linear(36, 8)],
    "batch": lambda: [nn.Conv2d(1, 4, 3, 2, 1), nn.BatchNorm2d(4), MinMax(), nn.Flatten(), nn.Linear(36, 8)],
    # Layers that follow their norms by vectors of their own.
    "built": lambda: [
        SOCConv2d(1, 4, stride=2),
        MinMax(),
        CPLConv2d(4, 3),
        SandwichConv2d(4, 4),
        AOLConv2d(4, 4, 3, padding=1),
        nn.Flatten(),
        SLLLinear(36, 5),
        LLNLinear(36, 8),
    ],
}


def plan(model: str = "plain", optimizer: str = "adam") -> Plan:
    """Batches of 50 and a last one of a single sample, of which most processes and pieces get nothing."""
    torch.manual_seed(0)
    x = torch.randint(0, 256, (501, 1, 6, 6), dtype=torch.uint8)
    y = (x.float().mean(dim=(1, 2, 3)) > 127).long()
    return Plan(
        model=nn.Sequential(*MODELS[model](), MinMax(), nn.Linear(8, 2)).double(),
        loss=CLL(eps=0.1, slack=0.1, lam=1e-3),
        optimizer=partial({"adam": adam, "muon": muon}[optimizer], lr=1e-3),
        train=Dataset(x, y, ("dark", "bright")),
        val=Dataset(x[:97], y[:97], ("dark", "bright")),
        validate_every=1,
        epochs=2,
        batch_size=50,
        seed=1,
        augmentation=Standard(crop=1, flip=True, rotate=5.0, jitter=0.2),
        accumulate=2,
        clip=1.0,
        ema=0.9,
    )


def main(output: str, devices: str, *options: str) -> None:
    chosen = dict(option.split("=") for option in options)
    torch.set_num_threads(1)
    run, it = Run(output), plan(chosen.get("model", "plain"), chosen.get("optimizer", "adam"))
    if is_first_process():
        run.start({}, resume=True, overwrite=False)
    fabric = Hardware("cpu", devices, strategy="ddp").launch()
    fabric.barrier()
    advance, trainings = Single.advance, []

    def advance_or_stop(steps: Single) -> None:
        trainings[:] = [steps.training]
        if fabric.global_rank == int(chosen.get("die", -1)):
            raise TypeError("died")
        advance(steps)
        if trainings[0].step == int(chosen.get("stop", -1)):
            trainings[0].save()
            raise InterruptedRunError("stopped")

    Single.advance = advance_or_stop  # type: ignore[method-assign]
    fit(it, run, fabric)
    shard = shard_of(fabric)
    torch.save(it.model.state_dict(), Path(output) / f"trained{fabric.global_rank}.pt")
    shard.share(it.model)
    certificate = certify_data(Certifier(it.model.eval(), (1, 6, 6), shard=shard), it.train, shard=shard)
    found = {**trainings[0].bounded.state_dict(), "radius": certificate.radius, "rival": certificate.rival}
    torch.save(found, Path(output) / f"rank{fabric.global_rank}.pt")


if __name__ == "__main__":
    main(*sys.argv[1:])
