"""CLL: cross-entropy whose logistic is calibrated to the margin, with control over slack.

Losch, Stutz, Schiele, Fritz. Certified Robust Models with Slack Control and Large Lipschitz
Constants. GCPR 2023. Binary form: Definition 1; multiclass form: Definition 2 of its supplement.

`slack` is the p of Equation 5. The paper's printed tables and sweeps show twice that p, except for
4C3F and 6C2F.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import torch
from torch import Tensor

from lipcert.errors import InputError
from lipcert.losses.base import LOSSES, Loss, Number, check_number, clamped, on_label
from lipcert.losses.softmax import cross_entropy
from lipcert.suggestions import expected_one_of
from lipcert.types import PairLip

Sides = Literal["one", "two"]
Normaliser = Literal["pair", "logit"]


def calibrated_scale(eps: Number, slack: Number) -> Number:
    r"""Return the scale at which the logistic falls from 1 − p to p across the margin (Eq. 5).

    $$ \sigma_\varepsilon(p) = \frac{2\varepsilon}{h^{-1}(1-p) - h^{-1}(p)}
       = \frac{\varepsilon}{\log\frac{1-p}{p}} $$

    Example:
        >>> round(1 / calibrated_scale(eps=0.15, slack=0.15), 1)  # K_hf of the paper's 4C3F
        11.6
    """
    return eps / _log_odds(slack)


def _log_odds(p: Number) -> Number:
    """Return log((1 − p)/p), accurate for p from 1e-300 up to ½."""
    # Near ½ the two logarithms cancel, so the quotient goes into log1p as its distance from 1.
    if not isinstance(p, Tensor):
        return math.log1p(-p) - math.log(p) if p <= 0.25 else math.log1p((1 - 2 * p) / p)
    large = torch.where(p <= 0.25, 0.5, p)  # keeps the branch not taken, and its gradient, finite
    return torch.where(p <= 0.25, torch.log1p(-p) - torch.log(p), torch.log1p((1 - 2 * large) / large))


def calibrated_logits(
    logits: Tensor,
    labels: Tensor,
    lip: PairLip,
    *,
    scale: Number,
    offset: Number,
    sides: Sides = "two",
    beta: Number = 1.0,
    normaliser: Normaliser = "pair",
) -> Tensor:
    r"""Return logits in units of input distance over σ, with the margin subtracted from the label: (B, N).

    $$ z_y = -\frac{\delta}{\sigma}, \qquad
       z_i = \frac{\delta}{\sigma} + \frac{f_i - f_y}{\sigma \beta K_{iy}} $$

    With `sides="one"` $z_y = 0$: the probability is ½ at distance δ, not 2δ, and two classes give
    Definition 1. `normaliser="logit"` divides every logit by its own $\sigma\beta K_i$ instead, as some
    of the authors' configurations do.

    Example:
        A sample exactly δ away from the boundary has probability ½ with one side:

        >>> lip = PairLip(features=torch.tensor(1.0), head=torch.tensor([[0.0], [2.0]]))
        >>> z = calibrated_logits(
        ...     torch.tensor([[0.0, 0.5]]), torch.tensor([1]), lip, scale=0.1, offset=0.25, sides="one"
        ... )
        >>> z.softmax(1)
        tensor([[0.5000, 0.5000]])
    """
    z = logits_against_label(
        logits, labels, lip, width=scale * beta, margin=_margin(offset / scale, sides), normaliser=normaliser
    )
    return z - offset / scale if sides == "two" else z


def _margin(away: Number, sides: Sides) -> Number:
    """Return by how much z_i is raised above z_y."""
    return 2 * away if sides == "two" else away


def logits_against_label(
    logits: Tensor, labels: Tensor, lip: PairLip, *, width: Number, margin: Number, normaliser: Normaliser
) -> Tensor:
    """Return the calibrated logits minus the label's, because softmax ignores a common shift."""
    own = on_label(logits, labels)  # (B, N)
    if normaliser == "pair":
        distance = _quotient(logits - logits.gather(1, labels[:, None]), lip.rows(labels), width)
    else:
        distance = _quotient(logits, lip.singles(), width)
        distance = distance - distance.gather(1, labels[:, None])
    # The label's own quotient is 0/0, and so is its gradient: it is left out by index.
    return (distance + margin).masked_fill(own, 0.0)


def _quotient(difference: Tensor, constants: Tensor, width: Number) -> Tensor:
    """Return difference/(constants·width), finite with its gradients even where two head rows agree."""
    # The derivative is the quotient divided by K again: it stays below the largest float to the power ⅞.
    info = torch.finfo(constants.dtype)
    most = info.max**0.375
    return clamped(difference, most) / (constants.clamp(info.tiny**0.25, info.max**0.75) * width)


@LOSSES.register("cll", example={"eps": 0.1, "slack": 0.05, "lam": 1e-3})
@dataclass(frozen=True)
class CLL(Loss):
    r"""Calibrate the logistic to the margin, with slack; divides the logits by K and penalises λK².

    $$ \mathrm{CE}(z, y) + \lambda K_f^2 $$

    With a one-logit model and one side it is the binary form. lam weighs the penalty λK_f². offset is the
    margin δ subtracted from the label, ε by default. beta scales K alone (a schedule softens the start).
    detach_constant keeps the cross-entropy from shrinking K; then only the penalty controls K.
    """

    eps: Number
    slack: Number
    lam: Number = 0.0
    offset: Number | None = None
    sides: Sides = "two"
    beta: Number = 1.0
    detach_constant: bool = True
    normaliser: Normaliser = "pair"

    def __post_init__(self) -> None:
        check_number("eps", self.eps, above=0)
        check_number("beta", self.beta, above=0)
        if not isinstance(self.slack, Tensor | float | int) or (
            not isinstance(self.slack, Tensor) and not 0 < self.slack < 0.5
        ):
            raise InputError(
                f"slack: expected between 0 and 0.5, got {self.slack!r} "
                "(the paper prints twice this p except for 4C3F and 6C2F: halve it)"
            )
        if isinstance(self.lam, Tensor) or self.lam != 0:
            check_number("lam", self.lam, above=0)
        if self.offset is not None:
            check_number("offset", self.offset, above=-math.inf)
        for name, value, known in (
            ("sides", self.sides, get_args(Sides)),
            ("normaliser", self.normaliser, get_args(Normaliser)),
        ):
            if value not in known:
                raise InputError(f"{name}: {expected_one_of(known, value)}")

    @property
    def scale(self) -> Number:
        """Return σ."""
        return calibrated_scale(self.eps, self.slack)

    @cached_property
    def width(self) -> Number:
        """Return σβ, the width of the logistic."""
        return self.scale * self.beta

    @cached_property
    def margin(self) -> Number:
        """Return the margin that is subtracted from the label, in units of σ."""
        return _margin((self.eps if self.offset is None else self.offset) / self.scale, self.sides)

    def values(self, logits: Tensor, labels: Tensor, lip: PairLip) -> Tensor:
        """Return one value per sample: (B,)."""
        if self.detach_constant:
            lip = lip.detach()
        z = logits_against_label(
            logits, labels, lip, width=self.width, margin=self.margin, normaliser=self.normaliser
        )
        return cross_entropy(z, labels)

    def penalty(self, lip: PairLip) -> Tensor:
        """Return λK_f², for the constants without beta."""
        return self.lam * lip.max() ** 2

    def whole_lipschitz(self, k_f: float) -> float:
        """Return 1/σ for any K_f, because the normalisation divides it out."""
        return 1 / float(self.scale)
