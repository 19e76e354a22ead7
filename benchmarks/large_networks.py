"""One step, one checkpoint, proofs and one certified batch of the paper's largest networks, and their memory.

Every part runs in a process of its own, with random images: `train` (a step of two samples, then a
checkpoint), `resume` (the state from the file, bit for bit, and another step), `prove` (the largest layer of
each kind) and `certify` (the whole proof, then one batch). The memory is the largest resident size of the
process; none may take more than 16 GB. Finished networks are kept in results/large-networks.json, and a
second start goes on with the others: `python benchmarks/large_networks.py [NAME...]`.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from lipcert.bounds.contract import plain_type
from lipcert.bounds.provers.proof_cache import fresh_proofs
from lipcert.bounds.tracing.program import Step, trace
from lipcert.certificates.certifier import Certifier
from lipcert.commands.support.allocator import keep_freed_memory
from lipcert.data import Dataset
from lipcert.hashing import tensors_sha256
from lipcert.recipes import Recipe, read_recipe
from lipcert.recipes.execution import build
from lipcert.recipes.splits import Splits
from lipcert.runs import Run
from lipcert.train import Hardware
from lipcert.train.state import Training
from lipcert.train.step import Single
from results import read_table, write_table

# Name, recipe.
NETWORKS = {
    "8C2F": "tiny-8c2f-cll",
    "CPL-XL": "cifar10-cpl-xl-cll",
    "SLL-XL": "cifar10-sll-xl-cll",
    "LipNeXt": "cifar10-lipnext",
    "Sandwich Tiny": "tiny-sandwich",
    "BRONet-L": "cifar10-bronet",
    "LipConv-20": "cifar10-lipconv20-cll",
}
SHAPES = {"cifar10": ((3, 32, 32), 10), "tiny-imagenet": ((3, 64, 64), 200)}
BATCH, LIMIT = 2, 16 * 10**9


class Generated(Splits):
    """Random images in the shape of a data set, two steps of them."""

    def of(self, recipe: Recipe, split: str) -> Dataset:
        shape, classes = SHAPES[recipe.data.name]
        generator = torch.Generator().manual_seed(0)
        pixels = torch.randint(0, 256, (2 * BATCH, *shape), dtype=torch.uint8, generator=generator)
        return Dataset(pixels, torch.arange(2 * BATCH) % classes, tuple(map(str, range(classes))))


def recipe_of(name: str) -> Recipe:
    return read_recipe(NETWORKS[name], None, [f"train.batch_size={BATCH}", "train.validate_every=0"])


def training(name: str, place: Path) -> tuple[Training, Single]:
    run = Run(place)
    run.checkpoint.parent.mkdir(parents=True, exist_ok=True)
    plan, _ = build(recipe_of(name), Generated())
    it = Training(plan, run, Hardware("cpu").launch())
    return it, Single(it)


def train(name: str, place: Path) -> dict[str, Any]:
    it, steps = training(name, place)
    start = time.process_time()
    steps.advance()
    middle, peak = time.process_time(), memory()
    steps.save(0.0)
    found = {"step": middle - start, "step GB": peak, "write": time.process_time() - middle}
    weights = tensors_sha256(it.plan.model.state_dict())
    (place / "weights.txt").write_text(weights, encoding="utf-8")
    count = sum(p.numel() for p in it.plan.model.parameters())
    return {**found, "parameters": count, "bytes": it.run.checkpoint.stat().st_size}


def resume(name: str, place: Path) -> dict[str, Any]:
    start = time.process_time()
    it, steps = training(name, place)
    seconds = time.process_time() - start
    same = tensors_sha256(it.plan.model.state_dict()) == (place / "weights.txt").read_text(encoding="utf-8")
    if it.step != 1 or not same:
        raise SystemExit(f"{name}: the checkpoint holds other weights than were trained")
    steps.advance()
    return {"read": seconds}


def layers_of_each_kind(steps: tuple[Step, ...]) -> list[Step]:
    """The layer with the most parameters of each type that has any."""
    largest: dict[type, tuple[int, Step]] = {}
    for step in steps:
        count, kind = sum(p.numel() for p in step.module.parameters()), plain_type(step.module)
        if count > largest.get(kind, (0, step))[0]:
            largest[kind] = count, step
    return [step for _, step in largest.values()]


def prove_layers(name: str, place: Path) -> dict[str, Any]:
    recipe = recipe_of(name)
    data = Generated().of(recipe, "train")
    model = recipe.make_model(recipe.make_card(data)).eval()
    found = []
    for step in layers_of_each_kind(trace(model, data.input_shape).steps):
        start = time.process_time()
        proof = step.rule.upper(step.module, step.input_shapes[0], recipe.certify.effort)
        found.append(f"{plain_type(step.module).__name__} {time.process_time() - start:.1f} ({proof.prover})")
    return {"layers": found}


def certify(name: str, place: Path) -> dict[str, Any]:
    recipe = recipe_of(name)
    data = Generated().of(recipe, "train")
    model = recipe.make_model(recipe.make_card(data)).eval()
    start = time.process_time()
    certifier = Certifier(model, data.input_shape, recipe.certify.effort)
    middle = time.process_time()
    certificate = certifier(data.floats(torch.arange(BATCH)), recipe.certify.rounding)
    if not bool((certificate.radius >= 0).all()):
        raise SystemExit(f"{name}: radii {certificate.radius}")
    return {"proof": middle - start, "batch": time.process_time() - middle, "K_f": certifier.k_f}


def memory() -> float:
    """The largest resident size so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def worker(part: str, name: str, place: str) -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))
    keep_freed_memory()  # as the command line does
    torch.set_num_threads(1)
    work = {"train": train, "resume": resume, "prove": prove_layers, "certify": certify}[part]
    with fresh_proofs():
        found = work(name, Path(place))
    print(json.dumps({**found, "GB": memory()}))


