"""Private copies of a model, and a record that detects every later change: what runs is what was proved.

The record holds every number the model owns, bit for bit, its settings and the code it runs, wherever forward
may find them: parameters, buffers, attributes, lists, closures, the functions and classes of the user. The
rest (files, clocks, the code of installed libraries) is left to the comparison of outputs in `replay`.
"""

from __future__ import annotations

import copy
import functools
import random
import sys
import types
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from lipcert.bounds.contract import RULES
from lipcert.bounds.fidelity.guards import refuse_tampering_anywhere, refuse_unsettled
from lipcert.errors import InputError, UnknownBoundError, reason

# Attributes of every module that no forward pass reads.
_UNREAD = ("_state_dict", "_load_state_dict", "_backward", "_is_full_backward", "_non_persistent")

# Parts of a class that do not affect what it computes.
_BOOKKEEPING = ("__dict__", "__weakref__", "__doc__", "__annotations__", "__abstractmethods__", "_abc_impl")

# Values whose types matter for equality, too: True is not 1 here.
_PLAIN = (bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.Size, type(None))

# How many functions, classes and objects in a row a record follows.
_DEPTH = 4

_CPU = torch.device("cpu")

# Bytes that one thread compares at a time.
_PIECE = 1 << 22


def settled_copy(model: nn.Module) -> nn.Module:
    """Return a private copy whose computed weights are settled, in the precision they run in."""
    refuse_tampering_anywhere(model)
    for path, module in model.named_modules():
        refuse_unsettled(path or "model", module)
        if getattr(module, "settles_in_evaluation", False):
            cast(Any, module).forget()  # certify what runs from now on, even after unnoticed writes
    refuse_unusual_tensors(model)
    copied = _copied(model)
    _refuse_shared(model, copied)
    for module in list(copied.modules()):
        if getattr(module, "settles_in_evaluation", False):
            cast(Any, module).remember_precision()
        if parametrize.is_parametrized(module):
            _settle(module)
    return copied


def _copied(model: nn.Module) -> nn.Module:
    try:
        return copy.deepcopy(model)
    except Exception as error:  # the user's classes may define how they are copied
        raise UnknownBoundError(f"the model cannot be copied: {reason(error)}") from error


def _refuse_shared(model: nn.Module, copied: nn.Module) -> None:
    """Raise if a copy shares memory with its original, which would then be converted with it."""
    held = {t.data_ptr() for t in [*model.parameters(), *model.buffers()] if t.numel()}
    for path, tensor in [*copied.named_parameters(), *copied.named_buffers()]:
        if tensor.numel() and tensor.data_ptr() in held:
            raise UnknownBoundError(f"{path}: a copy of the model shares this tensor with the original")


def frozen_copy(model: nn.Module, where: torch.device = _CPU) -> nn.Module:
    """Return the private copy that is certified: float64, on this device, unaffected by later training."""
    copied = settled_copy(model)
    try:
        return copied.to(where, torch.float64)
    except Exception as error:  # the user's classes may define how they are converted
        raise UnknownBoundError(f"the model cannot be converted to float64: {reason(error)}") from error


def refuse_unusual_tensors(model: nn.Module) -> None:
    """Raise for weights without numbers, or not stored as plain arrays."""
    for path, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if tensor.is_meta:
            raise InputError(f"{path} has no numbers yet: load its weights first")
        if tensor.layout != torch.strided or tensor.is_quantized:
            raise InputError(f"{path}: expected a dense tensor, got {tensor.layout}, {tensor.dtype}")


def refuse_other_numbers(model: nn.Module, frozen: nn.Module) -> None:
    """Raise unless a frozen copy holds exactly the numbers that the model holds now."""
    theirs = dict([*frozen.named_parameters(), *frozen.named_buffers()])
    for path, mine in [*model.named_parameters(), *model.named_buffers()]:
        if path in theirs and mine.is_floating_point():  # a parametrised weight has another name in the copy
            wide = mine.detach().to("cpu", torch.float64)
            if _first_difference([(path, wide, theirs[path].detach().cpu())]) is not None:
                raise UnknownBoundError(f"{path}: the proved copy and the model hold different numbers")


def _settle(module: nn.Module) -> None:
    """Turn the parametrised weights of a copied module into ordinary ones."""
    shared = type(module)  # torch takes the weight from the class, which the copy shares with its original
    members = {k: v for k, v in vars(shared).items() if k not in ("__dict__", "__weakref__")}
    module.__class__ = type(shared.__name__, shared.__bases__, members)
    for name in list(cast(nn.ModuleDict, module.parametrizations)):
        parametrize.remove_parametrizations(module, name, leave_parametrized=True)


