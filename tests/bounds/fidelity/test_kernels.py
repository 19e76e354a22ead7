"""float32 certificates ask how convolutions are computed; numbers that vanish are noticed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lipcert import InputError, certifier
from lipcert.bounds.fidelity.kernels import AsksForKernels
from lipcert.bounds.precision import full_precision
from lipcert.certificates.certifier import Certifier

SHAPE = (1, 12, 12)


@pytest.fixture
def _without_onednn() -> Iterator[None]:
    with torch.backends.mkldnn.flags(enabled=False):
        yield


@torch.no_grad()
def where_winograd_errs_most() -> tuple[nn.Module, Tensor]:
    """A convolution of spiky images, and a head that looks where transforms of whole tiles lose most."""
    x = torch.randn(16, *SHAPE)
    x = torch.exp(4 * x) * x.sign()
    conv, pick = nn.Conv2d(1, 1, 3, padding=1, bias=False), nn.Linear(144, 2)
    conv.weight.copy_(torch.randn(1, 1, 3, 3))
    exact = F.conv2d(x.double(), conv.weight.double(), padding=1).flatten(1)
    size = F.conv2d(x.double().abs(), conv.weight.double().abs(), padding=1).flatten(1)
    with torch.backends.mkldnn.flags(enabled=False):
        lost = conv(x).flatten(1).double() - exact
    # What sums of products may lose there, by theorem 5, less what was lost.
    allowed = 2.0**-24 * (11 * size.norm(dim=1, keepdim=True) + 600 * exact.abs())
    sample, pixel = divmod(int((lost.abs() - 2 * allowed).argmax()), 144)
    pick.weight.zero_()
    pick.weight[0, pixel] = 1.0
    pick.bias.copy_(torch.tensor([-(exact + lost / 2)[sample, pixel], 0.0]))
    return nn.Sequential(conv, nn.Flatten(), pick).eval(), x


def contradicted(prover: Certifier, model: nn.Module, x: Tensor) -> int:
    """Samples whose float32 certificate the model itself contradicts at distance 0."""
    certificate = prover(x, "float32")
    with torch.no_grad():
        prediction = model(x).argmax(1)
    return int(((certificate.radius > 0) & (certificate.prediction != prediction)).sum())


@pytest.mark.usefixtures("_without_onednn")
def test_winograd_kernels_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    if not torch.backends.nnpack.is_available():
        pytest.skip("this torch has no NNPACK")
    torch.manual_seed(0)
    model, x = where_winograd_errs_most()
    prover = certifier(model, SHAPE)
    with pytest.raises(InputError, match=r"NnpackSpatial.*set_flags"):
        prover(x, "float32")
    assert (prover(x).radius > 0).any()  # float64 does not care
    monkeypatch.setattr(AsksForKernels, "_ask", lambda *_: None)
    assert contradicted(prover, model, x) > 0  # so the question is worth asking


@pytest.mark.usefixtures("_without_onednn")
def test_plain_kernels_are_accepted_without_onednn() -> None:
    model, x = where_winograd_errs_most()
    with torch.backends.nnpack.flags(enabled=False):
        assert contradicted(certifier(model, SHAPE), model, x) == 0


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(2, 4, 3, padding=1),
        nn.Conv2d(2, 4, 1),
        nn.Conv2d(2, 4, 3, dilation=2, groups=2),
        nn.ConvTranspose2d(2, 3, 3, stride=2),
    ],
)
@pytest.mark.parametrize("batch", [1, 2, 40])
def test_the_kernels_that_torch_takes_by_default_are_accepted(layer: nn.Module, batch: int) -> None:
    x = torch.rand(batch, 2, 8, 8)
    with torch.no_grad():
        features = layer(x).flatten(1).shape[1]
    model = nn.Sequential(layer, nn.Flatten(), nn.Linear(features, 3))
    assert (certifier(model, (2, 8, 8))(x, "float32").radius >= 0).all()


def test_flushed_denormals_are_refused() -> None:
    model = nn.Linear(2, 2)
    prover = certifier(model, (2,))
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot flush denormals")
    try:
        with pytest.raises(InputError, match="set_flush_denormal"):
            prover(torch.ones(1, 2))
        with pytest.raises(InputError, match="set_flush_denormal"):
            certifier(model, (2,))
    finally:
        torch.set_flush_denormal(False)
    assert (prover(torch.ones(1, 2)).radius >= 0).all()


def test_constants_in_training_are_computed_without_tf32() -> None:
    matmul, conv = torch.backends.cuda.matmul, torch.backends.cudnn.conv
    before = matmul.fp32_precision, conv.fp32_precision
    assert conv.fp32_precision == "tf32"  # torch's default
    with full_precision("cuda"):
        assert (matmul.fp32_precision, conv.fp32_precision) == ("ieee", "ieee")
    assert (matmul.fp32_precision, conv.fp32_precision) == before
    with pytest.raises(ZeroDivisionError), full_precision("cuda"):
        raise ZeroDivisionError
    assert (matmul.fp32_precision, conv.fp32_precision) == before
