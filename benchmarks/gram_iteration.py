"""Gram iteration beside the provers that factorise; writes results/gram-iteration.json.

Stride 1 and "same" padding; Gaussian kernels, and kernels that decay as trained ones do, in the frequencies
and in the singular values of the channels. The truth is at least an estimate of 60 products in a Krylov
space. The provers take turns; times are ratios of medians.
"""

from __future__ import annotations

import torch
from timing import interleaved
from torch import Tensor, nn

from lipcert.bounds.contract import rule_of
from lipcert.bounds.krylov import first_vector
from lipcert.bounds.provers.convolutions import PROVERS
from lipcert.bounds.provers.convolutions.base import phases
from lipcert.bounds.provers.fourier import largest_norm_upper
from lipcert.bounds.provers.geometry import Geometry
from lipcert.bounds.provers.strips import Strip, strip_norm_upper
from results import write_table

# Image, kernel and channels; what the symbols cost grows with the cube of the channels. Below 24 channels
# Gram iteration is not chosen.
CASES = [(16, 3, 16), (16, 5, 16), (16, 7, 16)]
CASES += [(n, k, 64) for n in (8, 16) for k in (3, 5, 7)] + [(32, 3, 64), (8, 3, 256)]
STRIPS = [(14, 5, 16), (14, 7, 16), (14, 5, 32)]
_PAIR = ("fourier", "gram-iteration")
_ROUNDS = 3


def gaussian(channels: int, kernel: int) -> Tensor:
    return torch.randn(channels, channels, kernel, kernel, dtype=torch.float64)


def decaying(channels: int, kernel: int) -> Tensor:
    """Singular values of the channels fall as 1/√i, taps as a Gaussian bell; a third of that is noise."""
    left, right = (torch.linalg.qr(torch.randn(channels, channels, dtype=torch.float64))[0] for _ in "uv")
    values = torch.arange(1, channels + 1, dtype=torch.float64) ** -0.5
    taps = torch.arange(kernel, dtype=torch.float64) - kernel // 2
    window = torch.exp(-(taps[:, None] ** 2 + taps**2) / 2)
    noise = gaussian(channels, kernel) / (3 * channels**0.5)
    return ((left * values @ right.T)[:, :, None, None] + noise) * window


def convolution(weight: Tensor) -> nn.Conv2d:
    """Return a layer with these kernels, the largest entry 1, as provers are given them."""
    channels, _, kernel, _ = weight.shape
    conv = nn.Conv2d(channels, channels, kernel, padding=kernel // 2, bias=False).double()
    conv.weight.data = weight / weight.abs().max()
    return conv


def lower(conv: nn.Conv2d, shape: torch.Size) -> float:
    rule = rule_of(conv)
    with torch.no_grad():
        vector = rule.iterate(conv, first_vector(shape, 0, like=conv.weight), 60)
        return float(rule.estimate(conv, vector))


def row(size: int, kernel: int, channels: int, kind: str, weight: Tensor, strips: bool) -> list[str]:
    """Percent above the truth with both, how far the bounds differ, and the ratio of times."""
    conv, shape = convolution(weight), torch.Size((channels, size, size))
    geometry, weight = Geometry.of(conv, shape), conv.weight.detach()
    strip, (part,) = Strip.of(geometry), phases(weight, geometry, geometry.stride)
    works = {name: lambda name=name: PROVERS.create(name).upper(weight, geometry) for name in _PAIR}
    if strips:
        works = {"by factors": lambda: strip_norm_upper(part, strip, largest_norm_upper)}
        works["by squares"] = lambda: strip_norm_upper(part, strip)
    before, after = (work() for work in works.values())
    timings = interleaved(works, rounds=_ROUNDS, warm=0)
    old, new = timings.values()
    percent = f"{100 * (before / lower(conv, shape) - 1):.2f}"
    name = "strips" if strips else "fourier"
    cells = [f"{size}×{size}", f"{kernel}×{kernel}", str(channels), kind, name, percent]
    return [*cells, f"{after / before - 1:.1e}", f"{old.median:.2f}", f"{new.median / old.median:.2f}"]


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    table = []
    for cases, strips in ((CASES, False), (STRIPS, True)):
        for size, kernel, channels in cases:
            for kind, make in (("Gaussian", gaussian), ("decaying", decaying)):
                table.append(row(size, kernel, channels, kind, make(channels, kernel), strips))
                print(*table[-1], sep="  ", flush=True)
    titles = ["image", "kernel", "channels", "weights", "bound", "above the truth [%]"]
    titles += ["change of the bound", "before [s]", "after / before"]
    write_table("gram-iteration", "one thread, interleaved, medians; a loaded machine", titles, table)


if __name__ == "__main__":
    main()
