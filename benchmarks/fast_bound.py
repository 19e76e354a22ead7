"""How far the fast bound of a convolution lies above the truth; writes results/fast-bound.json.

The truth is the exact prover's bound, within 1e-6 of it. The worst of three shapes of few channels, where the
gap is largest, on square images with "same" padding; Gaussian, constant and smooth (Hann) kernels.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lipcert.bounds import upper
from results import write_table

GEOMETRIES = [(3, 1), (3, 2), (4, 1), (4, 2), (5, 1), (5, 2), (7, 1), (7, 2)]  # kernel, stride
CHANNELS = [(1, 1), (2, 3), (4, 4)]
SIZES = (14, 16, 32)


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


def main() -> None:
    torch.manual_seed(0)
    table = []
    for size in SIZES:
        for kernel, stride in GEOMETRIES:
            row = [f"{size}×{size}", f"{kernel}×{kernel}", str(stride), *excess(size, kernel, stride)]
            print(*row, sep="  ", flush=True)
            table.append(row)
    titles = ["image", "kernel", "stride", "Gaussian", "constant", "smooth", "prover"]
    write_table(
        "fast-bound", "percent above the truth, the worst of 1→1, 2→3 and 4→4 channels", titles, table
    )


if __name__ == "__main__":
    main()
