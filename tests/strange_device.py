"""A device of its own, with numbers: `strange`, on which a stray CPU tensor fails.

Torch lets Python implement a backend. Every tensor of this one keeps its numbers in a CPU tensor, and every
operation runs there, unless one of its operands is on the CPU: then it raises, as a GPU would. Tensors of no
dimension may be on the CPU, as for a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar, Self, cast

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_map
from torch.utils.backend_registration import (
    _DummyBackendModule,
    _DummyDeviceGuard,
    _DummyPrivateUse1Hook,
    _setup_privateuseone_for_python_backend,
)

NAME = "strange"

# Operations that move numbers between devices, and one that takes indices from the CPU, as on a GPU.
_aten = torch.ops.aten
_COPIES = {_aten._to_copy.default, _aten.copy_.default, _aten.index.Tensor}


class _Module(_DummyBackendModule):  # type: ignore[misc]
    """What torch.strange is; its random numbers come from the CPU's generator."""

    def get_rng_state(self, *_: Any) -> Tensor:
        """Return nothing: the state is that of the CPU."""
        return torch.empty(0, dtype=torch.uint8)

    def set_rng_state(self, *_: Any) -> None:
        """Do nothing."""


class _Hook(_DummyPrivateUse1Hook):  # type: ignore[misc]
    def is_available(self) -> bool:
        """Return False, so that torch does not take it for the accelerator of the machine."""
        return False


_data = cast(property, Tensor.data)


class StrangeTensor(Tensor):
    """A tensor of the device, with its numbers in `numbers`."""

    numbers: Tensor
    __torch_function__: ClassVar[Any] = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, numbers: Tensor) -> Self:
        made: Self = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            numbers.shape,
            strides=numbers.stride(),
            storage_offset=numbers.storage_offset(),
            dtype=numbers.dtype,
            device=torch.device(NAME, 0),
        )
        made.numbers = numbers
        return made

    @property
    def data(self) -> Tensor:
        """Return the same numbers without their history."""
        return cast(Tensor, _data.__get__(self))

    @data.setter
    def data(self, other: Tensor) -> None:
        """Take over size, type and numbers of another tensor of the device."""
        _data.__set__(self, other)
        self.numbers = cast(StrangeTensor, other).numbers

    def data_ptr(self) -> int:
        """Return the address of the numbers."""
        return self.numbers.data_ptr()

    def new_tensor(self, data: Any, **settings: Any) -> Tensor:
        """Return new numbers like these: torch's own method does not know such a device."""
        return torch.tensor(data, **{"dtype": self.dtype, "device": self.device, **settings})

    def tolist(self) -> Any:
        """Return the numbers as Python objects."""
        return self.numbers.tolist()

    def __format__(self, form: str) -> str:
        return format(self.numbers.detach(), form)

    def __repr__(self, **_: Any) -> str:
        return f"{self.numbers!r} on {NAME}"

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        copied: Tensor = StrangeTensor(self.numbers.detach().clone())
        if isinstance(self, torch.nn.Parameter):
            copied = torch.nn.Parameter(copied, self.requires_grad)
        memo[id(self)] = copied
        return copied

    @classmethod
    def __torch_dispatch__(cls, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(op, args, kwargs or {})


def _run(op: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    given = [t for t in tree_flatten((args, kwargs))[0] if isinstance(t, Tensor)]
    stray = [t for t in given if not isinstance(t, StrangeTensor) and t.ndim]
    if stray and op not in _COPIES:
        raise RuntimeError(f"{op}: expected tensors on {NAME}, got one of {tuple(stray[0].shape)} on the CPU")
    wrapped = {id(t.numbers): t for t in given if isinstance(t, StrangeTensor)}
    inner, settings = tree_map(lambda t: t.numbers if isinstance(t, StrangeTensor) else t, (args, kwargs))
    settings.pop("pin_memory", None)
    where = settings.get("device")
    if where is not None and torch.device(where).type != NAME:
        return op(*inner, **settings)
    if where is not None:
        settings["device"] = torch.device("cpu")
    made = op(*inner, **settings)
    for tensor in wrapped.values():
        if tensor.shape != tensor.numbers.shape:  # an `out` of another size
            tensor.data = StrangeTensor(tensor.numbers)
    return tree_map(lambda t: _wrapped(t, wrapped) if isinstance(t, Tensor) else t, made)


def _wrapped(numbers: Tensor, given: dict[int, StrangeTensor]) -> StrangeTensor:
    """Return the operand that holds these numbers, where the operation worked in place, or a new tensor."""
    known = given.get(id(numbers))
    return StrangeTensor(numbers) if known is None else known


@cache
def strange_device() -> torch.device:
    """Register the device, once per process, and return it."""
    _setup_privateuseone_for_python_backend(NAME, _Module(), _Hook(), _DummyDeviceGuard())
    every, aten = torch.library.Library("_", "IMPL"), torch.library.Library("aten", "IMPL")
    every.fallback(lambda op, *args, **kwargs: _run(op, args, kwargs), "PrivateUse1")
    aten.impl("copy_", _filled, "PrivateUse1")  # for torch.tensor(..., device=NAME)
    _libraries.extend([every, aten])
    return torch.device(NAME, 0)


def _filled(tensor: StrangeTensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    tensor.numbers.copy_(source)
    return tensor


_libraries: list[torch.library.Library] = []  # a registration ends with its library
