"""Certified radii of the same trained networks: proved, on balls, by CROWN, and by power iteration.

CROWN is auto_LiRPA's, in an environment of its own (benchmarks/peers.py makes it). "Broken" counts samples
with a radius beyond the nearest adversarial example that foolbox finds. Writes results/peers-radii.json:
`python benchmarks/peer_radii.py PYTHON-WITH-AUTO-LIRPA RUN-OF-A-THIN-4C3F`
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import foolbox
import numpy as np
import torch
from torch import Tensor, nn

from lipcert import certifier
from lipcert.bounds.bounded import binary_as_two
from lipcert.bounds.krylov import first_vector
from lipcert.bounds.tracing.program import trace
from lipcert.certificates.loading import load
from lipcert.certificates.radius import rival_radii, unrounded
from lipcert.data import load as load_data
from lipcert.nn import MinMax
from results import write_table

POWER = (1, 5, 100)
BALLS = (0.5, 0.75, 1.0, 1.5, 2.0)  # times the median radius


def samples(data: str, many: int) -> Tensor:
    """Return the first samples of the test split; moons have a validation split of this size."""
    split = load_data(data, "val" if data == "moons" else "test")
    return split.floats(slice(many))


def plain_layers(model: nn.Module) -> list[nn.Module]:
    """Return the layers that run, in torch's own types."""
    found = [layer for layer in model.modules() if not list(layer.children())]
    for layer in found:
        assert type(layer) in (nn.Linear, nn.Conv2d, MinMax, nn.Flatten), layer
    return found


def described(model: nn.Module, x: Tensor) -> dict[str, np.ndarray]:
    """Return the arrays that crown_radii.py reads; two logits where there is one."""
    layers = plain_layers(model)
    specs: list[dict[str, object]] = []
    arrays: dict[str, np.ndarray] = {}
    with torch.no_grad():
        value = x[:1]
        for i, layer in enumerate(layers):
            if isinstance(layer, MinMax):
                specs.append({"kind": "pairs", "channels": value.shape[1], "images": value.ndim == 4})
            elif isinstance(layer, nn.Flatten):
                specs.append({"kind": "flatten"})
            else:
                is_linear = isinstance(layer, nn.Linear)
                geometry = {} if is_linear else {"stride": layer.stride, "padding": layer.padding}
                specs.append({"kind": "linear" if is_linear else "convolution", **geometry})
                arrays[f"weight{i}"], arrays[f"bias{i}"] = (
                    p.detach().numpy() for p in (layer.weight, layer.bias)
                )
            value = layer(value)
        if value.shape[1] == 1:
            for kind in ("weight", "bias"):
                last = arrays[f"{kind}{len(layers) - 1}"]
                arrays[f"{kind}{len(layers) - 1}"] = np.concatenate([np.zeros_like(last), last])
        arrays["logits"] = binary_as_two(model(x)).numpy()
    return {**arrays, "layers": np.array(json.dumps(specs))}


def by_crown(python: str, model: nn.Module, x: Tensor, most: Tensor) -> tuple[Tensor, float]:
    """Return radii and seconds for a sample; the search begins at `most`."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "in.npz"), Path(folder, "out.npz")
        np.savez(source, x=x.numpy(), most=most.numpy(), **described(model, x))
        subprocess.run([python, Path(__file__).with_name("crown_radii.py"), source, target], check=True)
        found = np.load(target)
        return torch.from_numpy(found["radii"]), float(np.median(found["seconds"]))


def by_power_iteration(model: nn.Module, shape: tuple[int, ...], x: Tensor, iterations: int) -> Tensor:
    """Return what most code does: estimates of all norms, in place of proofs."""
    program, head = trace(model, shape).split_head()
    constant = 1.0
    for step in program.steps:
        if step.rule.has_vector:
            like = next(step.module.parameters())
            vector = step.rule.power(step.module, first_vector(step.input_shapes[0], 0, like), iterations)
            constant *= float(step.rule.estimate(step.module, vector))
    rows = (
        head.weight if head.weight.shape[0] > 1 else torch.cat([torch.zeros_like(head.weight), head.weight])
    )
    logits = binary_as_two(model(x))
    top = logits.argmax(1)
    margin = logits.gather(1, top[:, None]) - logits
    return rival_radii(margin, constant * torch.cdist(rows, rows)[top], top, unrounded).amin(1)


def nearest_examples(model: nn.Module, x: Tensor) -> Tensor:
    """Return distances to the nearest adversarial examples of two attacks of foolbox."""
    low, high = float(x.min()) - 1.0, float(x.max()) + 1.0
    two = nn.Sequential(model, _Two()).eval()
    target = foolbox.PyTorchModel(two, bounds=(low, high))
    labels = two(x).argmax(1)
    best = torch.full((len(x),), torch.inf)
    for attack in (foolbox.attacks.L2FMNAttack(steps=300), foolbox.attacks.L2DeepFoolAttack(steps=100)):
        _, points, success = attack(target, x, labels, epsilons=None)
        distance = (points - x).flatten(1).double().norm(dim=1).float()
        best = torch.where(success & (distance < best), distance, best)
    return best


class _Two(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return binary_as_two(x)


def timed(work: Callable[[], Tensor], many: int) -> tuple[Tensor, float]:
    """Return the result and seconds for a sample."""
    start = time.perf_counter()
    found = work()
    return found, (time.perf_counter() - start) / many


@torch.no_grad()
def rows(name: str, model: nn.Module, x: Tensor, python: str) -> list[list[str]]:
    """Return a row for each way."""
    shape, many = tuple(x.shape[1:]), len(x)
    proof = certifier(model, shape, effort="exact")
    proved, seconds = timed(lambda: proof(x).radius, many)
    middle = float(proved.median())
    ways = {"lipcert, proved": (proved, seconds)}
    balls = [middle * ball for ball in BALLS]
    ways["lipcert, proved, with balls"] = timed(lambda: proof(x, local=balls).radius, many)
    ways["auto_LiRPA, CROWN"] = by_crown(python, model, x, 8 * proved.clamp_min(1e-3))
    for iterations in POWER:
        ways[f"power iteration, {iterations}"] = timed(
            lambda n=iterations: by_power_iteration(model, shape, x, n), many
        )
    with torch.enable_grad():
        nearest = nearest_examples(model, x)
    return [
        [
            name,
            way,
            f"{float(radius.mean()):.4f}",
            f"{float((radius > proved).double().mean()):.0%}",
            f"{took:.2g}",
            str(int((radius > nearest * (1 + 1e-6)).sum())),
        ]
        for way, (radius, took) in ways.items()
    ]


def main(python: str, thin: str) -> None:
    torch.set_num_threads(1)
    table = []
    for name, source, data, many in (
        ("moons MLP", "moons-cll", "moons", 50),
        ("thin 4C3F", thin, "cifar10", 20),
    ):
        table += rows(name, load(source).eval(), samples(data, many), python)
        for row in table[-3 - len(POWER) :]:
            print(*row, sep="  ", flush=True)
    note = "the first samples, radii of the predicted class; exact proofs, whose seconds are not counted"
    titles = [
        "network",
        "radius by",
        "mean radius",
        "above the proved",
        "seconds a sample",
        "broken by foolbox",
    ]
    write_table("peers-radii", note, titles, table, command="python benchmarks/peers.py radii")


if __name__ == "__main__":
    main(*sys.argv[1:])
