"""What every registered prover of the norm of a convolution obeys: `lipcert.laws.prover_laws`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lipcert.bounds.provers.convolution_norm import choose_prover
from lipcert.bounds.provers.convolutions import PROVERS
from lipcert.bounds.provers.convolutions.base import Prover
from lipcert.laws import Law
from lipcert.laws.prover_laws import GEOMETRIES, PROVER_LAWS, kernels
from tests.laws.obeyed import every_law

every_geometry = pytest.mark.parametrize("where", GEOMETRIES)


@every_law(PROVER_LAWS)
def test_law(law: Law[Prover], make: Callable[[], Prover]) -> None:
    law(make())


@every_geometry
@pytest.mark.parametrize("effort", ["exact", "auto", "fast"])
def test_every_convolution_has_a_prover(where: str, effort: str) -> None:
    g = GEOMETRIES[where]
    name, prover = choose_prover(kernels(g), g, effort)
    assert prover.can_prove(g)
    assert type(prover) is PROVERS[name].constructor
    assert effort != "exact" or name == "gram"
