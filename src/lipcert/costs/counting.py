"""Count the work of code that runs on the meta device, where tensors have shapes and no numbers."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map
from torch.utils.flop_counter import flop_registry

aten = torch.ops.aten

# Operations of matrices of side n, in units of n³: LAPACK's leading terms.
_CUBIC = {
    aten.linalg_cholesky_ex: 1 / 3,
    aten.cholesky_inverse: 2 / 3,
    aten.linalg_inv_ex: 2.0,
    aten._linalg_solve_ex: 2 / 3,
    aten.linalg_lu_factor_ex: 2 / 3,
    aten.linalg_solve_triangular: 1.0,
    aten.triangular_solve: 1.0,
    aten.linalg_qr: 4 / 3,
    aten._linalg_eigh: 4 / 3,
    aten._linalg_svd: 4.0,
}
_FOURIER = (aten._fft_r2c, aten._fft_c2r, aten._fft_c2c)


@dataclass
class Call:
    """One operation on tensors of some shapes: how often it ran, and the work of one run."""

    function: Any
    arguments: Any  # with tensors on the meta device
    flops: float
    bytes: float
    times: int = 0


@dataclass
class Work:
    """The work of some code: its operations by their shapes, and the most memory that tensors held."""

    calls: dict[Any, Call] = field(default_factory=dict)
    peak: float = 0.0  # bytes

    @property
    def flops(self) -> float:
        """Return the multiplications and additions."""
        return sum(call.times * call.flops for call in self.calls.values())

    @property
    def bytes(self) -> float:
        """Return what is read and written."""
        return sum(call.times * call.bytes for call in self.calls.values())

    def add(self, other: Work, times: int = 1) -> None:
        """Add the work of other code that runs so many times, after this."""
        self.peak = max(self.peak, other.peak)
        for key, call in other.calls.items():
            known = self.calls.setdefault(key, Call(call.function, call.arguments, call.flops, call.bytes))
            known.times += times * call.times


class Counting(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A mode that adds up the work of everything that runs in it; `before` are tensors that exist already."""

    def __init__(self, *before: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.work, self._live = Work(), 0.0
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()
        for tensor in before:
            self._note(tensor)

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        found = self.run(function, args, kwargs)
        if not function.is_view:
            for tensor in _tensors(found):
                self._note(tensor)
            self._count(function, args, kwargs, found)
        return found

    def run(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Run an operation; `Pretending` runs some otherwise."""
        return function(*args, **kwargs)

    def _note(self, tensor: Tensor) -> None:
        """Add the memory of a tensor until nothing holds it any more."""
        storage = tensor.untyped_storage()
        if storage in self._known:
            return
        self._known.add(storage)
        size = storage.nbytes()
        self._live += size
        self.work.peak = max(self.work.peak, self._live)
        weakref.finalize(storage, self._forget, size)

    def _forget(self, size: float) -> None:
        self._live -= size

    def _count(self, function: Any, args: Any, kwargs: Any, found: Any) -> None:
        key = (function, _signature((args, kwargs)))
        if key not in self.work.calls:
            moved = sum(t.numel() * t.element_size() for t in _tensors((args, kwargs, found)))
            flops = _flops(function.overloadpacket, args, kwargs, found)
            shapes = tree_map(_shape_only, (args, kwargs))
            self.work.calls[key] = Call(function, shapes, flops, moved)
        self.work.calls[key].times += 1


class Pretending(Counting):  # type: ignore[no-untyped-call]
    """A mode for proofs, which look at numbers: everything converges, and every check holds at once."""

    def run(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Run an operation on the meta device; answer questions about numbers."""
        packet = function.overloadpacket
        if packet is aten._local_scalar_dense and args[0].is_meta:
            return 1.0 if args[0].is_floating_point() else 0
        if packet is aten.equal and args[0].is_meta:
            return True
        if packet in (aten.any, aten.all) and args[0].is_meta:
            found = function(*args, **kwargs)
            return found if found.ndim else torch.tensor(packet is aten.all, device="cpu")
        if packet is aten._to_copy and args[0].is_meta:
            kwargs = {**kwargs, "device": torch.device("meta")}
        return function(*args, **kwargs)


def _flops(packet: Any, args: Any, kwargs: Any, found: Any) -> float:
    if packet in flop_registry:
        return float(flop_registry[packet](*args, **kwargs, out_val=found))
    if packet in _CUBIC:
        matrix = args[0]
        return float(_CUBIC[packet] * matrix.numel() * min(matrix.shape[-2:]) * _reals(matrix))
    if packet in _FOURIER:
        largest = max(_tensors((args[0], found)), key=Tensor.numel)
        length = float(math.prod(largest.shape[dim] for dim in args[1]))
        return 5.0 * largest.numel() * math.log2(max(length, 2.0))
    return float(sum(t.numel() for t in _tensors(found)))  # entry by entry


def _reals(tensor: Tensor) -> float:
    """Return how many multiplications of real numbers one of this type takes."""
    return 4.0 if tensor.is_complex() else 1.0


def _tensors(tree: Any) -> Iterator[Tensor]:
    return (leaf for leaf in tree_flatten(tree)[0] if isinstance(leaf, Tensor))


def _signature(tree: Any) -> Any:
    leaves, form = tree_flatten(tree)
    return str(form), tuple(
        (tuple(leaf.shape), leaf.stride(), leaf.dtype) if isinstance(leaf, Tensor) else repr(leaf)
        for leaf in leaves
    )


def _shape_only(leaf: Any) -> Any:
    """Return a tensor of this shape that holds on to no memory."""
    if not isinstance(leaf, Tensor):
        return leaf
    return torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device="meta")
