r"""Multipliers of a dense tail, found by scaled gradient steps. The proof is in tail_prover.py.

In the coordinates of its activation, the values before activation l lie in an ellipsoid with matrix Q, the
input being in a ball. With one number $d_k$ for every unsure slope, the values after it lie in that of

$$ P = c(Q_{AA} + Q_{AB}(D - Q_{BB})^{-1}Q_{BA})c + \rho^2D, \qquad D \succ Q_{BB}, $$

A the coordinates with a middle slope c, B those with an unsure slope, up to ρ from it. $v^TPv$ of the last
one is convex in all $d$ together. It is minimised with a barrier, $-\mu\log\det(D - Q_{BB})$ of every layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lipcert.certificates.tails.sector import Sector

# The decrease, relative to the barrier, that is worth another step, and the shortest step.
_ENOUGH, _SHORTEST = 1e-3, 1e-6

# The first multipliers are this much larger than the least that a layer allows.
_ROOM = 1.3


@dataclass(frozen=True)
class Layer:
    """A linear map between the coordinates of two activations, and the second of them."""

    link: Tensor
    sector: Sector


@dataclass(frozen=True)
class Ellipsoid:
    """Hold the ellipsoid that a layer with multipliers d makes of the one before it."""

    inverse: Tensor  # (D − Q_BB)⁻¹
    gain: Tensor  # Z = Q_AB·inverse
    passed: Tensor  # Q_AA + Z·Q_BA
    volume: float  # log det(D − Q_BB)


def _before(layer: Layer, after: Tensor | None) -> Tensor:
    """Return Q from the ellipsoid after the layer before; None stands for the unit ball."""
    return layer.link @ (layer.link.T if after is None else after @ layer.link.T)


def _ellipsoid(layer: Layer, q: Tensor, d: Tensor) -> Ellipsoid | None:
    a, b = layer.sector.passing, layer.sector.unsure
    factor, failed = torch.linalg.cholesky_ex(torch.diag(d) - q[b][:, b])
    if failed:
        return None
    inverse, mixed = torch.cholesky_inverse(factor), q[a][:, b]
    gain = mixed @ inverse
    volume = 2 * float(factor.diagonal().log().sum())
    return Ellipsoid(inverse, gain, q[a][:, a] + gain @ mixed.T, volume)


def _after(sector: Sector, here: Ellipsoid, d: Tensor) -> Tensor:
    """Return P, in the coordinates of the activation."""
    a, b = sector.passing, sector.unsure
    p = d.new_zeros(len(sector.centre), len(sector.centre))
    p[a[:, None], a] = sector.centre[a, None] * here.passed * sector.centre[a]
    p[b, b] += sector.reach[b] ** 2 * d
    return p


def path(layers: Sequence[Layer], ds: Sequence[Tensor]) -> tuple[list[Ellipsoid], Tensor] | None:
    """Return the ellipsoids of all layers and the last P; None where the multipliers are too small."""
    found, after = [], None
    for layer, d in zip(layers, ds, strict=True):
        here = _ellipsoid(layer, _before(layer, after), d)
        if here is None:
            return None
        found.append(here)
        after = _after(layer.sector, here, d)
    assert after is not None  # a tail has layers
    return found, after


def first_multipliers(layers: Sequence[Layer]) -> list[Tensor] | None:
    """Return multipliers that every layer allows, None if none were found."""
    ds, after = list[Tensor](), None
    for layer in layers:
        q, b = _before(layer, after), layer.sector.unsure
        largest = torch.linalg.eigvalsh(q[b][:, b])[-1]
        d = (_ROOM * largest).expand(len(b)).clone()
        here = _ellipsoid(layer, q, d)
        if here is None:
            return None
        ds.append(d)
        after = _after(layer.sector, here, d)
    return ds


def minimise(
    layers: Sequence[Layer], target: Tensor, ds: Sequence[Tensor], barriers: Sequence[float], steps: int
) -> list[Tensor]:
    """Return multipliers that nearly minimise ⟨target, P⟩ of the last layer, by so many steps per barrier."""
    ds, count = list(ds), sum(len(d) for d in ds)
    for barrier in barriers:
        found = path(layers, ds)
        if found is None:
            break
        mu = barrier * float((target * found[1]).sum()) / count
        ds = _descend(layers, target, ds, mu, steps)
    return ds


def value(layers: Sequence[Layer], target: Tensor, ds: Sequence[Tensor], mu: float) -> float:
    """Return the objective with its barrier; infinite where the multipliers are too small."""
    found = path(layers, ds)
    if found is None:
        return torch.inf
    return float((target * found[1]).sum()) - mu * sum(here.volume for here in found[0])


def _descend(layers: Sequence[Layer], target: Tensor, ds: list[Tensor], mu: float, most: int) -> list[Tensor]:
    """Take steps with a line search, until one promises too little or no length of it helps."""
    now, length, count = value(layers, target, ds, mu), 1.0, sum(len(d) for d in ds)
    for _ in range(most):
        found = path(layers, ds)
        if found is None:
            break
        slopes, steps = gradient_and_steps(layers, found[0], target, mu)
        promised = -sum(float(g @ s) for g, s in zip(slopes, steps, strict=True))
        if not promised > _ENOUGH * mu * count:
            break
        length = min(1.0, 4 * length)
        while length > _SHORTEST:
            tried = [d + length * s for d, s in zip(ds, steps, strict=True)]
            if (there := value(layers, target, tried, mu)) <= now - 0.1 * length * promised:
                break
            length /= 2
        else:
            break
        ds, now = tried, there
    return ds


def gradient_and_steps(
    layers: Sequence[Layer], found: Sequence[Ellipsoid], target: Tensor, mu: float
) -> tuple[list[Tensor], list[Tensor]]:
    """Return the gradient by every layer's multipliers, and the Newton step of each layer by itself."""
    slopes, steps = [], []
    for layer, here, weight in zip(layers, found, _adjoints(layers, found, target, mu), strict=True):
        b = layer.sector.unsure
        passed = here.gain.T @ _scaled(layer.sector, weight) @ here.gain
        slope = layer.sector.reach[b] ** 2 * weight[b, b]
        slope = slope - passed.diagonal() - mu * here.inverse.diagonal()
        slopes.append(slope)
        steps.append(_newton(slope, here.inverse * (2 * passed + mu * here.inverse)))
    return slopes, steps


