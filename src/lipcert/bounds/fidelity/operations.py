"""The log of torch's operations in a call, with the weights and numbers they were given.

Outputs that agree on samples do not show a branch that was not taken there. So the log of a model and that of
its traced program must be the same, operation by operation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

Log = list[tuple[Any, ...]]

# Operations that pass their input on: a view, a reshape and a flatten differ in nothing else.
_VIEWS = frozenset({"view", "_unsafe_view", "_reshape_alias", "alias", "detach", "lift_fresh"})

# Functions that turn tensors into Python objects without an operation of torch.
_LOOKS = frozenset({"numpy", "tolist", "__array__", "__dlpack__"})


def operations(call: Callable[[], object], weights: Iterable[Tensor]) -> Log:
    """Return the operations that a call executes; weights are identified by their position in `weights`."""
    log: Log = []
    places = {w.data_ptr(): i for i, w in enumerate(weights) if w.numel()}
    with _Looks(log), _Operations(log, places):
        call()
    return log


def without_numbers(log: Log) -> Log:
    """Return a log without numbers that depend on the precision, such as a smallest divisor."""
    return [tuple(part for part in operation if not isinstance(part, float)) for operation in log]


def weights_of(model: nn.Module) -> list[Tensor]:
    """Return all parameters and buffers, in order."""
    return [*model.parameters(), *model.buffers()]


def first_difference(model: Log, program: Log) -> str | None:
    """Describe where a model's operations first differ from those of its program; None if they do not."""
    for mine, theirs in zip(model, program, strict=False):
        if mine != theirs:
            return f"runs {_told(mine)} where its traced layers run {_told(theirs)}"
    if len(model) > len(program):
        return f"runs {_told(model[len(program)])} after its traced layers are done"
    return f"does not run {_told(program[len(model)])}" if len(model) < len(program) else None


def _told(operation: tuple[Any, ...]) -> str:
    return str(operation[0])


class _Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A mode that records every operation below torch's functions."""

    def __init__(self, log: Log, places: dict[int, int]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._log, self._places = log, places

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # relu_ and relu compute the same.
        name = str(function.overloadpacket).rpartition(".")[2].removesuffix("_")
        if name not in _VIEWS:
            given, _ = tree_flatten((args, kwargs or {}))
            # Sizes may be written in several ways, and show in the shapes.
            noted = (self._noted(value) for value in given if isinstance(value, Tensor | float))
            self._log.append((name, *noted))
        return function(*args, **(kwargs or {}))

    def _noted(self, value: Tensor | float) -> Any:
        if isinstance(value, Tensor):
            return tuple(value.shape), self._places.get(value.data_ptr())
        return value


class _Looks(TorchFunctionMode):
    """A mode that records functions that read numbers of tensors into Python."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(function, "__name__", "")
        if name in _LOOKS:
            self._log.append((name,))
        return function(*args, **(kwargs or {}))
