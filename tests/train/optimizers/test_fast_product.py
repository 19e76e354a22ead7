"""Large products of matrices are those of torch, whichever library multiplies."""

from __future__ import annotations

import pytest
import torch

from lipcert.train.optimizers.fast_product import is_worthwhile, product


@pytest.mark.parametrize("shapes", [((128, 128), (128, 300)), ((256, 70), (70, 128)), ((3, 4), (4, 5))])
@pytest.mark.parametrize("turned", ["neither", "left", "right", "both"])
def test_products_are_those_of_torch(shapes: tuple[tuple[int, int], ...], turned: str) -> None:
    torch.manual_seed(0)
    left, right = (torch.randn(shape) for shape in shapes)
    if turned in ("left", "both"):
        left = left.T.contiguous().T
    if turned in ("right", "both"):
        right = right.T.contiguous().T
    expected = left.double() @ right.double()
    found = product(left, right)
    assert found.shape == expected.shape
    assert found.dtype == torch.float32
    assert (found - expected).norm() <= 1e-6 * expected.norm()


def test_only_large_float32_matrices_on_a_cpu_go_to_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    large = torch.ones(256, 256)
    assert is_worthwhile(large, large) == torch.backends.mkldnn.is_available()
    assert not is_worthwhile(large.double(), large.double())
    assert not is_worthwhile(large.to("meta"), large.to("meta"))
    assert not is_worthwhile(large[:8, :8], large[:8, :8])
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    assert not is_worthwhile(large, large)
    assert torch.equal(product(large, large), torch.full((256, 256), 256.0))
