"""Aliases, views, casts and in-place work on values."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.laws.corpus.registry import Net, SquareNet, TwoFaced, applied, body, forward, ignored


@body("data-replaced-on-a-value", SquareNet)
def _(self: Any, x: Tensor) -> Tensor:
    h = self.l(x)
    h.data = F.leaky_relu(h, -20.0)
    return self.head(h)


@body("data-replaced-on-the-logits", TwoFaced)
def _(self: Any, x: Tensor) -> Tensor:
    y = self.honest(x)
    y.data = self.wrong(x)
    return y


@body("data-replaced-on-the-input", SquareNet)
def _(self: Any, x: Tensor) -> Tensor:
    x.data = F.leaky_relu(self.m(x), -20.0)
    return self.honest(x)


@body("data-replaced-by-setattr", SquareNet)
def _(self: Any, x: Tensor) -> Tensor:
    h = self.l(x)
    setattr(h, "data", F.leaky_relu(self.m(h), -20.0))  # noqa: B010
    return self.head(h)


@body("data-replaced-by-a-product")
def _(self: Any, x: Tensor) -> Tensor:
    h = self.l(x)
    h.data = -20 * h.detach()
    return self.head(h)


@body("the-real-part-replaced", SquareNet)
def _(self: Any, x: Tensor) -> Tensor:
    h = self.l(x)
    h.real = F.leaky_relu(self.m(h), -20.0)
    return self.head(h)


@body("a-gradient-set-on-a-value", SquareNet)
def _(self: Any, x: Tensor) -> Tensor:
    h = self.l(x)
    h.grad = self.m(h)
    return self.head(h)


@body("an-attribute-on-a-value")
def _(self: Any, x: Tensor) -> Tensor:
    x.gain = 20.0
    h = self.l(x)
    return self.wrong(x) if "gain" not in vars(h) and type(h) is Tensor else self.head(self.act(h))


@body("requires-grad-on-a-value")
def _(self: Any, x: Tensor) -> Tensor:
    h = self.l(x).detach()
    h.requires_grad = True
    return self.head(self.act(h))


@body("data-of-a-value-scaled")
def _(self: Any, x: Tensor) -> Tensor:
    h = self.l(x)
    h.data.mul_(-20)
    return self.head(h)


@body("data-of-the-input-zeroed")
def _(self: Any, x: Tensor) -> Tensor:
    h = self.l(x)
    x.data.zero_()
    return self.head(h)


@body("a-detached-alias-changed", SquareNet)
def _(self: Any, x: Tensor) -> Tensor:
    h = self.l(x)
    h.detach().mul_(-20)
    return self.head(h)


@body("the-input-changed-before-it-is-used-again", SquareNet)
def _(self: Any, x: Tensor) -> Tensor:
    h = F.relu(x, inplace=True)
    return self.head(self.l(h) + self.m(x))


@body("the-input-overwritten-by-a-sum", SquareNet)
def _(self: Any, x: Tensor) -> Tensor:
    skip = x
    x += self.l(x)
    return self.head(x + self.m(skip))


@body("a-sum-in-place-on-a-held-value", SquareNet)
def _(self: Any, x: Tensor) -> Tensor:
    h = self.l(x)
    kept = h
    h += x
    return self.head(self.m(kept) + h)


@body("a-sum-in-place-on-a-view", SquareNet)
def _(self: Any, x: Tensor) -> Tensor:
    h = self.l(x)
    v = h.view(-1, 4)
    v += x
    return self.head(h + self.m(v))


@body("a-sum-in-place-on-a-flattened-value", SquareNet)
def _(self: Any, x: Tensor) -> Tensor:
    h = self.l(x)
    v = h.flatten(1)
    v += self.m(x)
    return self.head(h)


@body("iadd-by-its-name", SquareNet)
def _(self: Any, x: Tensor) -> Tensor:
    h = self.l(x)
    g = h.__iadd__(self.m(x))
    return self.head(h + g)


for name, change in {
    "mul_": lambda h: h.mul_(-20),
    "add_": lambda h: h.add_(h, alpha=20),
    "relu_": lambda h: torch.relu_(h),
    "neg_": lambda h: h.neg_(),
    "copy_": lambda h: h.copy_(-20 * h),
    "fill_": lambda h: h.fill_(1.0),
    "functional-relu-in-place": lambda h: F.relu(h, inplace=True),
    "functional-relu_": lambda h: F.relu_(h),
    "leaky_relu_": lambda h: F.leaky_relu_(h, -20.0),
    "elu_": lambda h: F.elu(h, 20.0, True),
    "set_": lambda h: h.set_(-20 * h.detach()),
    "resize_": lambda h: h.resize_(h.shape),
    "unsqueeze_": lambda h: h.unsqueeze_(1),
    "t_": lambda h: h.t_(),
}.items():
    body(f"result-ignored-{name}", SquareNet)(ignored(change))


for name, change in {
    "times": lambda h: h * 20,
    "imul": lambda h: h.__imul__(20),
    "minus": lambda h: 0 - h,
    "add-alpha": lambda h: torch.add(h, h, alpha=20),
    "add-method-alpha": lambda h: h.add(h, alpha=20),
    "radd": lambda h: 1.0 + h,
    "add-a-number": lambda h: torch.add(h, 5.0),
    "power": lambda h: h**2,
    "divided": lambda h: h / 0.05,
    "matmul": lambda h: h @ h.T,
    "half-and-back": lambda h: h.half().float(),
    "double-and-back": lambda h: h.double().float(),
    "to-float32": lambda h: h.to(torch.float32),
    "to-int-and-back": lambda h: h.int().float(),
    "type-as": lambda h: h.type_as(h),
    "round": lambda h: h.round(),
    "data": lambda h: h.data,
    "detach": lambda h: h.detach(),
    "clone": lambda h: h.clone(),
    "contiguous": lambda h: h.contiguous(),
    "slice": lambda h: torch.cat([h[:, :3], h[:, 3:]], 1),
    "narrow": lambda h: torch.cat([h.narrow(1, 0, 2), h.narrow(1, 2, 2)], 1),
    "chunk": lambda h: torch.cat(h.chunk(2, dim=1), 1),
    "split": lambda h: torch.cat(h.split(2, dim=1), 1),
    "unbind": lambda h: torch.stack(h.unbind(1), 1),
    "unpacked": lambda h: torch.stack([*h]),
    "index": lambda h: h[:, [3, 2, 1, 0]],
    "ellipsis": lambda h: h[...],
    "squeeze": lambda h: h.unsqueeze(1).squeeze(1),
    "expand": lambda h: h.expand(-1, 4),
    "where": lambda h: torch.where(h > 0, 20 * h, h),
    "masked": lambda h: h.masked_fill(h > 0, 20.0),
    "clamp": lambda h: h.clamp(-1, 1),
    "norm": lambda h: h / h.norm(dim=1, keepdim=True),
    "softmax": lambda h: F.softmax(20 * h, dim=1),
    "layer-norm": lambda h: F.layer_norm(h, (4,)),
    "normalise": lambda h: F.normalize(h, dim=1),
    "elu-steep": lambda h: F.elu(h, 20.0),
    "leaky-steep": lambda h: F.leaky_relu(h, 20.0),
    "dropout-training": lambda h: F.dropout(h, 0.9, True),
    "dropout-default": lambda h: F.dropout(h, 0.9),
    "numpy": lambda h: torch.from_numpy(-20 * h.detach().numpy()),
    "to-list": lambda h: torch.tensor(h.tolist()),
    "out-argument": lambda h: torch.add(h, h, out=torch.empty(1)),
    "relu-keyword": lambda h: F.relu(input=h),
    "cat-of-one": lambda h: torch.cat((h,), dim=1),
    "cat-keyword": lambda h: torch.cat(tensors=[h], dim=1),
    "stack": lambda h: torch.stack([h, h], dim=1).flatten(1)[:, :4],
    "conjugate": lambda h: h.conj().real,
    "grad-hook": lambda h: (
        (h.register_hook(lambda g: -g), h)[1] if isinstance(h, Tensor) and h.requires_grad else h
    ),
}.items():
    body(f"a-value-{name}", SquareNet)(applied(change))


@body("item-assignment")
def _(self: Any, x: Tensor) -> Tensor:
    h = self.l(x)
    h[:, 0] = 20.0
    return self.head(h)


@body("a-value-deleted-and-made-anew", SquareNet)
def _(self: Any, x: Tensor) -> Tensor:
    h = self.l(x)
    del x
    return self.head(h)


@forward("an-in-place-layer-on-a-shared-value")
class _Shared(SquareNet):
    def __init__(self) -> None:
        super().__init__()
        self.act = nn.LeakyReLU(-3.0, inplace=True)  # type: ignore[assignment]

    def forward(self, x: Tensor) -> Tensor:
        h = self.l(x)
        return self.head(self.act(h) + h)


@forward("an-in-place-layer-on-the-input")
class _OnInput(Net):
    def __init__(self) -> None:
        super().__init__()
        self.act = nn.LeakyReLU(-3.0, inplace=True)  # type: ignore[assignment]

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.l(self.act(x)))
