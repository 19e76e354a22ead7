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
    layers = [step.path for step in steps if getattr(step.module, "inplace", False)]
    used = [_users(node) for node in nodes if node.op != "output"]
    if layers and any(len(users) != 1 for users in used if users):
        raise UnknownBoundError(f"{layers[0]} works in place, in a model where a value is used twice")
    sums = [node for node in nodes if node.target is operator.iadd]
    makers = {step.name: step for step in steps}
    for node in sums:
        if not _is_left_alone(node, list(nodes), makers):
            raise UnknownBoundError(
                f"{node.name}: += works in place on a value that may be used elsewhere; write x = x + y"
            )
    return bool(layers or sums)


def _users(node: fx.Node) -> list[fx.Node]:
    return [user for user in node.users if not asks_for_size(user)]


def _is_left_alone(node: fx.Node, order: list[fx.Node], makers: dict[str, Step]) -> bool:
    """Return whether the left side has its own memory, and nothing reads it after the sum."""
    left = node.args[0]
    if not isinstance(left, fx.Node):
        return False
    others = [user for user in _users(left) if user is not node]
    made = [user.name for user in others] + ([] if left.op == "placeholder" else [left.name])
    earlier = all(order.index(user) < order.index(node) for user in others)
    return earlier and all(name in makers and _makes_new_memory(makers[name]) for name in made)


def _makes_new_memory(step: Step) -> bool:
    """Return whether the output is surely no view of an input: known layers, both usual layouts."""
    if type(step.module).__module__.split(".")[0] not in ("torch", "lipcert"):
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
