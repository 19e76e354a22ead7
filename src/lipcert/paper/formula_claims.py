"""Check what the paper's text claims about its formulas, by computing them without any training."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from lipcert.certificates.radius import nearest_rival
from lipcert.data import load
from lipcert.losses import AOL, CLL
from lipcert.paper.definition import Claim
from lipcert.paper.outcome import Outcome
from lipcert.paper.verdict import Consistency, Verdict, Word
from lipcert.tables.kinds import EXACT_PERCENT, SETTING
from lipcert.types import PairLip

_EPS, _P = 0.15, 1e-3
_K = 2.0  # bounds the difference of two logits
_TWO = PairLip(torch.tensor(1.0).double(), torch.tensor([[0.0], [_K]]).double())  # one row per logit


def is_calibrated(rows: Sequence[Outcome]) -> Consistency:
    """Check that the calibrated logistic is p at one end of the margin and 1 − p at the other."""
    loss = CLL(eps=_EPS, slack=_P)
    at_ends = [1 / (1 + math.exp(-x / float(loss.scale))) for x in (-_EPS, _EPS)]
    off = max(abs(value - expected) for value, expected in zip(at_ends, (_P, 1 - _P), strict=True))
    return Consistency(off < 1e-9, f"the logistic is p at −ε and 1 − p at ε, to {off:.0e}")


def offset_is_half_on_the_margin(rows: Sequence[Outcome]) -> Consistency:
    """Check where the offset puts the probability ½: at ε in Definition 1, at 2ε in Definition 2."""
    one, two = (CLL(eps=_EPS, slack=_P, sides=sides) for sides in ("one", "two"))
    values = [float(_loss_at(one, _EPS)), float(_loss_at(two, 2 * _EPS))]
    off = max(abs(math.exp(-value) - 0.5) for value in values)
    return Consistency(
        off < 1e-9, f"½ at distance ε with Definition 1, at 2ε with Definition 2, to {max(off, 1e-16):.0e}"
    )


def two_classes_are_binary(rows: Sequence[Outcome]) -> Consistency:
    """Check that Definition 2 for two classes is Definition 1 with twice the offset."""
    worst = 0.0
    for distance in torch.linspace(-0.5, 0.5, 21).tolist():
        two = CLL(eps=_EPS, slack=_P)
        binary = CLL(eps=_EPS, slack=_P, offset=2 * _EPS, sides="one")
        worst = max(worst, abs(float(_loss_at(two, distance) - _binary(binary, distance))))
    return Consistency(
        worst < 1e-9, f"a logistic of the same scale, with the offset 2ε, to {max(worst, 1e-16):.0e}"
    )


def generalises_aol(rows: Sequence[Outcome]) -> Consistency:
    """Check that CLL with a constant K is the loss of AOL over its temperature t = σK, with u = 2εK."""
    ours = CLL(eps=_EPS, slack=_P)
    temperature = float(ours.scale) * _K
    aol = AOL(offset=2 * _EPS * _K, temperature=temperature)
    logits, labels = (
        torch.randn(50, 2, generator=torch.Generator().manual_seed(0)).double(),
        torch.arange(50) % 2,
    )
    values, theirs = ours(logits, labels, _TWO), aol(logits, labels, _TWO) / temperature
    off = float((values - theirs).abs().max())
    return Consistency(off < 1e-9, f"with K fixed, t = σK and u = 2εK the two agree to {max(off, 1e-16):.0e}")


def slack_lowers_khf(rows: Sequence[Outcome]) -> Consistency:
    """Check that K_hf = log((1 − p)/p)/ε falls as p grows; it is not proportional to 1/p."""
    slacks = (1e-12, 1e-3, 0.15, 0.4)
    found = [CLL(eps=_EPS, slack=p).whole_lipschitz(_K) for p in slacks]
    listed = ", ".join(
        f"{value:.1f} at p = {SETTING.text(p)}" for p, value in zip(slacks, found, strict=True)
    )
    return Consistency(found == sorted(found, reverse=True), f"log((1−p)/p)/ε with ε = 0.15: {listed}")


def moons_are_apart(rows: Sequence[Outcome]) -> Consistency:
    """Check that no two training points of different classes are closer than the true margin."""
    data = load("moons", split="train")
    x = data.x.double()
    nearest = float(torch.cdist(x[data.y == 0], x[data.y == 1]).min())
    found = f"arcs 0.5 apart, discs of radius 0.1; the closest training points are {nearest:.3f} apart"
    return Consistency(nearest >= 0.3 - 1e-6, found)


def runner_up_certifies(rows: Sequence[Outcome]) -> Verdict:
    """Check whether the margin to the runner-up alone, over its K, is a radius: it is not.

    The first logit leads the second by 1 with K = 1, the third by 1.05 with K = 70.
    """
    margins, constants = torch.tensor([[0.0, 1.0, 1.05]]), torch.tensor([[0.0, 1.0, 70.0]])
    radius = float(nearest_rival(margins, constants, torch.tensor([0]))[0])
    runner_up = float(margins[0, 1] / constants[0, 1])
    found = f"margins 1 and 1.05, K 1 and 70: {runner_up:.1f} by the runner-up, {radius:.3f} over all rivals"
    return Verdict(Word.of(runner_up <= radius), found)


def power_iteration_is_exact(rows: Sequence[Outcome]) -> Verdict:
    """Check whether power iteration that has converged to 1e-9 reaches the norm of random convolutions.

    It comes from below, and it changes slowly where the largest singular values are close together.
    """
    generator = torch.Generator().manual_seed(0)
    short = []
    for _ in range(8):
        matrix = _convolution(generator)
        short.append(1 - _iterated(matrix.float(), generator) / float(torch.linalg.svdvals(matrix)[0]))
    worst = EXACT_PERCENT.text(max(short))
    found = (
        f"up to {worst} % of the norm short, on eight random 3×3 convolutions of 16 × 16 pixels in float32"
    )
    return Verdict(Word.of(max(short) <= 1e-6), found)


def _convolution(generator: torch.Generator) -> torch.Tensor:
    """Return the matrix of a random convolution of one channel of 16 × 16 pixels, padded with zeros."""
    kernel = torch.randn(1, 1, 3, 3, generator=generator, dtype=torch.float64)
    unit = torch.eye(256, dtype=torch.float64).reshape(-1, 1, 16, 16)
    return torch.nn.functional.conv2d(unit, kernel, padding=1).flatten(1).T


def _iterated(a: torch.Tensor, generator: torch.Generator) -> float:
    """Return the norm as power iteration finds it, from a random start until it changes by less than 1e-9."""
    v = torch.randn(a.shape[1], generator=generator).to(a.dtype)
    before, norm = 0.0, 1.0
    while abs(norm - before) >= 1e-9:
        u = a @ (v / v.norm())
        v = a.T @ (u / u.norm())
        before, norm = norm, float(v.norm())
    return norm


def _loss_at(loss: CLL, distance: float) -> torch.Tensor:
    """Return the loss of one sample of class 1 whose logits are so far from the boundary, over K."""
    return loss(torch.tensor([[0.0, _K * distance]], dtype=torch.float64), torch.tensor([1]), _TWO)


def _binary(loss: CLL, distance: float) -> torch.Tensor:
    """Return Definition 1 for class 1: −log h((−δ + f/K)/σ)."""
    assert loss.offset is not None
    z = (torch.tensor(distance, dtype=torch.float64) - loss.offset) / loss.scale
    return -torch.nn.functional.logsigmoid(z)


CALIBRATED = Claim("σ is calibrated to the margin: p at −ε, 1 − p at ε", "Equation 5", is_calibrated)

# Sections 3.2 and 3.3, and A of the supplement.
METHOD = (
    Claim(
        "the offset puts the probability ½ on the margin, the worst case",
        "Section 3.2; with Definition 2 the margin is 2ε wide",
        offset_is_half_on_the_margin,
    ),
    Claim(
        "K_hf falls as the slack p grows",
        "Section 3.3: K_hf = 1/σ(p), 'inversely proportional'",
        slack_lowers_khf,
    ),
    Claim("for two classes Definition 2 is a calibrated logistic", "proof in A", two_classes_are_binary),
    Claim("CLL generalises the loss of AOL, whose t is fixed", "A: u like ε, t like σK", generalises_aol),
)
MOONS = Claim(
    "the true margin of two moons is exactly 0.3", "Section 4.1: noise of radius 0.1", moons_are_apart
)
CERTIFICATION = Claim(
    "a sample is certified if its lead over the runner-up exceeds εK_ij",
    "supplement, C: M_f(x) = f_i − max f_j",
    runner_up_certifies,
)
CONVERGED = Claim(
    "power iteration until the error between iterations is below 1e-9 makes the bound exact",
    "supplement, B",
    power_iteration_is_exact,
)