def asked(part: str, name: str, place: str) -> dict[str, Any]:
    """What a process of its own finds."""
    command = [sys.executable, __file__, "worker", part, name, place]
    found: dict[str, Any] = json.loads(subprocess.check_output(command, encoding="utf-8").splitlines()[-1])
    print(name, part, found, flush=True)
    return found


def trained(name: str) -> list[str]:
    """Cells of a step, a checkpoint and its resumption."""
    with TemporaryDirectory() as place:
        first, again = (asked(part, name, place) for part in ("train", "resume"))
    cells = [f"{first['parameters'] / 1e6:.1f}", f"{first['step']:.1f}", f"{first['step GB']:.1f}"]
    cells += [f"{first['bytes'] / 1e9:.2f}", f"{first['write']:.1f}", f"{first['GB']:.1f}"]
    return [*cells, f"{again['read']:.1f}", f"{again['GB']:.1f}"]


def proved(name: str) -> list[str]:
    """Cells of one layer of each kind."""
    found = asked("prove", name, ".")
    return [", ".join(found["layers"]), f"{found['GB']:.1f}"]


def certified(name: str) -> list[str]:
    """Cells of the whole proof and of one batch."""
    found = asked("certify", name, ".")
    return [f"{found['proof']:.0f}", f"{found['batch']:.1f}", f"{found['GB']:.1f}"]


PARTS = {"train": trained, "prove": proved, "certify": certified}
TITLES = {
    "train": [
        *("million parameters", "step, s", "step, GB", "checkpoint, GB", "write, s", "peak, GB"),
        *("resume, s", "resume, GB"),
    ],
    "prove": ["one layer of each kind: s (prover)", "layers, GB"],
    "certify": ["whole proof, s", "certified batch, s", "certificate, GB"],
}
NOTE = (
    f"processor time on one thread, random images, batch {BATCH}; memory is the largest resident size of a "
    "process; – was not run"
)


def main(names: list[str]) -> None:
    """Fill the cells that are missing; those of the given networks are measured again."""
    width = sum(map(len, TITLES.values()))
    rows = {name: [name, *["–"] * width] for name in NETWORKS}
    rows |= {row[0]: row for row in read_table("large-networks") if row[0] in rows and len(row) == 1 + width}
    start = 1
    for part, measure in PARTS.items():
        columns = slice(start, start + len(TITLES[part]))
        start = columns.stop
        for name in names or NETWORKS:
            if names or "–" in rows[name][columns]:
                rows[name][columns] = measure(name)
                titles = ["network", *(title for group in TITLES.values() for title in group)]
                write_table("large-networks", NOTE, titles, [rows[name] for name in NETWORKS])


if __name__ == "__main__":
    worker(*sys.argv[2:]) if sys.argv[1:2] == ["worker"] else main(sys.argv[1:])
