"""Radii by CROWN: the largest distance at which auto_LiRPA's bounds keep the predicted class ahead.

Runs where auto_LiRPA does (Python 3.10, torch 1.12), so it imports nothing of lipcert. Reads a network and
samples from an .npz file and writes radii and seconds to another: python crown_radii.py IN.npz OUT.npz
A sorted pair is written with one ReLU: max(a, b) = b + ReLU(a − b), min(a, b) = a − ReLU(a − b).
"""

import json
import sys
import time

import numpy as np
import torch
from auto_LiRPA import BoundedModule, BoundedTensor, PerturbationLpNorm
from torch import nn

HALVINGS = 12


class Pairs(nn.Module):
    """MinMax as fixed linear maps around one ReLU, so that bounds are those of ReLU networks."""

    def __init__(self, channels, images):
        super().__init__()
        half = channels // 2
        difference, kept, added = (
            torch.zeros(shape) for shape in [(half, channels), (channels,) * 2, (channels, half)]
        )
        for k in range(half):
            a, b = 2 * k, 2 * k + 1
            difference[k, a], difference[k, b] = 1.0, -1.0
            kept[a, a], added[a, k] = 1.0, -1.0  # the smaller: a − ReLU(a − b)
            kept[b, b], added[b, k] = 1.0, 1.0  # the larger: b + ReLU(a − b)
        self.difference, self.kept, self.added = (self.fixed(m, images) for m in (difference, kept, added))

    @staticmethod
    def fixed(matrix, images):
        rows, columns = matrix.shape
        layer = nn.Conv2d(columns, rows, 1, bias=False) if images else nn.Linear(columns, rows, bias=False)
        layer.weight.data = matrix.reshape(layer.weight.shape)
        return layer

    def forward(self, x):
        return self.kept(x) + self.added(torch.relu(self.difference(x)))


def network(given):
    """Build the layers that the file describes."""
    layers = []
    for i, spec in enumerate(json.loads(str(given["layers"]))):
        kind = spec.pop("kind")
        if kind == "pairs":
            layers.append(Pairs(spec["channels"], spec["images"]))
        elif kind == "flatten":
            layers.append(nn.Flatten())
        else:
            weight, bias = torch.from_numpy(given[f"weight{i}"]), torch.from_numpy(given[f"bias{i}"])
            if kind == "linear":
                layer = nn.Linear(weight.shape[1], weight.shape[0])
            else:
                layer = nn.Conv2d(weight.shape[1], weight.shape[0], weight.shape[2:], **spec)
            layer.weight.data, layer.bias.data = weight, bias
            layers.append(layer)
    return nn.Sequential(*layers).eval()


def is_certified(bounded, x, margins, radius):
    """Return whether the lower bounds of all margins are positive within this distance."""
    region = BoundedTensor(x, PerturbationLpNorm(norm=2, eps=radius))
    lower, _ = bounded.compute_bounds(x=(region,), C=margins, method="CROWN", bound_upper=False)
    return bool((lower > 0).all())


def radius_of(bounded, x, classes, most):
    """Bisect the distance; 0 where not even a tiny one is certified."""
    with torch.no_grad():
        top = int(bounded(x).argmax())
    rivals = [j for j in range(classes) if j != top]
    margins = torch.zeros(1, len(rivals), classes)
    margins[0, :, top] = 1.0
    margins[0, torch.arange(len(rivals)), rivals] = -1.0
    low, high = 0.0, most
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_certified(bounded, x, margins, middle) else (low, middle)
    return low


def main(source, target):
    torch.set_num_threads(1)
    given = np.load(source)
    x = torch.from_numpy(given["x"])
    model = network(given)
    with torch.no_grad():
        logits = model(x)
    assert np.allclose(logits.numpy(), given["logits"], atol=1e-3), "the network is not the one in the file"
    bounded = BoundedModule(model, x[:1])
    radii, seconds = [], []
    for sample, most in zip(x, given["most"], strict=True):
        start = time.perf_counter()
        radii.append(radius_of(bounded, sample[None], logits.shape[1], float(most)))
        seconds.append(time.perf_counter() - start)
        print(f"{len(radii)} of {len(x)}: {radii[-1]:.4f} in {seconds[-1]:.1f} s", flush=True)
    np.savez(target, radii=np.array(radii), seconds=np.array(seconds))


if __name__ == "__main__":
    main(*sys.argv[1:])
