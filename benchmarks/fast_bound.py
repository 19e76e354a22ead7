"""How far the fast bound of a convolution lies above the truth; writes results/fast-bound.json.

Square images with "same" padding; Gaussian, constant and smooth (Hann) kernels, the worst of three shapes of
few channels; there the truth is the exact prover's bound, within 1e-6 of it. Then large Gaussian kernels with
more channels than the exact prover can take, where the truth is a converged estimate from below.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lipcert.bounds import upper
from lipcert.bounds.contract import rule_of
from lipcert.bounds.krylov import first_vector
from results import write_table

GEOMETRIES = [(3, 1), (3, 2), (4, 1), (4, 2), (5, 1), (5, 2), (7, 1), (7, 2)]  # kernel, stride
CHANNELS = [(1, 1), (2, 3), (4, 4)]
SIZES = (14, 16, 32)
MANY = [(64, 3), (64, 5), (64, 7), (128, 3), (128, 5)]  # channels, kernel


def kernels(conv: nn.Conv2d) -> dict[str, Tensor]:
    """Of the shape of the weights."""
    window = torch.hann_window(conv.kernel_size[0] + 2, periodic=False)[1:-1]
    channels = torch.randn(*conv.weight.shape[:2], 1, 1)
    return {
        "Gaussian": torch.randn_like(conv.weight),
        "constant": torch.ones_like(conv.weight),
        "smooth": channels * window[:, None] * window,
    }


def excess(size: int, kernel: int, stride: int) -> list[str]:
    """Percent above the truth, the worst of the shapes, for each kind of kernel; and the provers."""
    worst, provers = dict.fromkeys(("Gaussian", "constant", "smooth"), 0.0), set()
    for inputs, outputs in CHANNELS:
        conv = nn.Conv2d(
            inputs, outputs, kernel, stride, kernel // 2 if kernel % 2 else 1, bias=False
        ).double()
        for kind, weight in kernels(conv).items():
            conv.weight.data = weight.double()
            fast = upper(conv, (inputs, size, size), effort="fast")
            exact = upper(conv, (inputs, size, size), effort="exact").value
            worst[kind] = max(worst[kind], 100 * (fast.value / exact - 1))
            provers.add(fast.layers[0].prover)
    return [*(f"{value:.2f}" for value in worst.values()), ", ".join(sorted(provers))]


def excess_of_many(channels: int, kernel: int) -> list[str]:
    """Percent above the estimate, so no less than above the truth."""
    conv = nn.Conv2d(channels, channels, kernel, padding=kernel // 2, bias=False).double()
    nn.init.normal_(conv.weight)
    shape = torch.Size((channels, 14, 14))
    fast, rule = upper(conv, shape, effort="fast"), rule_of(conv)
    with torch.no_grad():
        vector = rule.iterate(conv, first_vector(shape, 0, like=conv.weight), 800)
        below = float(rule.estimate(conv, vector))
    return [f"{100 * (fast.value / below - 1):.2f}", "–", "–", fast.layers[0].prover]


def main() -> None:
    torch.manual_seed(0)
    table = []
    for size in SIZES:
        for kernel, stride in GEOMETRIES:
            shape = [f"{size}×{size}", f"{kernel}×{kernel}", str(stride), "1 to 4"]
            row = [*shape, *excess(size, kernel, stride)]
            print(*row, sep="  ", flush=True)
            table.append(row)
    for channels, kernel in MANY:
        row = ["14×14", f"{kernel}×{kernel}", "1", str(channels), *excess_of_many(channels, kernel)]
        print(*row, sep="  ", flush=True)
        table.append(row)
    titles = ["image", "kernel", "stride", "channels", "Gaussian", "constant", "smooth", "prover"]
    write_table(
        "fast-bound",
        "percent above the truth, for 1 to 4 channels the worst of 1→1, 2→3 and 4→4",
        titles,
        table,
    )


if __name__ == "__main__":
    main()
