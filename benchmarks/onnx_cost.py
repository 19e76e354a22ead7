"""What an exported file costs in certified accuracy: the packaged CIFAR-10 model on the test split.

Both graphs run in onnxruntime, beside the library's certificates with the same rounding. Writes
results/onnx-cost.json.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import torch

import lipcert
from lipcert.certificates.certificate import RADII
from lipcert.data import load as load_data
from lipcert.export import export_onnx
from results import write_table

NAME, SHAPE, BATCH = "cifar10-4c3f-cll", (3, 32, 32), 256
Answer = tuple[np.ndarray, np.ndarray]  # classes, radii
Work = Callable[[torch.Tensor], Answer]


def works(prover: lipcert.Certifier, folder: Path) -> dict[str, Work]:
    found: dict[str, Work] = {}
    for float32 in (False, True):
        kind = "float32" if float32 else "float64"
        path = export_onnx(prover, folder / f"{kind}.onnx", float32=float32)
        found[f"library, {kind}"] = lambda x, kind=kind: of_library(prover, x, kind)
        found[f"ONNX, {kind}"] = of_runtime(path, np.float32 if float32 else np.float64)
    return found


def of_library(prover: lipcert.Certifier, x: torch.Tensor, rounding: str) -> Answer:
    certificate = prover(x, rounding)  # type: ignore[arg-type]
    return certificate.prediction.numpy(), certificate.radius.numpy()


def of_runtime(path: Path, dtype: type) -> Work:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def run(x: torch.Tensor) -> Answer:
        classes, radii = session.run(["class", "radius"], {"x": x.numpy().astype(dtype)})
        return classes, radii

    return run


def main() -> None:
    torch.set_num_threads(2)
    data = load_data("cifar10", split="test")
    labels = data.y.numpy()
    batches = [torch.arange(i, min(i + BATCH, len(data))) for i in range(0, len(data), BATCH)]
    prover = lipcert.certifier(lipcert.load(NAME), SHAPE, "exact")
    with tempfile.TemporaryDirectory() as folder:
        all_ = works(prover, Path(folder))
        table, reference = [], {}
        for name, work in all_.items():
            parts = [work(data.floats(index, torch.float32)) for index in batches]
            classes, radii = (np.concatenate(part) for part in zip(*parts, strict=True))
            kind = name.rpartition(" ")[2]
            if name.startswith("library"):
                reference[kind] = radii
            right = classes == labels
            cra = [f"{100 * np.mean(right & (radii > eps)):.2f}" for eps in RADII]
            lost = reference[kind] - radii
            of_it = [f"{lost.min():.2g}", f"{lost.max():.2g}"] if name.startswith("ONNX") else ["–", "–"]
            table.append([name, f"{100 * right.mean():.2f}", *cra, *of_it])
    titles = ["certified by", "clean", *(f"CRA {round(255 * eps)}/255" for eps in RADII)]
    titles += ["least radius lost to it", "most"]
    for row in table:
        print(*row, sep="  ")
    write_table("onnx-cost", f"{NAME}, test split, {len(data)} images, exact proof", titles, table)


if __name__ == "__main__":
    main()
