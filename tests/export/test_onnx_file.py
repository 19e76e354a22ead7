"""Exported files in a real runtime: the library's logits and classes, and never a larger radius."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lipcert.certificates.certifier import Certifier
from lipcert.errors import InputError, LipcertWarning
from lipcert.export import export_onnx
from lipcert.export.certified_graph import CertifiedGraph
from lipcert.export.patches import Convolution, average_pool
from lipcert.models import MODELS
from lipcert.nn import (
    AOCConv2d,
    AOCConvTranspose2d,
    BatchCentering,
    BjorckConv2d,
    FullSort,
    LayerCentering,
    LinearSpline,
    NActivation,
    Scale,
    ScaledAdaptiveAvgPool2d,
    Standardise,
)

EXAMPLE = Path(__file__).parents[2] / "examples" / "onnx_only.py"


def family(name: str) -> Certifier:
    example = MODELS[name].example
    model = MODELS.create(name, **example).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return Certifier(model, example.get("input_shape", (2,)), "fast")


def outputs(path: Path, x: Tensor) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(["logits", "class", "radius"], {"x": x.numpy()})  # type: ignore[no-any-return]


def check(path: Path, prover: Certifier, float32: bool) -> None:
    for batch in (1, 5):
        x = torch.rand(batch, *prover.proved.input_shape)
        logits, labels, radius = outputs(path, x if float32 else x.double())
        certificate = prover(x, "float32" if float32 else "float64")
        expected = prover.logits(x)
        assert logits == pytest.approx(expected.numpy(), abs=1e-5 * float(1 + expected.abs().max()))
        assert (labels == certificate.prediction.numpy()).all()
        assert (radius <= certificate.radius.numpy()).all()
        if not float32:  # it costs next to nothing
            assert radius == pytest.approx(certificate.radius.numpy(), rel=1e-6, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("float32", [False, True])
@pytest.mark.parametrize("name", list(MODELS))
def test_every_family(name: str, float32: bool, tmp_path: Path) -> None:
    prover = family(name)
    check(export_onnx(prover, tmp_path / "model.onnx", float32=float32), prover, float32)


@pytest.mark.parametrize("float32", [False, True])
def test_an_mlp(float32: bool, tmp_path: Path) -> None:
    prover = family("mlp")
    check(export_onnx(prover, tmp_path / "model.onnx", float32=float32), prover, float32)


def activations() -> tuple[nn.Module, tuple[int, ...]]:
    layers = [nn.Linear(4, 6), NActivation(6), nn.Linear(6, 6), LinearSpline(6), FullSort(), nn.Linear(6, 3)]
    return nn.Sequential(*layers), (4,)


def images() -> tuple[nn.Module, tuple[int, ...]]:
    layers = [
        AOCConv2d(2, 4, 3, stride=2, padding=1, padding_mode="circular"),
        BatchCentering(4),
        NActivation(4),
        BjorckConv2d(4, 4, 3, padding=1, groups=2),
        LayerCentering(4),
        LinearSpline(4),
        AOCConvTranspose2d(4, 2, 2, stride=2),
        ScaledAdaptiveAvgPool2d(2),
    ]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(8, 3)), (2, 6, 6)


@pytest.mark.slow
@pytest.mark.parametrize("float32", [False, True])
@pytest.mark.parametrize("make", [activations, images])
def test_layers_that_no_model_has(
    make: Callable[[], tuple[nn.Module, tuple[int, ...]]], float32: bool, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    model, shape = make()
    with torch.no_grad():
        for tensor in (*model.parameters(), *model.buffers()):
            tensor.add_(0.1 * torch.randn_like(tensor))
    prover = Certifier(model.eval(), shape)
    check(export_onnx(prover, tmp_path / "model.onnx", float32=float32), prover, float32)


@pytest.mark.parametrize("name", list(MODELS))
def test_the_graph_is_the_certifier(name: str) -> None:
    """Before it is exported, where every family is quickly checked."""
    prover = family(name)
    x = torch.rand(6, *prover.proved.input_shape)
    for float32 in (False, True):
        graph = CertifiedGraph(prover, float32).eval()
        logits, labels, radius = graph(x if float32 else x.double())
        certificate = prover(x, "float32" if float32 else "float64")
        torch.testing.assert_close(logits.double(), prover.logits(x), rtol=1e-4, atol=1e-5)
        assert torch.equal(labels, certificate.prediction)
        assert (radius <= certificate.radius).all()
    bad = x.double().clone()
    bad[0].fill_(torch.nan)
    bad[1].fill_(torch.inf)
    _, labels, radius = CertifiedGraph(prover)(bad)
    assert labels[0] == -1
    assert radius[:2].tolist() == [0, 0]


def test_the_float32_radius_is_not_moved_by_the_ball(tmp_path: Path) -> None:
    """Points at the edge of a float32 radius get the same class from the float32 graph."""
    prover = family("mlp")
    graph = CertifiedGraph(prover, float32=True)
    x = torch.rand(200, 2)
    _, labels, radius = graph(x)
    for _ in range(20):
        step = F.normalize(torch.randn_like(x), dim=1) * 0.999 * radius[:, None].clamp_max(10.0)
        assert torch.equal(graph(x + step)[1], labels)


def test_a_process_without_torch_reads_it(tmp_path: Path, cli) -> None:
    status, out, err = cli("export", "moons-cll", "moons.onnx")
    assert status == 0, err
    assert "logits, class, radius" in out
    program = (
        "import sys, runpy\n"
        "sys.modules['torch'] = sys.modules['lipcert'] = None\n"  # to import them is an error now
        "sys.argv = sys.argv[1:]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    command = [sys.executable, "-c", program, str(EXAMPLE), "moons.onnx"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("certified for every change") == 4
    facts = onnxruntime.InferenceSession("moons.onnx").get_modelmeta().custom_metadata_map
    certificate = json.loads(facts["certificate"])
    assert facts["model_sha256"] == certificate["model_sha256"]
    assert json.loads(facts["classes"]) == ["upper", "lower"]


def test_what_cannot_be_exported_is_named(tmp_path: Path, cli) -> None:
    status, _, err = cli("export", "moons-cll", "moons.pt")
    assert status == 2
    assert "ends in .onnx" in err
    assert not list(tmp_path.iterdir())
    prover = Certifier(nn.Sequential(nn.Linear(2, 2)).double(), (2,))
    with pytest.raises(InputError, match="float32 weights"):
        export_onnx(prover, tmp_path / "model.onnx", float32=True)


# Layers in a row: an export takes seconds, whatever is in it, and each number changes the logits.
NUMBERS = {
    "of vectors": ([nn.BatchNorm1d(4), nn.LeakyReLU(0.1), nn.PReLU(init=0.3), Scale(0.1)], (4,)),
    "limits": ([nn.Hardtanh(-0.1, 0.3)], (4,)),
    "of images": (
        [
            Standardise((0.4914, 0.4822, 0.4465), 0.2471),
            nn.AvgPool2d(3, 2, 1, count_include_pad=False),
            nn.AvgPool2d(2, 1),
            nn.MaxPool2d(2),
        ],
        (3, 9, 9),
    ),
    "one axis": ([nn.Conv1d(2, 3, 3, padding=1)], (2, 5)),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_not_rounded_to_float32(name: str, tmp_path: Path) -> None:
    """torch's exporter rounds scalars; the radius would be about another network."""
    layers, shape = NUMBERS[name]
    for layer in layers:
        if isinstance(layer, nn.BatchNorm1d):
            layer.running_var.fill_(1e-5)
    entries = nn.Sequential(*layers).eval()(torch.zeros(1, *shape)).numel()
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(entries, 3)).eval()
    prover = Certifier(model, shape)
    path = export_onnx(prover, tmp_path / "model.onnx")
    x = torch.randn(200, *shape)
    logits, _, radius = outputs(path, x.double())
    certificate = prover(x)
    assert (radius <= certificate.radius.numpy()).all()
    assert radius == pytest.approx(certificate.radius.numpy(), rel=1e-9, abs=1e-12)
    assert logits == pytest.approx(prover.logits(x).numpy(), rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("layer", [nn.ELU(0.3), nn.GELU()])
def test_what_has_no_exact_form_is_refused(layer: nn.Module, tmp_path: Path) -> None:
    prover = Certifier(nn.Sequential(nn.Linear(4, 4), layer, nn.Linear(4, 3)).eval(), (4,))
    with pytest.raises(InputError, match="export"):
        export_onnx(prover, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_small_head_rows_in_float32() -> None:
    """Squares of rows below 1e-23 vanish in float32: lengths are computed before they are narrowed."""
    base = torch.randn(1, 6) * 1e-25
    layer = nn.Linear(6, 2)
    with torch.no_grad():
        layer.weight.copy_(base * (1 + 3e-7 * torch.randn(2, 6)))
        layer.bias.copy_(torch.tensor([1e-26, 0.0]))
    prover = Certifier(nn.Sequential(layer).eval(), (6,))
    x = torch.zeros(1, 6)
    assert float(CertifiedGraph(prover, float32=True)(x)[2]) <= float(prover(x, "float32").radius)


def test_one_logit_costs_no_more_than_two() -> None:
    """The row of the other class is 0, its length from above a number that float32 does not hold."""
    prover = Certifier(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).eval(), (4,))
    x = torch.randn(50, 4)
    radius, expected = CertifiedGraph(prover, float32=True)(x)[2], prover(x, "float32").radius
    assert (radius <= expected).all()
    assert radius.double() == pytest.approx(expected, abs=1e-4)


def test_one_logit_without_a_linear_head_in_float32() -> None:
    with pytest.warns(LipcertWarning):
        prover = Certifier(nn.Sequential(nn.Linear(4, 1), nn.Tanh()).eval(), (4,))
    x = torch.randn(9, 4)
    radius = CertifiedGraph(prover, float32=True)(x)[2]
    assert (radius <= prover(x, "float32").radius).all()


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dilation"),
    [
        ((3, 3), (1, 1), (1, 1), (1, 1)),
        ((4, 2), (2, 1), (1, 0), (1, 1)),
        ((2, 3), (3, 2), (0, 2), (2, 1)),
    ],
)
def test_convolutions_by_patches(
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[int, int],
    dilation: tuple[int, int],
    groups: int,
) -> None:
    x, bias = torch.randn(2, 4, 9, 10).double(), torch.randn(6).double()
    weight = torch.randn(6, 4 // groups, *kernel).double()
    shape = tuple(x.shape[1:])
    found = Convolution(shape, tuple(weight.shape), stride, padding, dilation, False, (0, 0), groups)
    expected = F.conv2d(x, weight, bias, stride, padding, dilation, groups)
    torch.testing.assert_close(found(x, weight, bias), expected)
    weight, more = torch.randn(4, 6 // groups, *kernel).double(), (stride[0] - 1, stride[1] - 1)
    found = Convolution(shape, tuple(weight.shape), stride, padding, dilation, True, more, groups)
    expected = F.conv_transpose2d(x, weight, bias, stride, padding, more, groups, dilation)
    torch.testing.assert_close(found(x, weight, bias), expected)


@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("divisor", [None, 5])
def test_averages_by_slices(ceil: bool, counted: bool, divisor: int | None) -> None:
    x = torch.randn(2, 3, 7, 8).double()
    for kernel, stride, padding in [(2, 1, 0), (2, 2, 1), (3, 2, 1), (3, 3, 0)]:
        found = average_pool(x, (kernel,), (stride,), (padding,), ceil, counted, divisor)
        torch.testing.assert_close(found, F.avg_pool2d(x, kernel, stride, padding, ceil, counted, divisor))


def activated(layer: nn.Module) -> Certifier:
    torch.manual_seed(0)
    return Certifier(nn.Sequential(nn.Linear(4, 8), layer, nn.Linear(8, 3)).eval(), (4,))


def pooled(layer: nn.Module) -> Certifier:
    torch.manual_seed(0)
    first = nn.Conv2d(2, 3, 3, padding=1)
    entries = layer(first(torch.zeros(1, 2, 6, 6))).numel()
    model = nn.Sequential(first, nn.ReLU(), layer, nn.Flatten(), nn.Linear(entries, 3))
    return Certifier(model.eval(), (2, 6, 6))


@pytest.mark.parametrize("float32", [False, True])
@pytest.mark.parametrize(
    "layer", [nn.Mish(), nn.Hardswish(), nn.Softplus(3.0, 25.0), nn.Hardtanh(-0.1, 0.7)], ids=repr
)
def test_activations_with_a_formula(layer: nn.Module, float32: bool, tmp_path: Path) -> None:
    prover = activated(layer)
    check(export_onnx(prover, tmp_path / "model.onnx", float32=float32), prover, float32)


@pytest.mark.parametrize("size", [1, 3, (4, 5)])
def test_adaptive_pooling(size: int | tuple[int, int], tmp_path: Path) -> None:
    prover = pooled(nn.AdaptiveAvgPool2d(size))
    check(export_onnx(prover, tmp_path / "model.onnx"), prover, float32=False)


@pytest.mark.parametrize("last", [nn.Softmax(dim=1), nn.LogSoftmax(dim=1)], ids=repr)
def test_a_softmax_at_the_end(last: nn.Module, tmp_path: Path) -> None:
    torch.manual_seed(0)
    with pytest.warns(LipcertWarning, match="not linear"):
        prover = Certifier(nn.Sequential(nn.Linear(4, 3), last).eval(), (4,))
    check(export_onnx(prover, tmp_path / "model.onnx"), prover, float32=False)
