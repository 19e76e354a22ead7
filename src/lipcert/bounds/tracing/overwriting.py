"""Handle in-place code: trace it where it is equivalent to code that is not in place, else refuse it.

A traced program has values, but no memory. `x += y` and in-place layers change memory that others may share.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, fx

from lipcert.bounds.tracing.functions import asks_for_size
from lipcert.bounds.tracing.meta import run_on_meta
from lipcert.errors import UnknownBoundError

if TYPE_CHECKING:
    from lipcert.bounds.tracing.program import Step


class SeesWrites(fx.Proxy):
    """A traced value that records what torch.fx ignores: `x += y`, and attributes that are set.

    torch.fx takes `x += y` for a new sum, as if nothing else held x, and drops `x.data = y`.
    """

    def __iadd__(self, other: object) -> fx.Proxy:
        return self.tracer.create_proxy("call_function", operator.iadd, (self, other), {})

    def __setattr__(self, name: str, value: object) -> None:
        if name not in ("tracer", "node"):
            raise UnknownBoundError(f"{self.node.name}: forward sets the attribute {name} of a value")
        super().__setattr__(name, value)


def overwrites(nodes: Sequence[fx.Node], steps: Sequence[Step]) -> bool:
    """Return whether anything works in place; raise where that changes what other code sees."""
    writers = {step.name for step in steps if getattr(step.module, "inplace", False)}
    writers |= {node.name for node in nodes if node.target is operator.iadd}
    used = [_users(node) for node in nodes if node.op != "output"]
    sums = writers & {node.name for node in nodes if node.target is operator.iadd}
    if sums or (writers and any(len(users) != 1 for users in used if users)):
        _Memory(steps, writers).check(nodes)
    return bool(writers)


class _Memory:
    """The memory behind every value of a program, and how often it was written when the value was made.

    A layer that makes new memory for sure begins a piece of memory; any other shares that of its inputs. A
    value whose memory was written after it was made is no longer what the trace says, and may not be read.
    """

    def __init__(self, steps: Sequence[Step], writers: set[str]) -> None:
        self._steps = {step.name: step for step in steps}
        self._writers = writers
        self._made: dict[str, tuple[frozenset[str], int]] = {}  # pieces of memory, and the time
        self._written: dict[str, tuple[int, str]] = {}  # when a piece was written last, and by what

    def check(self, nodes: Sequence[fx.Node]) -> None:
        """Raise where a value is read after its memory was overwritten by something else."""
        for time, node in enumerate(nodes):
            if node.op == "placeholder":
                self._made[node.name] = frozenset({node.name}), time
            elif node.op == "output" or not asks_for_size(node):
                self._execute(time, node)

    def _execute(self, time: int, node: fx.Node) -> None:
        inputs = [value for value in node.all_input_nodes if value.name in self._made]
        for value in inputs:
            pieces, made = self._made[value.name]
            for piece in pieces:
                written, writer = self._written.get(piece, (-1, ""))
                if written > made:
                    raise UnknownBoundError(self._told(writer))
        if node.op in ("output", "get_attr"):
            return
        if node.name in self._writers:
            pieces = self._overwritten(node, inputs)
            self._written.update(dict.fromkeys(pieces, (time, node.name)))
        elif _makes_new_memory(self._steps[node.name]):
            pieces = frozenset({node.name})
        else:
            pieces = frozenset().union(*(self._made[value.name][0] for value in inputs), {f"?{node.name}"})
        self._made[node.name] = pieces, time

    def _overwritten(self, node: fx.Node, inputs: Sequence[fx.Node]) -> frozenset[str]:
        """Return the memory that a node writes; raise where others may hold it, or it is also read."""
        left = node.args[0]
        if not isinstance(left, fx.Node) or left.name not in self._made:
            raise UnknownBoundError(self._told(node.name))
        pieces, _ = self._made[left.name]
        # A layer that is neither torch's nor ours may keep what it returned.
        makers = [self._steps.get(piece.removeprefix("?")) for piece in pieces]
        kept = any(maker is not None and not _is_known(maker) for maker in makers)
        if kept or any(pieces & self._made[value.name][0] for value in inputs if value is not left):
            raise UnknownBoundError(self._told(node.name))
        return pieces

    def _told(self, writer: str) -> str:
        step = self._steps[writer]
        if getattr(step.module, "inplace", False):
            return f"{step.path} works in place, on a value that may be used elsewhere; set inplace=False"
        return f"{writer}: += works in place on a value that may be used elsewhere; write x = x + y"


def _users(node: fx.Node) -> list[fx.Node]:
    return [user for user in node.users if not asks_for_size(user)]


def _is_known(step: Step) -> bool:
    """Return whether a layer is torch's or ours, so that it keeps none of its outputs."""
    return type(step.module).__module__.split(".")[0] in ("torch", "lipcert")


def _makes_new_memory(step: Step) -> bool:
    """Return whether the output is surely no view of an input: known layers, both usual layouts."""
    if not _is_known(step):
        return False
    images = all(len(shape) == 3 for shape in step.input_shapes)
    layouts = [torch.contiguous_format, torch.channels_last] if images else [torch.contiguous_format]
    for layout in layouts:
        inputs, output = run_on_meta(step.module, step.input_shapes, 2, layout)
        if any(_memory(output) == _memory(x) for x in inputs):
            return False
    return True


def _memory(x: Tensor) -> int:
    return int(x.untyped_storage()._cdata)
