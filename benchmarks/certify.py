"""What a certificate costs beside a plain forward pass, for each way to treat rounding; 4C3F, batch 512.

Untrained weights: the time does not depend on them. The proof is made once and not part of it.
"""

from __future__ import annotations

import copy

import torch
from timing import interleaved, print_ratios

from lipcert import certifier
from lipcert.models import create

SHAPE = (3, 32, 32)


def main() -> None:
    torch.manual_seed(0)
    model = create("4c3f", num_classes=10, input_shape=SHAPE).eval()
    double = copy.deepcopy(model).double()
    prover = certifier(model, SHAPE, effort="fast")
    x = torch.rand(512, *SHAPE)
    x64 = x.double()
    with torch.no_grad():
        timings = interleaved(
            {
                "float32 forward": lambda: model(x),
                "float64 forward": lambda: double(x64),
                "certify, rounding ignored": lambda: prover(x64, "ignored"),
                "certify, float64": lambda: prover(x64, "float64"),
                "certify, float32": lambda: prover(x64, "float32"),
            },
            rounds=15,
        )
    print_ratios(timings, "float64 forward")


if __name__ == "__main__":
    main()
