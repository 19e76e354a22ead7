"""What users write as a forward: refused, or certified and right under attack against the model itself.

A new way to write one is one entry of `tests/laws/corpus`; a new way to change a model behind the certifier's
back is one entry of `tests/laws/changes.py`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import get_args

import pytest
import torch
from torch import Tensor, nn

import lipcert
from lipcert.bounds import upper
from lipcert.certificates.certificate import Certificate, Rounding
from lipcert.errors import LipcertError
from tests.laws.attacking import contradictions, precision, steepest
from tests.laws.changes import CHANGES
from tests.laws.corpus import FORWARDS, Entry

every_forward = pytest.mark.parametrize("name", list(FORWARDS))


class Refusal(Exception):  # noqa: N818  not an error: the law is obeyed
    """The model was refused, in one clear line."""


def require(condition: bool, message: str) -> None:
    """Fail with a message; for where pytest has no assertion to explain."""
    if not condition:
        raise AssertionError(message)


class NoProof(Refusal):
    """Nothing could be proved, so no rounding can be certified."""


@contextmanager
def may_refuse() -> Iterator[None]:
    """Turn lipcert's own errors into a `Refusal`. Any other exception is a failure of the law."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        except LipcertError as error:
            require(len(str(error).strip().splitlines()) == 1, f"refused, but not in one line: {error!r}")
            raise Refusal(str(error)) from error


def inputs(entry: Entry, model: nn.Module, count: int) -> Tensor:
    return 2 * torch.randn(count, *entry.shape, dtype=precision(model))


def issued(entry: Entry, model: nn.Module, rounding: Rounding) -> list[tuple[Tensor, Certificate]]:
    """Certificates of several batches, two of them of the same inputs."""
    try:
        with may_refuse():
            certify = lipcert.certifier(model, entry.shape)
    except Refusal as refusal:
        raise NoProof(str(refusal)) from refusal
    if entry.unsafe_to_run:
        return []
    with may_refuse():
        x = inputs(entry, model, 24)
        batches = [x, x, inputs(entry, model, 1), inputs(entry, model, 17)]
        return [(batch, certify(batch, rounding)) for batch in batches]


def hold(model: nn.Module, certificates: list[tuple[Tensor, Certificate]], what: str) -> None:
    """Fail if an attack contradicts a certificate."""
    x, certificate = joined(certificates)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            wrong = contradictions(model, x, certificate)
        except Exception as error:
            raise AssertionError(f"{what}: certified, and the model itself cannot run: {error!r}") from error
    assert wrong == 0, f"{what}: {wrong} of {len(x)} certificates contradicted by the model itself"


def joined(certificates: list[tuple[Tensor, Certificate]]) -> tuple[Tensor, Certificate]:
    """All batches as one, so that one attack does for all."""
    inputs, found = zip(*certificates, strict=True)
    columns = ([getattr(c, column) for c in found] for column in ("prediction", "radius", "rival"))
    prediction, radius, rival = (torch.cat(column) for column in columns)
    return torch.cat(inputs), Certificate(prediction, radius, rival, found[0].rounding)


def check_forward(name: str, rounding: Rounding = "float64") -> str:
    """Fail unless the entry is refused or its certificates hold; say which."""
    entry = FORWARDS[name]
    model = entry.model()
    if rounding == "float32" and precision(model) != torch.float32:
        return "not for it"
    own = [p.dtype for p in model.parameters()]
    try:
        certificates = issued(entry, model, rounding)
    except Refusal as refusal:
        require(own == [p.dtype for p in model.parameters()], f"{name}: refused, and the weights converted")
        require(not entry.accepted, f"{name}: expected certificates, got a refusal: {refusal}")
        return "no proof" if isinstance(refusal, NoProof) else "refused"
    assert entry.accepted is not False, f"{name}: expected a refusal, got certificates"
    hold(model, certificates, name)
    return "certified"


def check_bound(name: str) -> None:
    """Fail unless the entry is refused or no pair of points beats its proved constant."""
    entry = FORWARDS[name]
    model = entry.model()
    try:
        with may_refuse():
            bound = upper(model, entry.shape).value
    except Refusal as refusal:
        require(not entry.accepted, f"{name}: expected a bound, got a refusal: {refusal}")
        return
    assert entry.accepted is not False, f"{name}: expected a refusal, got a bound"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = steepest(model, entry.shape)
        except Exception as error:
            raise AssertionError(f"{name}: bounded, and the model itself cannot run: {error!r}") from error
    assert found <= bound * (1 + 1e-5), f"{name}: {bound} was proved, the model itself reaches {found}"


def check_change(name: str, change: str, rounding: Rounding = "float64") -> None:
    """Fail unless a change made after certification is noticed, or the certificates made after it hold."""
    entry = FORWARDS[name]
    model = entry.model()
    try:
        with may_refuse():
            certify = lipcert.certifier(model, entry.shape)
            x = inputs(entry, model, 12)
            certify(x, rounding)
    except Refusal:
        return
    with CHANGES[change](model):
        try:
            with may_refuse():
                certificates = [(batch, certify(batch, rounding)) for batch in (x, inputs(entry, model, 12))]
        except Refusal:
            return
        hold(model, certificates, f"{name} after {change}")


def changed_forwards() -> list[tuple[str, str]]:
    """Pairs of a forward and a change; of a change that applies to many, every eighth, each time others."""
    settled = {name: entry.model() for name, entry in FORWARDS.items() if entry.accepted}
    pairs = []
    for turn, (name_of_change, change) in enumerate(CHANGES.items()):
        names = [name for name, model in settled.items() if change.applies(model)]
        pairs += [(name, name_of_change) for name in (names[turn % 8 :: 8] if len(names) > 12 else names)]
    return pairs


@every_forward
def test_a_forward_is_refused_or_its_certificates_hold(name: str) -> None:
    for rounding in get_args(Rounding):
        if check_forward(name, rounding) == "no proof":  # then rounding does not matter
            break


@every_forward
def test_bounds_hold(name: str) -> None:
    check_bound(name)


@pytest.mark.parametrize(("name", "change"), changed_forwards())
def test_a_change_behind_the_back_is_noticed_or_harmless(name: str, change: str) -> None:
    check_change(name, change)