class Snapshot:
    """Everything a model's output may depend on, at the time of the snapshot."""

    def __init__(self, model: nn.Module) -> None:
        self._leaves = [
            (path, leaf.detach().clone() if isinstance(leaf, Tensor) else leaf) for path, leaf in _walk(model)
        ]

    def change_in(self, model: nn.Module) -> str | None:
        """Name the first place where the model has changed; None if there is none."""
        now = _walk(model)
        numbers = []
        for (path, before), (other, after) in zip(self._leaves, now, strict=False):
            if isinstance(before, Tensor) and isinstance(after, Tensor) and path == other:
                numbers.append((path, before, after))
            elif path != other or isinstance(before, Tensor) or isinstance(after, Tensor) or before != after:
                return path or "model"
        if len(now) != len(self._leaves):
            return "model"
        return _first_difference(numbers)


def _first_difference(numbers: Sequence[tuple[str, Tensor, Tensor]]) -> str | None:
    """Name the first pair of tensors that differ in type, shape, device or any bit."""
    pieces: list[tuple[str, Tensor, Tensor]] = []
    for path, a, b in numbers:
        if (a.dtype, a.shape, a.device, a.layout) != (b.dtype, b.shape, b.device, b.layout):
            return path
        if not a.is_meta:
            pieces += [(path, x, y) for x, y in _pieces(a, b)]
    # Comparing releases Python's lock.
    pool = ThreadPoolExecutor(torch.get_num_threads()) if len(pieces) > 3 * len(numbers) else None
    try:
        same = (pool.map if pool else map)(lambda piece: torch.equal(piece[1], piece[2]), pieces)
        return next((piece[0] for piece, equal in zip(pieces, same, strict=False) if not equal), None)
    finally:
        if pool:
            pool.shutdown(cancel_futures=True)


