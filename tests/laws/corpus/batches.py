"""Shapes and batches: samples that see each other, and forwards that depend on how many there are."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.laws.corpus.registry import IMAGE, ConvNet, Net, SquareNet, applied, body, forward

for name, mix in {
    "mean": lambda h: h - h.mean(0),
    "mean-of-all": lambda h: h - h.mean(),
    "standardised": lambda h: (h - h.mean(0)) / h.std(0),
    "sorted": lambda h: h.sort(dim=0).values,
    "flipped": lambda h: h.flip(0),
    "rolled": lambda h: h.roll(1, 0),
    "cumulative": lambda h: h.cumsum(0),
    "softmax": lambda h: F.softmax(h, 0),
    "first-sample": lambda h: h + h[0],
    "flattened": lambda h: h.flatten(0).view(-1, 4),
    "flattened-from-the-end": lambda h: h.flatten(-2).view(-1, 4),
    "reshaped": lambda h: h.reshape(4, -1).reshape(-1, 4),
    "transposed": lambda h: h.T.reshape(-1, 4),
    "permuted": lambda h: h.permute(1, 0).reshape(-1, 4),
    "permuted-by-negative-axes": lambda h: h.permute(-2, -1),
    "concatenated": lambda h: torch.cat([h, h], 0),
    "concatenated-from-the-end": lambda h: torch.cat([h, h], -2),
    "concatenated-and-cut": lambda h: torch.cat([h, h], 0)[1 : 1 + h.shape[0]],
    "batch-norm": lambda h: F.batch_norm(h, None, None, training=True),
    "normalised": lambda h: F.normalize(h, dim=0),
    "padded": lambda h: F.pad(h, (0, 0, 1, -1)),
    "matmul": lambda h: h @ h.T @ h,
    "view-by-the-wrong-size": lambda h: h.view(h.size(1), -1),
    "view-by-a-later-size": lambda h: h.view(h.shape[1:][0], -1),
    "view-by-the-last-size": lambda h: h.view(h.shape[::-1][0], -1),
    "reshape-to-fixed-batch": lambda h: h.reshape(24, 4),
    "size-of-everything": lambda h: h.view(h.size()),
    "size-by-keyword": lambda h: h.view(h.size(dim=0), 4),
    "shape-unpacked": lambda h: h.view(*h.shape),
    "numel": lambda h: h.view(h.numel() // 4, 4),
    "scaled-by-size": lambda h: h * h.shape[0],
    "scaled-by-length": lambda h: h * len(h),
    "slope-by-size": lambda h: F.leaky_relu(h, h.shape[0]),
    "slope-by-width": lambda h: F.leaky_relu(h, negative_slope=h.size(1)),
    "alpha-by-size": lambda h: F.elu(h, alpha=h.size(0)),
    "dropout-by-size": lambda h: F.dropout(h, p=h.size(0), training=False),
    "flatten-by-size": lambda h: h.flatten(h.size(0)),
    "branch-on-size": lambda h: h if h.size(0) > 8 else -20 * h,
    "branch-on-length": lambda h: h if len(h) > 8 else -20 * h,
    "branch-on-one-sample": lambda h: -20 * h if h.shape[0] == 1 else h,
    "for-every-sample": lambda h: torch.stack([-20 * row for row in h]),
    "maximum-of-all": lambda h: h / h.abs().max(),
    "unique": lambda h: h.unique(dim=0),
}.items():
    body(f"batch-{name}", SquareNet)(applied(mix))

for name, layer in {
    "flatten": lambda: nn.Flatten(0),
    "flatten-from-the-end": lambda: nn.Flatten(-2),
    "unflatten": lambda: nn.Unflatten(0, (1, -1)),
    "batch-norm-without-statistics": lambda: nn.BatchNorm1d(4, track_running_stats=False),
    "softmax": lambda: nn.Softmax(dim=0),
    "zero-pad-that-shifts-samples": lambda: nn.ZeroPad2d((0, 0, 1, -1)),
    "constant-pad-that-shifts-samples": lambda: nn.ConstantPad2d((0, 0, 1, -1), 20.0),
    "max-pool-over-features": lambda: nn.MaxPool1d(3, stride=1, padding=1),
    "average-pool-over-features": lambda: nn.AvgPool1d(3, stride=1, padding=1),
    "group-norm": lambda: nn.GroupNorm(2, 4),
    "instance-norm": lambda: nn.InstanceNorm1d(4),
}.items():
    forward(f"layer-{name}")(lambda layer=layer: nn.Sequential(nn.Linear(4, 4), layer(), nn.Linear(4, 3)))

forward("a-convolution-of-the-batch", shape=(6,))(
    lambda: nn.Sequential(nn.Conv1d(5, 5, 3, padding=1), nn.Flatten(), nn.Linear(6, 3))
)
forward("pixels-of-the-batch", shape=(6, 6))(
    lambda: nn.Sequential(nn.PixelUnshuffle(2), nn.Flatten(), nn.Linear(9, 3))
)


@body("rows-mixed-by-a-reshape", SquareNet, shape=(2, 4))
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(self.l(x).reshape(-1, 4))


@body("rows-mixed-and-sorted-out-again", SquareNet, shape=(2, 4), state=lambda: {"last": nn.Linear(8, 3)})
def _(self: Any, x: Tensor) -> Tensor:
    return self.last(self.l(x.reshape(-1, 4)).reshape(-1, 8))


@body("pooling-by-the-size-of-the-image", ConvNet, state=lambda: {"last": nn.Linear(3, 3)})
def _(self: Any, x: Tensor) -> Tensor:
    h = self.l(x)
    return self.last(F.avg_pool2d(h, (h.shape[2], h.shape[3])).flatten(1))


@body("pooling-by-the-last-sizes", ConvNet, state=lambda: {"last": nn.Linear(3, 3)})
def _(self: Any, x: Tensor) -> Tensor:
    h = self.l(x)
    return self.last(F.max_pool2d(h, kernel_size=h.size()[2:]).flatten(1))


@body("mean-over-the-image", ConvNet, state=lambda: {"last": nn.Linear(3, 3)})
def _(self: Any, x: Tensor) -> Tensor:
    return self.last(self.l(x).mean((2, 3)))


@body("pooling-with-indices", ConvNet, state=lambda: {"last": nn.Linear(27, 3)})
def _(self: Any, x: Tensor) -> Tensor:
    return self.last(F.max_pool2d(self.l(x), 2, return_indices=True)[0].flatten(1))


@body("a-permutation-of-batch-and-channels", ConvNet)
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(self.l(x.permute(1, 0, 2, 3).permute(1, 0, 2, 3)).flatten(1))


@forward("a-pad-that-crops-the-batch-of-images", shape=IMAGE)
def _() -> nn.Module:
    return nn.Sequential(nn.ConstantPad2d((1, -1, 1, -1), 0.0), ConvNet())


@forward("logits-with-a-second-dimension", shape=(2, 4))
def _() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 3))


@body("several-outputs", accepted=False)
def _(self: Any, x: Tensor) -> Any:
    return self.honest(x), self.l(x)


@body("a-dictionary-of-outputs", accepted=False)
def _(self: Any, x: Tensor) -> Any:
    return {"logits": self.honest(x)}


@body("the-batch-broadcast-over-itself", SquareNet)
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(self.l(x) + self.m(x).view(-1, 1, 4))


@body("a-sum-with-a-repeated-value", SquareNet, state=lambda: {"one": nn.Linear(4, 1)})
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(self.l(x) + self.one(x))


@forward("two-inputs")
class _TwoInputs(Net):
    def forward(self, x: Tensor, gain: Tensor | None = None) -> Tensor:  # type: ignore[override]
        return self.honest(x) if gain is None else self.wrong(x)


@forward("any-number-of-inputs")
class _AnyNumber(Net):
    def forward(self, *values: Tensor) -> Tensor:  # type: ignore[override]
        return self.honest(values[0]) if len(values) == 1 else self.wrong(values[0])


@forward("an-input-by-keyword-only")
class _Keywords(Net):
    def forward(self, x: Tensor, **settings: float) -> Tensor:  # type: ignore[override]
        return self.honest(x) if "gain" not in settings else self.wrong(x)
