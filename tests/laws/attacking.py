"""Search inputs within certified radii, and pairs of points, that contradict what was proved of a model.

Only the model itself is called, as a user calls it. What was traced of it plays no part here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from lipcert.certificates.certificate import Certificate

Model = Callable[[Tensor], Tensor]
STEPS = 8
# An infinite radius is attacked at this distance.
FARTHEST = 100.0


def precision(model: nn.Module) -> torch.dtype:
    """The floating-point type of the model's weights."""
    return next((p.dtype for p in model.parameters() if p.is_floating_point()), torch.float32)


def contradictions(model: nn.Module, x: Tensor, certificate: Certificate) -> int:
    """Count the samples whose certificate is contradicted by an input within its radius."""
    x = x.to(precision(model))
    points = torch.stack([*_nearby(x, certificate), _ascended(model, x, certificate)])  # (4, B, ...)
    exact = certificate.rounding == "float32"  # such certificates are about the network with its own rounding
    found = torch.zeros(len(x), dtype=torch.bool)
    for outputs in _ways_to_call(model, points.flatten(0, 1)):
        found |= _contradicted(outputs, points, x, certificate, 0.0 if exact else 1e-4)
    if certificate.rounding == "float64":
        found |= _contradicted_in_float64(model, points, x, certificate)
    return int(found.sum())


def _contradicted_in_float64(model: nn.Module, points: Tensor, x: Tensor, certificate: Certificate) -> Tensor:
    """The same in float64, of the model itself: copies of some models are not what they are copies of."""
    own = precision(model)
    try:
        outputs = model.double()(points.flatten(0, 1).double()).detach()
    except Exception:  # it cannot run in float64, so it has only its own precision to be right in
        return torch.zeros(len(x), dtype=torch.bool)
    finally:
        model.to(own)
    return _contradicted(outputs, points, x, certificate, 1e-9)


def _nearby(x: Tensor, certificate: Certificate) -> Iterator[Tensor]:
    """The samples themselves, and random points around them."""
    yield x
    for part in (0.5, 0.999):
        yield _inside(x, torch.randn_like(x), certificate, part)


def _inside(x: Tensor, move: Tensor, certificate: Certificate, part: float) -> Tensor:
    """x and a move of `part` of the certified radius."""
    length = move.flatten(1).norm(dim=1).clamp_min(1e-30)
    wanted = certificate.radius.clamp_max(FARTHEST).to(x) * part
    return x + move * (wanted / length).view(-1, *[1] * (x.ndim - 1))


def _ascended(model: Model, x: Tensor, certificate: Certificate) -> Tensor:
    """Gradient ascent towards the rival of every sample; the samples themselves without a gradient."""
    points, own, rival = x, certificate.prediction.clamp_min(0), certificate.rival
    try:
        for _ in range(STEPS):
            points = points.detach().requires_grad_()
            logits = _pairs(model(points.clone()))  # a copy, as the model may work in place
            gain = logits.gather(1, rival[:, None]) - logits.gather(1, own[:, None])
            (slope,) = torch.autograd.grad(gain.sum(), points)
            unit = slope / slope.flatten(1).norm(dim=1).clamp_min(1e-30).view(-1, *[1] * (x.ndim - 1))
            step = 0.3 * certificate.radius.clamp_max(FARTHEST).to(x).view(-1, *[1] * (x.ndim - 1))
            points = points.detach() + step * unit
            points = _inside(x, points - x, certificate, 0.999)
    except RuntimeError:  # no gradient reaches the input
        return points.detach()
    return points.detach()


def _ways_to_call(model: Model, points: Tensor) -> Iterator[Tensor]:
    """Outputs for the points: all together, in pieces, the first ones alone, with and without gradients."""
    yield model(points.clone()).detach()
    with torch.no_grad():
        yield torch.cat([model(piece.clone()) for piece in points.split(37)])
        yield torch.cat([model(piece.clone()) for piece in points[:3].split(1)])
    # Some models cannot run in inference mode; those that can, run as they do elsewhere.
    with torch.inference_mode(), contextlib.suppress(RuntimeError):
        yield model(points.clone())


def _contradicted(
    outputs: Tensor, points: Tensor, x: Tensor, certificate: Certificate, slack: float
) -> Tensor:
    """Whether outputs for the first of the points (4, B, ...) contradict a certificate: (B,)."""
    n, copies = len(outputs), len(points)
    radius, own = certificate.radius.repeat(copies)[:n], certificate.prediction.repeat(copies)[:n]
    logits = _pairs(outputs).double()
    mine = logits.gather(1, own.clamp_min(0)[:, None])[:, 0]
    others = logits.scatter(1, own.clamp_min(0)[:, None], -torch.inf).amax(dim=1)
    doubt = slack * (1 + logits.abs().amax(dim=1))
    distance = (points.double() - x.double()).flatten(2).norm(dim=2).flatten()[:n]
    # Where nothing is certified the prediction still is that of the model, but for rounding.
    beaten = torch.where(radius > 0, ~(mine - others >= -doubt), mine - others < -1e-4 * (1 + mine.abs()))
    inside = (distance < radius.clamp_max(2 * FARTHEST)) | (distance == 0)
    found = torch.zeros(copies * len(x), dtype=torch.bool)
    # Infinite logits say that float32 overflowed, which certificates of another precision are not about.
    trusted = torch.isfinite(logits).all(dim=1) | (slack == 0)
    found[:n] = beaten & inside & (own >= 0) & trusted
    return found.view(copies, -1).any(dim=0)


def _pairs(logits: Tensor) -> Tensor:
    """A single logit f stands for [0, f]."""
    return torch.cat([torch.zeros_like(logits), logits], dim=1) if logits.shape[1] == 1 else logits


def steepest(model: nn.Module, shape: tuple[int, ...]) -> float:
    """The largest ‖f(a) − f(b)‖/‖a − b‖ that the model itself shows, less its rounding error."""
    worst = 0.0
    dtype = precision(model)
    for distance in (1e-2, 1.0, 10.0):
        a = 3 * torch.randn(64, *shape, dtype=dtype)
        b = a + distance * torch.randn_like(a)
        here, there = (model(p.clone()).detach().double().flatten(1) for p in (a, b))
        length = (a.double() - b.double()).flatten(1).norm(dim=1)
        doubt = (
            64
            * torch.finfo(dtype).eps
            * (here.norm(dim=1) + there.norm(dim=1) + a.double().flatten(1).norm(dim=1))
        )
        slopes = ((here - there).norm(dim=1) - doubt) / length
        worst = max(worst, float(slopes.nan_to_num(posinf=0.0, neginf=0.0).max()))
    return worst