def _pieces(a: Tensor, b: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the bits of both, as pieces of 64-bit words and a rest of bytes."""
    x, y = _bytes(a), _bytes(b)
    aligned = x.storage_offset() % 8 == 0 and y.storage_offset() % 8 == 0
    whole = len(x) // 8 * 8 if aligned else 0
    for start in range(0, whole, _PIECE):
        part = slice(start, min(start + _PIECE, whole))
        yield x[part].view(torch.int64), y[part].view(torch.int64)
    if whole < len(x):
        yield x[whole:], y[whole:]


def _bytes(tensor: Tensor) -> Tensor:
    dense = tensor.detach() if tensor.layout == torch.strided else tensor.detach().to_dense()
    return dense.resolve_conj().resolve_neg().contiguous().view(-1).view(torch.uint8)


class _Itself:
    """A wrapper equal only to the same object, which it keeps alive so that no other gets its address."""

    def __init__(self, it: object) -> None:
        self.it = it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.it is other.it

    __hash__ = None  # type: ignore[assignment]


def _walk(model: nn.Module) -> list[tuple[str, object]]:
    walk = _Walk()
    walk.visit("", model, 0)
    return walk.leaves


class _Walk:
    """Visit everything a forward may read; leaves are tensors, or objects that == can compare."""

    def __init__(self) -> None:
        self.leaves: list[tuple[str, object]] = []
        self._seen: dict[int, tuple[str, object]] = {}

    def visit(self, path: str, it: Any, depth: int) -> None:
        if isinstance(it, _PLAIN):
            self._leaf(path, (type(it), repr(it) if isinstance(it, float | complex) else it))
        elif id(it) in self._seen:
            self._leaf(path, self._seen[id(it)][0])  # the same object as at that place
        else:
            self._seen[id(it)] = (path, it)
            self._visit_new(path, it, depth)

    def _leaf(self, path: str, leaf: object) -> None:
        self.leaves.append((path, leaf))

    def _visit_new(self, path: str, it: Any, depth: int) -> None:
        if isinstance(it, Tensor):
            self._tensor(path, it)
        elif isinstance(it, nn.Module):
            self._module(path, it)
        elif depth > _DEPTH:
            self._leaf(path, _Itself(it))
        elif isinstance(it, types.FunctionType):
            self._function(path, it, depth)
        elif isinstance(it, type):
            self._class(path, it, depth)
        elif isinstance(it, Mapping):
            self._leaf(path, (type(it), len(it)))
            for key, value in it.items():
                self.visit(f"{path}[{key!r}]", value, depth)
        elif isinstance(it, list | tuple | deque):
            self._leaf(path, (type(it), len(it)))
            for i, value in enumerate(it):
                self.visit(f"{path}[{i}]", value, depth)
        elif isinstance(it, set | frozenset):
            self._leaf(path, frozenset(it))
        elif isinstance(it, np.ndarray) and it.dtype != object:
            self._leaf(path, (it.shape, it.dtype.str, it.tobytes()))
        else:
            self._object(path, it, depth)

    def _tensor(self, path: str, it: Tensor) -> None:
        self._leaf(f"{path}.type", _Itself(type(it)))
        self._leaf(path, it)

    def _module(self, path: str, it: nn.Module) -> None:
        self.visit(f"{path}.class", type(it), 0)
        # A layer with a rule declares the attributes its forward may change; what it executes is compared
        # then.
        fleeting: tuple[str, ...] = getattr(it, "fleeting", ()) if type(it) in RULES else ()
        if fleeting and not it.training:
            self.visit(f"{path}.weights", cast(Any, it).weights(), 0)
        for name, value in vars(it).items():
            if name in fleeting or name.startswith(_UNREAD):
                continue
            if name in ("_parameters", "_buffers", "_modules"):
                for key, part in value.items():
                    self.visit(f"{path}.{key}" if path else key, part, 0)
            else:
                self.visit(f"{path}.{name}" if path else name, value, 0)

    def _function(self, path: str, it: types.FunctionType, depth: int) -> None:
        if _is_installed(it.__module__):
            self._leaf(path, _Itself(it))
            return
        self._leaf(path, it.__code__)
        parts = {"defaults": it.__defaults__, "kwdefaults": it.__kwdefaults__, "closure": it.__closure__}
        for name, part in {**parts, **vars(it)}.items():
            self.visit(f"{path}.{name}", part, depth)
        names = set(_names(it.__code__))
        for name in sorted(names & it.__globals__.keys()):
            self.visit(f"{path}.{name}", it.__globals__[name], depth + 1)

    def _class(self, path: str, it: type, depth: int) -> None:
        self._leaf(path, _Itself(it))
        if issubclass(it, nn.Module):
            for name in ("forward", "__call__", "_call_impl"):
                self._leaf(f"{path}.{name}", _Itself(getattr(it, name)))
        for kind in it.__mro__:
            if _is_installed(kind.__module__):
                continue
            for name, member in vars(kind).items():
                if name not in _BOOKKEEPING:
                    self.visit(f"{path}.{name}", member, depth + 1)

    def _object(self, path: str, it: Any, depth: int) -> None:
        if isinstance(it, torch.Generator):
            self._leaf(path, it.get_state())
        elif isinstance(it, random.Random):
            self._leaf(path, it.getstate())
        elif isinstance(it, np.random.Generator):
            self._leaf(path, repr(it.bit_generator.state))
        elif isinstance(it, functools.partial):
            self.visit(path, (it.func, it.args, it.keywords), depth)
        elif isinstance(it, types.MethodType):
            self.visit(f"{path}.function", it.__func__, depth)
            self.visit(f"{path}.self", it.__self__, depth)
        elif isinstance(it, staticmethod | classmethod):
            self.visit(path, it.__func__, depth)
        elif isinstance(it, property):
            self.visit(path, (it.fget, it.fset), depth)
        elif isinstance(it, types.CellType):
            self.visit(path, _content(it), depth)
        else:
            self._leaf(path, _Itself(it))
            if depth < _DEPTH and not _is_installed(type(it).__module__):
                self.visit(f"{path}.class", type(it), depth + 1)
                for name, value in getattr(it, "__dict__", {}).items():
                    self.visit(f"{path}.{name}", value, depth + 1)


def _content(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _names(code: types.CodeType) -> Iterator[str]:
    """Yield the names that a function, and those inside it, may look up."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


@functools.lru_cache(maxsize=4096)
def _is_installed(module: str | None) -> bool:
    """Return whether code comes from Python, torch, lipcert or another installed package, by its name."""
    root = (module or "").partition(".")[0]
    if root in sys.stdlib_module_names or root in ("torch", "lipcert"):
        return True
    file = getattr(sys.modules.get(root), "__file__", None) or ""
    return "site-packages" in file or "dist-packages" in file