def _newton(gradient: Tensor, hessian: Tensor) -> Tensor:
    """Return the Newton step, solved in units in which the diagonal is 1."""
    unit = hessian.diagonal().rsqrt()
    factor, failed = torch.linalg.cholesky_ex(unit[:, None] * hessian * unit)
    if failed:
        return -gradient * unit**2
    return -unit * torch.cholesky_solve((unit * gradient)[:, None], factor)[:, 0]


def _adjoints(layers: Sequence[Layer], found: Sequence[Ellipsoid], target: Tensor, mu: float) -> list[Tensor]:
    """Return the derivative of the objective by every layer's P."""
    weights = [target]
    for layer, here in zip(layers[:0:-1], found[:0:-1], strict=True):
        a, b = layer.sector.passing, layer.sector.unsure
        reading = target.new_zeros(len(a), len(layer.sector.centre))  # [I, Z], the first-order change of P
        reading[torch.arange(len(a)), a] = 1.0
        reading[:, b] += here.gain
        back = reading.T @ _scaled(layer.sector, weights[0]) @ reading
        back[b[:, None], b] += mu * here.inverse
        weights.insert(0, layer.link.T @ back @ layer.link)
    return weights


def _scaled(sector: Sector, weight: Tensor) -> Tensor:
    """Return the part of a weight that falls on what passes."""
    a = sector.passing
    return sector.centre[a, None] * weight[a][:, a] * sector.centre[a]
