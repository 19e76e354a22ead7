"""An ordinary residual network, written as everybody writes it, is certified as it is."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import lipcert
from lipcert.bounds import upper
from tests.laws.attacking import contradictions


class BasicBlock(nn.Module):
    """Two convolutions with batch norm beside a shortcut; ReLU and the sum work in place."""

    def __init__(self, inputs: int, planes: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = None
        if stride != 1 or inputs != planes:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, planes, 1, stride, bias=False), nn.BatchNorm2d(planes)
            )

    def forward(self, x: Tensor) -> Tensor:
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    """A stem with max-pooling, stages of blocks, global average pooling and a dense layer."""

    def __init__(self, widths: tuple[int, ...] = (4, 8), classes: int = 3) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, widths[0], 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(widths[0])
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        stages = []
        for i, width in enumerate(widths):
            before = widths[max(i - 1, 0)]
            stages.append(
                nn.Sequential(BasicBlock(before, width, 1 if i == 0 else 2), BasicBlock(width, width))
            )
        self.stages = nn.Sequential(*stages)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(widths[-1], classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.avgpool(self.stages(x))
        return self.fc(torch.flatten(x, 1))


def trained() -> ResNet:
    """A network whose batch norms have seen data, with margins that show in a certificate."""
    torch.manual_seed(0)
    model = ResNet()
    for _ in range(3):
        model(torch.randn(32, 3, 32, 32))
    model.eval()
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.weight.uniform_(-0.5, 0.5)
                module.bias.normal_(std=0.1)
        model.fc.weight.mul_(5)
    return model


@pytest.mark.parametrize("rounding", ["float64", "float32", "ignored"])
def test_it_is_certified_as_it_is(rounding: str) -> None:
    model, x = trained(), torch.randn(12, 3, 32, 32)
    kept, given = {k: v.clone() for k, v in model.state_dict().items()}, x.clone()
    certificate = lipcert.certifier(model, (3, 32, 32))(x, rounding)  # type: ignore[arg-type]
    assert (certificate.radius > 0).all()
    assert torch.equal(certificate.prediction, model(x.clone()).argmax(1))
    assert contradictions(model, x, certificate) == 0
    assert torch.equal(x, given)  # although its layers work in place
    assert all(torch.equal(kept[name], value) for name, value in model.state_dict().items())


def test_its_bound_is_above_what_points_show() -> None:
    model = trained().double()
    x, dx = torch.randn(2, 64, 3, 32, 32, dtype=torch.float64)
    with torch.no_grad():
        moved = (model(x + 0.01 * dx) - model(x)).norm(dim=1) / (0.01 * dx).flatten(1).norm(dim=1)
    assert float(moved.max()) <= upper(model, (3, 32, 32)).value


def test_it_trains_with_estimated_constants() -> None:
    bounded = lipcert.Bounded(ResNet(), (3, 32, 32))
    logits, lip = bounded(torch.randn(4, 3, 32, 32))
    (logits.square().mean() + lip.features).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in bounded.parameters())
    bounded.eval()
    estimate = float(bounded.converge().features)
    program_bound = lipcert.certifier(bounded.model.eval(), (3, 32, 32)).proved.bound.value
    assert 0.9 * program_bound < estimate <= program_bound * (1 + 1e-4)
