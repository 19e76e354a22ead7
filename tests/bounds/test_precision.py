"""Devices whose float64 products are not plain sums of products are refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from lipcert import InputError
from lipcert.bounds.fidelity.followed import Followed
from lipcert.bounds.precision import double_device, in_double, refuse_coarse_doubles
from tests.strange_device import strange_device

aten = torch.ops.aten


def fixed_point(a: Tensor, bits: int = 55) -> Tensor:
    """Round relative to the largest entry of a row, as emulation by integers does."""
    unit = 2.0 ** (a.abs().amax(1, keepdim=True).clamp_min(1e-300).log2().ceil() - bits)
    return (a / unit).round() * unit


class Emulated(TorchDispatchMode):
    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if op is aten.mm.default:
            return op(fixed_point(args[0]), fixed_point(args[1].T).T)
        return op(*args, **(kwargs or {}))


class Strassen(TorchDispatchMode):
    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if op is not aten.mm.default:
            return op(*args, **(kwargs or {}))
        (a, b), (c, d) = (half.chunk(2, 1) for half in args[0].chunk(2, 0))
        (e, f), (g, h) = (half.chunk(2, 1) for half in args[1].chunk(2, 0))
        one, two, three, four = (a + d) @ (e + h), (c + d) @ e, a @ (f - h), d @ (g - e)
        five, six, seven = (a + b) @ h, (c - a) @ (e + f), (b - d) @ (g + h)
        left = torch.cat([one + four - five + seven, two + four])
        return torch.cat([left, torch.cat([three + five, one - two + three + six])], 1)


class Flushing(TorchDispatchMode):
    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = op(*args, **(kwargs or {}))
        return torch.where(made.abs() < 2.0**-1022, 0.0, made) if op is aten.mul.Tensor else made


@pytest.mark.device
def test_sums_of_products_are_accepted() -> None:
    refuse_coarse_doubles(strange_device())


@pytest.mark.device
@pytest.mark.parametrize("mode", [Emulated, Strassen, Flushing])
def test_other_products_are_refused(mode: type[TorchDispatchMode]) -> None:
    with mode(), pytest.raises(InputError, match="certify on the CPU"):
        refuse_coarse_doubles(strange_device())


@pytest.mark.parametrize("name", ["CUBLAS_EMULATE_DOUBLE_PRECISION", "CUBLAS_EMULATION_STRATEGY"])
def test_emulation_that_is_switched_on_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "performant")
    with pytest.raises(InputError, match=f"{name}: .* unset it first"):
        refuse_coarse_doubles(torch.device("cuda"))


@pytest.mark.device
def test_a_device_without_float64_leaves_the_work_to_the_cpu() -> None:
    assert double_device(torch.device("mps")) == torch.device("cpu")
    assert in_double(torch.ones(2, device=strange_device())).device.type == "strange"
    with pytest.raises(InputError, match="mps has no float64"):
        Followed.of(nn.Sequential(nn.Linear(2, 2)), (2,), "mps")
