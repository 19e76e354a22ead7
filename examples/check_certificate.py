"""Check a lipcert certificate without lipcert and without torch: NumPy and python-flint (Arb) alone.

    python examples/check_certificate.py FOLDER --data points.npz --split val --samples 100

FOLDER holds model.safetensors and certificate.json. Data is an .npz file with x and y, or test_batch.bin of
CIFAR-10. The exit status is 0 if nothing failed, 1 otherwise.

Proved again are the norm of every layer (balls of matrices: a float64 midpoint from NumPy, and a bound on the
norm of its error; theorem 1 of docs/proofs.md), the constants K_ij, and a radius for each sample (balls of
numbers, by Arb). No code of lipcert runs.

Limits: MLPs and 4C3F-like networks with MinMax; global constants; rounding float64; products of matrices that
are sums in some order, as BLAS computes them. A 4C3F needs 4 GB, some minutes for its constants and a second
per sample. Counts are confirmed if all samples are given; a part of them can only refute.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx

Tree, Tensors = dict[str, Any], dict[str, np.ndarray]
ctx.prec = 80
U = arb(2) ** -53
SUMS = arb(1) + arb(10) ** -6  # what sums of fewer than 10^9 non-negative floats may lose
LOW, HIGH = np.frompyfunc(arb.min, 2, 1), np.frompyfunc(arb.max, 2, 1)
# Stride and padding of the convolutions.
GEOMETRIES: dict[str, list[tuple[int, int]]] = {
    "mlp": [],
    "4c3f": [(1, 1), (2, 1), (1, 1), (2, 1)],
    "6c2f": [(1, 1), (1, 1), (2, 1), (1, 1), (1, 1), (2, 1)],
}


@dataclass
class Layer:
    """A dense layer (out, in) or a convolution (out, in, k, k) with stride and zero padding."""

    weight: np.ndarray
    bias: np.ndarray
    stride: int = 1
    padding: int = 0
    mean: np.ndarray | None = None
    std: np.ndarray | None = None


def require(holds: bool, why: str) -> None:
    """Stop where the file is beyond what this program checks."""
    if not holds:
        sys.exit(f"cannot check this: {why}")


def read_weights(path: Path) -> tuple[Tensors, Tree]:
    """Return tensors and model card of a safetensors file: a length, a JSON header, the numbers."""
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    header: Tree = json.loads(raw[8:start])
    card = json.loads(header.pop("__metadata__")["lipcert"])
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        require(entry["dtype"] in ("F16", "F32"), f"{name} has the type {entry['dtype']}")
        kind = np.float16 if entry["dtype"] == "F16" else np.float32
        values = np.frombuffer(raw[start + begin : start + end], kind).reshape(entry["shape"])
        tensors[name] = values.astype(np.float32)  # the network runs in float32, which holds 16 bits exactly
    return tensors, card


def sha256(tensors: Tensors) -> str:
    """Return the fingerprint that certificates name: names, types, shapes and every bit."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        values = np.ascontiguousarray(tensors[name])
        digest.update(f"{name} torch.{values.dtype} {tuple(values.shape)}\n".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()


def layers_of(tensors: Tensors, model: Tree) -> list[Layer]:
    """Return the layers in their order; between them is MinMax, the last one is the head."""
    require(model["name"] in GEOMETRIES, f"the model {model['name']!r}; known: {', '.join(GEOMETRIES)}")
    require(model["arguments"].get("activation", "minmax") == "minmax", "an activation other than MinMax")
    kinds = {name.rpartition(".")[2] for name in tensors}
    require(kinds <= {"weight", "bias", "mean", "std"}, "tensors of another kind")
    wide = {name: values.astype(np.float64) for name, values in tensors.items()}
    geometries = iter(GEOMETRIES[model["name"]])
    layers = []
    for place in sorted({name.partition(".")[0] for name in wide}, key=int):
        inner = f"{place}.layer" if f"{place}.layer.weight" in wide else place
        weight, bias = wide[f"{inner}.weight"], wide[f"{inner}.bias"]
        stride, padding = next(geometries) if weight.ndim == 4 else (1, 0)
        mean, std = wide.get(f"{place}.mean"), wide.get(f"{place}.std")
        layers.append(Layer(weight, bias, stride, padding, mean, std))
    require(next(geometries, None) is None, "too few convolutions")
    return layers


def gram_of_convolution(w: np.ndarray, stride: int, padding: int, n: int) -> np.ndarray:
    """Return A Aᵀ or Aᵀ A, the smaller one, of the convolution on n × n pixels, block by block."""
    outputs, inputs, k, _ = w.shape
    m = (n + 2 * padding - k) // stride + 1
    if outputs * m * m <= inputs * n * n:
        side, size, kernel = outputs, m, w
    else:
        side, size, kernel = inputs, n, w.swapaxes(0, 1)

    def taps(a: int, b: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the taps with which a and b, along an axis, meet the same pixels of the other side."""
        if kernel is w:  # a and b are outputs
            pixels = np.arange(max(0, max(a, b) * stride - padding), min(n, min(a, b) * stride - padding + k))
            return pixels + padding - a * stride, pixels + padding - b * stride
        of_a, of_b = (x + padding - stride * np.arange(m) for x in (a, b))
        both = (of_a >= 0) & (of_a < k) & (of_b >= 0) & (of_b < k)
        return of_a[both], of_b[both]

    near = ((a, b) for a in range(size) for b in range(max(0, a - k), min(size, a + k + 1)))
    axis = {pair: found for pair in near if len((found := taps(*pair))[0])}
    gram = np.zeros((side, size, size, side, size, size))
    for (a1, b1), (a2, b2) in product(axis, axis):
        (s1, t1), (s2, t2) = axis[a1, b1], axis[a2, b2]
        if (a1, a2) <= (b1, b2):
            left = kernel[:, :, s1][:, :, :, s2].reshape(side, -1)
            right = kernel[:, :, t1][:, :, :, t2].reshape(side, -1)
            gram[:, a1, a2, :, b1, b2] = block = left @ right.T
            gram[:, b1, b2, :, a1, a2] = block.T
    return gram.reshape(side * size * size, -1)


def top_eigenvalue(s: np.ndarray, steps: int = 1000) -> float:
    """Return about the largest eigenvalue, by Lanczos: a first guess, on which no proof depends."""
    q = np.zeros((min(steps, len(s)), len(s)))
    v = np.random.default_rng(0).standard_normal(len(s))
    for i in range(len(q)):
        v -= q.T @ (q @ v)
        v -= q.T @ (q @ v)
        q[i] = v / max(np.linalg.norm(v), 1e-300)
        v = s @ q[i]
    return float(np.linalg.eigvalsh(q @ (s @ q.T))[-1])


def norm_upper(layer: Layer, pixels: int) -> arb:
    """Prove the norm: λ_max(S) ≤ c + ‖(cI − S) − LLᵀ‖ for any L, and S is close to the true Gram matrix."""
    w = layer.weight if layer.std is None else layer.weight / layer.std.ravel()[:, None, None]
    size = np.abs(w).sum(axis=tuple(range(2, w.ndim)))  # (out, in)
    nu = arb(float(size.sum(0).max())) * arb(float(size.sum(1).max())) * SUMS  # ≥ ‖|A|‖²
    if w.ndim == 4:
        s = gram_of_convolution(w, layer.stride, layer.padding, pixels)
    else:
        s = w @ w.T if len(w) <= w.shape[1] else w.T @ w
    terms = max(w.shape[:2]) * int(np.prod(w.shape[2:]))  # products in one entry, at most
    s = np.tril(s) + np.tril(s, -1).T
    n, guess = len(s), top_eigenvalue(s)
    for room in (1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6):
        c = guess * (1 + room)
        b = c * np.eye(n) - s
        try:
            factor = np.linalg.cholesky(b)
        except np.linalg.LinAlgError:
            continue
        rows, columns, whole = (float(np.linalg.norm(factor, kind)) for kind in (np.inf, 1, None))
        spread = min(arb(whole) ** 2, arb(rows) * arb(columns)) * SUMS
        b -= factor @ factor.T
        residual = arb(float(np.linalg.norm(np.maximum(np.abs(b), np.abs(b.T)), np.inf)))
        gamma_n, gamma_m = (k * U / (1 - k * U) for k in (n + 2, terms + 2))
        tiny = n * (terms + n + 4) * arb(2) ** -1000  # underflow
        error = residual + gamma_n * spread + gamma_m * nu + 4 * U * c + tiny
        divided = 0 if layer.std is None else 2 * U * nu.sqrt() * SUMS
        return ((arb(c) + SUMS * error).sqrt() + divided).upper()
    raise SystemExit("a Gram matrix has no Cholesky factor: is a weight infinite or NaN?")


class Network:
    """Evaluate samples in balls of numbers, and prove constants once."""

    def __init__(self, layers: list[Layer], shape: list[int]) -> None:
        self.layers, self.norms, pixels = layers, [], shape[-1]
        for layer in layers[:-1]:
            self.norms.append(norm_upper(layer, pixels))
            if layer.weight.ndim == 4:
                pixels = (pixels + 2 * layer.padding - layer.weight.shape[-1]) // layer.stride + 1
        self.features = math.prod(self.norms, start=arb(1)).upper()
        head = arb_mat(layers[-1].weight.tolist())
        gram = head * head.transpose()
        n = range(head.nrows())
        squares = [[(gram[i, i] + gram[j, j] - 2 * gram[i, j]).max(arb(0)) for j in n] for i in n]
        self.pairs = [[(self.features * square.sqrt()).upper() for square in row] for row in squares]
        self.matrices = [arb_mat(each.weight.reshape(len(each.weight), -1).tolist()) for each in layers]

    def logits(self, x: np.ndarray) -> list[arb]:
        """Return enclosures of the logits of one sample, as the exact network has them."""
        out = values = np.array([arb(float(v)) for v in x.ravel()], dtype=object).reshape(x.shape)
        for i, (matrix, layer) in enumerate(zip(self.matrices, self.layers, strict=True)):
            if i > 0:  # MinMax sorts the channels (2k, 2k + 1)
                pairs, side = out.reshape(len(out) // 2, 2, -1), math.isqrt(out.shape[1])
                values = np.stack([LOW(pairs[:, 0], pairs[:, 1]), HIGH(pairs[:, 0], pairs[:, 1])], 1)
                values = values.reshape(len(out), side, side)
            if layer.mean is not None:
                values = (values - layer.mean) / layer.std
            out = np.array((matrix * arb_mat(patches(values, layer))).tolist(), dtype=object)
            out += layer.bias[:, None]
        return list(out.ravel())

    def radius(self, logits: list[arb]) -> tuple[int, float]:
        """Return the class, and a radius within which the exact network cannot change it."""
        top = max(range(len(logits)), key=lambda i: float(logits[i].mid()))
        margins = [((logits[top] - f).lower(), k) for f, k in zip(logits, self.pairs[top], strict=True)]
        del margins[top]  # a class is not its own rival
        if not all(m > 0 for m, _ in margins):
            return top, 0.0
        # A float of a ball is its midpoint, rounded: one part in 2^50 is more than that can lose.
        return top, min(np.inf if k == 0 else float((m / k).lower()) * (1 - 2**-50) for m, k in margins)


def patches(values: np.ndarray, layer: Layer) -> list[list[arb]]:
    """Return the numbers that each tap of a layer meets, one column per output pixel."""
    if layer.weight.ndim == 2:
        return [[v] for v in values.ravel()]
    (channels, n, _), k, s, p = values.shape, layer.weight.shape[-1], layer.stride, layer.padding
    padded = np.full((channels, n + 2 * p, n + 2 * p), arb(0), dtype=object)
    padded[:, p : p + n, p : p + n] = values
    end = n + 2 * p - k + 1
    taps = product(range(channels), range(k), range(k))
    return [list(padded[i, y : y + end : s, x : x + end : s].ravel()) for i, y, x in taps]


def checks(claim: Tree, tensors: Tensors, card: Tree, network: Network) -> Iterator[tuple[str, bool]]:
    """Compare what a certificate claims about weights and constants with what is proved here."""
    yield "the weights are those of the certificate", sha256(tensors) == claim["model_sha256"]
    yield "the model is that of the file", {"format": 1, **claim["model"]} == card
    layers = [layer for layer in claim["layers"] if layer["kind"] not in ("MinMax", "Flatten")]
    yield "the certificate has a constant for every layer", len(layers) == len(network.norms)
    every = sorted(k for i, row in enumerate(network.pairs) for j, k in enumerate(row) if i != j)
    pairs = {"smallest": every[0], "median": every[(len(every) - 1) // 2], "largest": every[-1]}
    constants = [
        *((f"layer {b['path']}", a, b["upper"]) for a, b in zip(network.norms, layers, strict=False)),
        ("k_features", network.features, claim["k_features"]),
        ("k_f", every[-1], claim["k_f"]),
        *((f"the {name} K_ij", k, claim["pairs"][name]) for name, k in pairs.items()),
    ]
    for name, proved, claimed in constants:
        yield f"{name}: {float(proved):.10g} ≤ {claimed}", bool(proved <= claimed)


def read_data(path: Path) -> Tensors:
    """Return x and y of an .npz file or of a file of CIFAR-10."""
    if path.suffix == ".npz":
        return dict(np.load(path))
    records = np.fromfile(path, np.uint8).reshape(-1, 3073)
    return {"x": records[:, 1:].reshape(-1, 3, 32, 32), "y": records[:, 0].astype(np.int64)}


def counts(claim: Tree, data: Tensors, network: Network, samples: int | None) -> Iterator[tuple[str, bool]]:
    """Count samples that are correct and certified, and compare with the claimed counts."""
    yield "the data is that of the certificate", sha256(data) == claim["sha256"]
    total, x = len(data["y"]), data["x"][:samples]
    x = x if x.dtype == np.float32 else x.astype(np.float32) / np.float32(255)
    found = zip((network.radius(network.logits(sample)) for sample in x), data["y"], strict=False)
    radii = [radius if top == y else -1 for (top, radius), y in found]
    for row in [claim["clean"], *claim["certified"]]:
        mine = sum(r > row["radius"] or r == row["radius"] == 0 for r in radii)
        said = f"{row['count']} of {total} at radius {row['radius']:.5g}: {mine} of the {len(x)} checked here"
        # Those that fail here are at most those that failed there, whichever samples were taken.
        yield said, len(x) - mine <= total - row["count"]


def main() -> int:
    """Print one line per statement; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--split", default="test")
    parser.add_argument("--samples", type=int)
    given = parser.parse_args()
    claim = json.loads((given.folder / "certificate.json").read_text(encoding="utf-8"))
    plain = claim["format"] == 2 and claim["rounding"] == "float64" and not claim["local"]
    require(plain, "a certificate of another kind")
    tensors, card = read_weights(given.folder / "model.safetensors")
    network = Network(layers_of(tensors, claim["model"]), claim["model"]["input_shape"])
    results = [*checks(claim, tensors, card, network)]
    if given.data is not None:
        split = claim["splits"][given.split]
        results += counts(split, read_data(given.data), network, given.samples)
    for statement, holds in results:
        print("ok    " if holds else "FAILED", statement)
    return 0 if all(holds for _, holds in results) else 1


if __name__ == "__main__":
    sys.exit(main())
