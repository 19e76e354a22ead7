"""Say in one line which call or layer of a model has no bound, and where it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import fx, nn

from lipcert.bounds.contract import REFUSALS, RULES
from lipcert.errors import UnknownBoundError, reason

# Longer calls are cut off.
_LONGEST = 100


class UntraceableError(UnknownBoundError):
    """An error for a module whose forward cannot be traced, which names the module."""


def unknown_call(model: nn.Module, node: fx.Node) -> UnknownBoundError:
    """Return the error for a call in a forward that has no bound."""
    path, module = _owner(model, node)
    if known_base(type(module)) is not None:
        return UnknownBoundError(refused_subclass(path, type(module)))
    where = f"{path or 'model'} ({type(module).__name__})"
    return UnknownBoundError(f"{where}: no Lipschitz rule for the call {told(node)} in its forward")


def untraceable(path: str, module: nn.Module, error: Exception) -> UntraceableError:
    """Return the error for a module whose forward raised while it was traced."""
    if known_base(type(module)) is not None:
        return UntraceableError(refused_subclass(path, type(module)))
    where = f"{path or 'model'} ({type(module).__name__})"
    return UntraceableError(
        f"{where}: its forward cannot be traced ({reason(error)}); build it from nn.Sequential and layers "
        "with rules, or write a rule for it with @lipcert.bounds.rule"
    )


def known_base(kind: type[nn.Module]) -> type[nn.Module] | None:
    """Return the layer type with a rule, or a reason why it has none, of which a type is a subclass."""
    return next((base for base in kind.__mro__[1:] if base in RULES or base in REFUSALS), None)


def refused_subclass(path: str, kind: type[nn.Module]) -> str:
    """Say why a subclass of a known layer is refused, and what to do."""
    base = known_base(kind)
    assert base is not None
    return (
        f"{path or 'model'} ({kind.__name__}): no Lipschitz rule for a subclass of {base.__name__}, which "
        f"may compute something else; use {base.__name__} itself, or write a rule and decorate it with "
        f"@lipcert.bounds.rule({kind.__name__}, examples=[...])"
    )


def told(node: fx.Node) -> str:
    """Write a call as Python would, with the names of traced values."""
    given = [_value(a) for a in node.args] + [f"{k}={_value(v)}" for k, v in node.kwargs.items()]
    if node.op == "call_method":
        text = f"{given[0]}.{node.target}({', '.join(given[1:])})"
    else:
        text = f"{_name(node.target)}({', '.join(given)})"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        inside = ", ".join(map(_value, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' * (len(value) == 1)})"
    return value.name if isinstance(value, fx.Node) else str(value).replace("\n", " ")


def _name(target: str | Callable[..., Any]) -> str:
    return target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__)


def _owner(model: nn.Module, node: fx.Node) -> tuple[str, nn.Module]:
    """Return the path and the module whose forward makes a call; the model where torch.fx does not know."""
    stack = node.meta.get("nn_module_stack") or {}
    path = next(reversed([str(entry[0]) for entry in stack.values()]), "") if stack else ""
    return path, model.get_submodule(path)
