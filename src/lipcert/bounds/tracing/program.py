"""A model as a list of steps: each is a module with a rule, applied to earlier values.

torch.fx follows the model's own code. Modules with a rule are steps. Containers and the user's blocks are
entered. A sum, a concatenation or a reshape in that code becomes a step of its own. Anything else raises an
error that names the place.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from torch import Tensor, fx, nn

from lipcert.bounds.contract import (
    REFUSALS,
    RULES,
    Rule,
    plain_type,
    rule_of,
)
from lipcert.bounds.fidelity.guards import precision_settings, refuse_tampering_anywhere, without_randomness
from lipcert.bounds.provers.rounding import SAFETY
from lipcert.bounds.rules.joins import Add
from lipcert.bounds.rules.linear import LinearRule
from lipcert.bounds.tracing.functions import asks_for_size, module_of
from lipcert.bounds.tracing.meta import run_on_meta
from lipcert.bounds.tracing.overwriting import SeesWrites, overwrites
from lipcert.bounds.tracing.unknown_calls import UntraceableError, told, unknown_call, untraceable
from lipcert.errors import InputError, LipcertError, UnknownBoundError, reason
from lipcert.types import Shape


@dataclass(frozen=True)
class Step:
    """One module applied to the values of earlier steps."""

    name: str  # unique; names its output value
    path: str  # where the module is in the model, for messages
    module: nn.Module
    rule: Rule[Any]
    inputs: tuple[str, ...]
    input_shapes: tuple[Shape, ...]
    shape: Shape  # its output's

    @property
    def departure(self) -> float:
        """Bound the distance of the layer that torch runs from its formula, once at x and once nearby."""
        jump = self.rule.jump(self.module)
        return 2 * SAFETY * jump * math.sqrt(math.prod(self.shape)) if jump else 0.0

    def run(self, inputs: Sequence[Tensor]) -> Tensor:
        """Compute the value by the forward of its class, without hooks."""
        try:
            value: Tensor = self.module.forward(*inputs)
        except LipcertError:
            raise
        except Exception as error:
            raise UnknownBoundError(
                f"{self.path}: cannot be run as it was traced: {reason(error)}"
            ) from error
        return value


@dataclass(frozen=True)
class Program:
    """The steps of a model in the order they run; `source` names the input, `result` the output."""

    steps: tuple[Step, ...]
    source: str
    result: str
    overwrites: bool = False  # whether the model itself works in place, perhaps on its input
    traced: tuple[Step, ...] = ()  # `steps`, and steps whose values never reach the result

    def split_head(self) -> tuple[Program, nn.Linear | None]:
        """Return the program before a final dense layer, and that layer, or None where there is none."""
        last = self.steps[-1] if self.steps else None
        if last is None or last.name != self.result or not isinstance(last.rule, LinearRule):
            return self, None
        # nn.Linear, or a layer of ours with its weight, bias and features.
        features = replace(self, steps=self.steps[:-1], result=last.inputs[0])
        return features, cast(nn.Linear, last.module)

    @property
    def is_chain(self) -> bool:
        """Return whether every step takes the value of the step before, and the last one makes the result."""
        names = [self.source, *(step.name for step in self.steps)]
        return names[-1] == self.result and all(
            step.inputs == (before,) for step, before in zip(self.steps, names, strict=False)
        )

    def constant(self, estimates: Mapping[str, Tensor | float], one: Tensor) -> Tensor:
        """Return the constant of the result from those of the steps; `one` is the constant of the input."""
        constants = {self.source: one}
        for step in self.steps:
            joined = step.rule.join_estimate([constants[i] for i in step.inputs])
            estimate = estimates[step.name]
            one_ = not isinstance(estimate, Tensor) and estimate == 1
            constants[step.name] = joined if one_ else joined * estimate
        return constants[self.result]


def trace(model: nn.Module, input_shape: Sequence[int]) -> Program:
    """Trace a model on inputs of `input_shape` (without the batch dimension)."""
    shape = checked_shape(input_shape)
    refuse_tampering_anywhere(model)
    if _Tracer().is_leaf_module(model, ""):
        model = nn.Sequential(model)  # fx enters the outermost module, so wrap it
    nodes = list(_walk(model).nodes)
    inputs = [node for node in nodes if node.op == "placeholder"]
    if len(inputs) != 1:
        raise UnknownBoundError(f"model: expected one input, found {len(inputs)}")
    values = {inputs[0].name: shape}
    calls = [n for n in nodes if n.op not in ("placeholder", "output", "get_attr") and not asks_for_size(n)]
    steps = tuple(_step(model, node, values) for node in calls)
    (result,) = (node.args[0] for node in nodes if node.op == "output")
    if not isinstance(result, fx.Node) or result.name not in values:
        raise UnknownBoundError("model: expected one output tensor, made from the input")
    in_place = overwrites(nodes, steps)
    return Program(_needed(steps, result.name), inputs[0].name, result.name, in_place, steps)


def _needed(steps: Sequence[Step], result: str) -> tuple[Step, ...]:
    """Drop the steps whose values never reach the result."""
    wanted, found = {result}, []
    for step in reversed(steps):
        if step.name in wanted:
            wanted.update(step.inputs)
            found.append(step)
    return tuple(reversed(found))


def checked_shape(input_shape: Sequence[int]) -> Shape:
    """Return the shape, or raise unless its sizes are positive integers."""
    shape = tuple(input_shape) if isinstance(input_shape, Iterable) else ()
    if not shape or not all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in shape):
        found = type(input_shape).__name__ if hasattr(input_shape, "dtype") else repr(input_shape)
        raise InputError(
            "input_shape: expected positive sizes without the batch dimension, such as (3, 32, 32), "
            f"got {found}"
        )
    return shape


class _Tracer(fx.Tracer):
    def __init__(self) -> None:
        super().__init__()
        self._precision = precision_settings()

    def create_node(self, kind: str, target: Any, *args: Any, **kwargs: Any) -> fx.Node:
        node = super().create_node(kind, target, *args, **kwargs)
        if precision_settings() != self._precision:
            raise UnknownBoundError(f"{node.name}: forward changes the precision of torch (autocast, TF32)")
        return node

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        kind = plain_type(m)
        return kind in RULES or kind in REFUSALS or super().is_leaf_module(m, module_qualified_name)

    def call_module(self, m: nn.Module, forward: Any, args: Any, kwargs: Any) -> Any:
        try:
            return super().call_module(m, forward, args, kwargs)
        except LipcertError:
            raise
        except Exception as error:  # named here, where the innermost module is known
            raise untraceable(self.path_of_module(m), m, error) from error

    def proxy(self, node: fx.Node) -> fx.Proxy:
        return SeesWrites(node, self)


def _walk(model: nn.Module) -> fx.Graph:
    try:
        return without_randomness("its forward", lambda: _Tracer().trace(model))
    except UntraceableError:
        raise
    except UnknownBoundError as error:
        raise UnknownBoundError(f"{type(model).__name__}: {error}") from None
    except Exception as error:  # fx runs the user's code, which may raise anything
        raise untraceable("", model, error) from error


def _step(model: nn.Module, node: fx.Node, values: dict[str, Shape]) -> Step:
    if node.op == "call_module":
        path, inputs = str(node.target), tuple(n.name for n in node.all_input_nodes)
        module = model.get_submodule(path)
        rule = rule_of(module, path)
        if len(node.args) != 1 or node.kwargs:
            raise UnknownBoundError(f"{path}: expected a call with one tensor, got {told(node)}")
    else:
        path = node.name
        converted = module_of(node)
        if converted is None:
            raise unknown_call(model, node)
        module, inputs = converted[0], tuple(value.name for value in converted[1])
        rule = rule_of(module, path)
    if not all(i in values for i in inputs):  # a parameter used directly
        raise unknown_call(model, node)
    input_shapes = tuple(values[i] for i in inputs)
    shape = values[node.name] = _output_shape(module, path, input_shapes)
    rule = rule.on(module, input_shapes[0])
    seen = rule.output_shape(module, input_shapes[0])
    if seen not in (None, shape):
        raise UnknownBoundError(f"{path}: its settings give an output of {seen}, its forward {shape}")
    return Step(node.name, path, module, rule, inputs, input_shapes, shape)


def _output_shape(module: nn.Module, path: str, input_shapes: Sequence[Shape]) -> Shape:
    """Return the shape of one output, from runs on the meta device with two batch sizes."""
    if isinstance(module, Add) and len(set(input_shapes)) > 1:
        raise UnknownBoundError(f"{path}: a sum of different shapes {input_shapes} repeats the smaller one")
    three, five = (_meta_output(module, path, input_shapes, batch) for batch in (3, 5))
    if three.ndim < 2 or (three.shape[0], five.shape[0]) != (3, 5) or three.shape[1:] != five.shape[1:]:
        raise UnknownBoundError(f"{path}: mixes or drops the batch dimension")
    return tuple(three.shape[1:])


def _advice(module: nn.Module) -> str:
    """Return a hint for layers whose own message is misleading."""
    if isinstance(module, nn.PixelUnshuffle):
        return f"; space-to-depth needs sides divisible by {module.downscale_factor}: pad or crop the image"
    return ""


def _meta_output(module: nn.Module, path: str, input_shapes: Sequence[Shape], batch: int) -> Tensor:
    try:
        _, output = run_on_meta(module, input_shapes, batch)
    except Exception as error:  # settings changed by hand may break any forward
        shapes = ", ".join(map(str, input_shapes))
        raise InputError(
            f"input_shape: {path} cannot take an input of shape {shapes}: {reason(error)}{_advice(module)}"
        ) from None
    if not isinstance(output, Tensor):
        raise UnknownBoundError(f"{path}: expected one output tensor, got {type(output).__name__}")
    return output
