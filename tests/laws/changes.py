"""Changes made to a model behind the certifier's back, each undone at the end of its block."""

from __future__ import annotations

import os
import types
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.nn.utils import parametrize, prune

from tests.laws.corpus import contexts, modules
from tests.laws.corpus import layers as layer_themes

Find = Callable[[nn.Module], Any]


@dataclass(frozen=True)
class Change:
    """One way to change a model, and what of the model it needs."""

    find: Find  # what is to be changed; None, False or nothing where the change does not apply
    make: Callable[[Any], AbstractContextManager[None]]

    def applies(self, model: nn.Module) -> bool:
        return bool(self.find(model))

    def __call__(self, model: nn.Module) -> AbstractContextManager[None]:
        return self.make(self.find(model))


CHANGES: dict[str, Change] = {}
Made = Callable[[Any], Iterator[None]]


def change(find: Find) -> Callable[[Made], Made]:
    """Register a change of what `find` finds in a model: a generator that yields in the changed state."""

    def add(function: Made) -> Made:
        CHANGES[function.__name__.replace("_", "-")] = Change(find, contextmanager(function))
        return function

    return add


def first(*kinds: type[nn.Module]) -> Find:
    """Find the first submodule of one of these kinds."""
    return lambda model: next(([m] for m in model.modules() if type(m) in kinds), [])


def dense(model: nn.Module) -> list[Any]:
    """Find the first layer whose weight is an ordinary parameter."""
    layers = (m for m in model.modules() if type(m) in (nn.Linear, nn.Conv2d))
    return next(([m] for m in layers if _is_plain(m._parameters.get("weight"))), [])


def _is_plain(weight: Tensor | None) -> bool:
    return weight is not None and weight.is_contiguous() and weight.layout == torch.strided


@contextmanager
def patched(holder: Any, name: str, value: object) -> Iterator[None]:
    """Set an attribute, and put things back as they were."""
    had = not hasattr(holder, "__dict__") or name in vars(holder) or hasattr(type(holder), name)
    before = getattr(holder, name, None)
    setattr(holder, name, value)
    try:
        yield
    finally:
        setattr(holder, name, before) if had else delattr(holder, name)


def users_class(model: nn.Module) -> list[type[nn.Module]]:
    """Find the class of the model, if a user wrote it."""
    return [type(model)] if type(model).__module__.startswith("tests.") else []


def mentions(name: str) -> Find:
    """Find the model, if its forward mentions a name."""

    def find(model: nn.Module) -> list[nn.Module]:
        code = getattr(type(model).forward, "__code__", None)
        return [model] if code is not None and name in (*code.co_names, *code.co_consts) else []

    return find


def held(model: nn.Module) -> dict[str, Any]:
    """Attributes of the model that are none of torch's."""
    return {k: v for k, v in vars(model).items() if k not in vars(nn.Module())}


def steep(real: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda *args: -20 * real(*args)


@change(dense)
def a_weight_scaled(layers: list[Any]) -> Iterator[None]:
    layers[0].weight.data.mul_(-20)
    yield


@change(dense)
def a_weight_replaced(layers: list[Any]) -> Iterator[None]:
    layers[0].weight = nn.Parameter(-20 * layers[0].weight.detach())
    yield


@change(lambda model: [m for m in model.modules() if type(m) is nn.Linear and m.bias is not None])
def a_bias_shifted(layers: list[Any]) -> Iterator[None]:
    layers[-1].bias.data[0] += 100
    yield


@change(dense)
def a_weight_swapped_for_a_plain_tensor(layers: list[Any]) -> Iterator[None]:
    weight = -20 * layers[0].weight.detach()
    del layers[0].weight
    layers[0].weight = weight
    yield


@change(dense)
def a_weight_hidden_by_the_instance(layers: list[Any]) -> Iterator[None]:
    layers[0].__dict__["weight"] = -20 * layers[0].weight.detach()
    yield


@change(lambda model: [p for p in model.parameters() if p.numel() >= 80 and p.dtype == torch.float32])
def a_checksum_collision(weights: list[Any]) -> Iterator[None]:
    """Turn signs of weights so that neither the CRC32 of their bytes nor the sum of their words changes."""
    weights[0].data.view(-1)[colliding_flips(weights[0].numel())] *= -1
    yield


def colliding_flips(size: int) -> Tensor:
    """Find which numbers of a float32 weight change sign for a collision: positions in the flattened weight.

    The sign of every second number is the highest bit of a 64-bit word: an even number of flips leaves the
    sum as it is. A CRC is linear over GF(2), so flips whose contributions cancel leave the CRC as it is.
    """
    data = bytearray(size * 4)
    empty = zlib.crc32(data)
    basis: dict[
        int, tuple[int, int]
    ] = {}  # the highest bit of a sum of contributions → the sum, and its flips
    for i, place in enumerate(range(1, size, 2)):
        data[4 * place + 3] ^= 0x80
        value, flips = (zlib.crc32(data) ^ empty) | 1 << 32, 1 << i  # bit 32 counts flips, modulo two
        data[4 * place + 3] ^= 0x80
        while value and value.bit_length() in basis:
            other, others = basis[value.bit_length()]
            value, flips = value ^ other, flips ^ others
        if value == 0:
            return torch.tensor([2 * j + 1 for j in range(i + 1) if flips >> j & 1])
        basis[value.bit_length()] = value, flips
    raise ValueError(f"size: expected at least 68 numbers, got {size}")


@change(first(nn.BatchNorm1d, nn.BatchNorm2d))
def a_buffer_scaled(layers: list[Any]) -> Iterator[None]:
    layers[0].running_var.data.mul_(0.002)
    yield


@change(lambda model: [(model, n, m) for n, m in model.named_children() if type(m) is nn.Linear])
def a_submodule_replaced(places: list[Any]) -> Iterator[None]:
    model, name, old = places[0]
    setattr(model, name, nn.Linear(old.in_features, old.out_features).to(old.weight))
    yield


@change(first(nn.LeakyReLU))
def a_slope_changed(layers: list[Any]) -> Iterator[None]:
    layers[0].negative_slope = -30.0
    yield


@change(first(nn.Conv2d))
def a_padding_mode_changed(layers: list[Any]) -> Iterator[None]:
    layers[0].padding_mode = "zeros" if layers[0].padding_mode != "zeros" else "circular"
    yield


@change(first(nn.Conv2d))
def a_dilation_changed(layers: list[Any]) -> Iterator[None]:
    layers[0].dilation, layers[0].padding = (2, 2), (2, 2)
    yield


@change(first(nn.Conv2d))
def a_stride_changed(layers: list[Any]) -> Iterator[None]:
    layers[0].stride = (3, 3)
    yield


@change(lambda model: [m for m in model.modules() if getattr(m, "padding_mode", "zeros") != "zeros"])
def edges_of_a_padding_changed(layers: list[Any]) -> Iterator[None]:
    layers[0]._reversed_padding_repeated_twice = [2, 0, 2, 0]
    yield


@change(lambda model: [model])
def training_mode(models: list[nn.Module]) -> Iterator[None]:
    models[0].train()
    yield


@change(first(nn.Dropout, nn.BatchNorm1d, nn.BatchNorm2d))
def training_mode_of_one_layer(layers: list[Any]) -> Iterator[None]:
    layers[0].train()
    yield


@change(dense)
def a_hook(layers: list[Any]) -> Iterator[None]:
    layers[0].register_forward_hook(lambda module, args, output: -20 * output)
    yield


@change(dense)
def a_pre_hook(layers: list[Any]) -> Iterator[None]:
    layers[0].register_forward_pre_hook(lambda module, args: (-20 * args[0],))
    yield


@change(lambda model: [model])
def a_global_hook(models: list[nn.Module]) -> Iterator[None]:
    handle = register_module_forward_hook(lambda module, args, output: -20 * output)
    try:
        yield
    finally:
        handle.remove()


@change(lambda model: [model])
def a_global_pre_hook(models: list[nn.Module]) -> Iterator[None]:
    handle = register_module_forward_pre_hook(lambda module, args: (-20 * args[0],))
    try:
        yield
    finally:
        handle.remove()


@change(lambda model: [model])
def a_forward_on_the_instance(models: list[Any]) -> Iterator[None]:
    models[0].forward = steep(models[0].forward)
    yield


@change(dense)
def a_forward_on_a_layer(layers: list[Any]) -> Iterator[None]:
    layers[0].forward = steep(layers[0].forward)
    yield


@change(dense)
def a_call_impl_on_a_layer(layers: list[Any]) -> Iterator[None]:
    layers[0]._call_impl = steep(layers[0]._call_impl)
    yield


@change(first(nn.Conv2d))
def a_conv_forward_on_the_instance(layers: list[Any]) -> Iterator[None]:
    layers[0]._conv_forward = steep(layers[0]._conv_forward)
    yield


@change(users_class)
def a_forward_on_the_class(kinds: list[Any]) -> Iterator[None]:
    with patched(kinds[0], "forward", steep(kinds[0].forward)):
        yield


@change(users_class)
def a_call_on_the_class(kinds: list[Any]) -> Iterator[None]:
    real = kinds[0].__call__
    with patched(kinds[0], "__call__", lambda self, *args: -20 * real(self, *args)):
        yield


@change(mentions("honest"))
def a_method_on_the_class(models: list[Any]) -> Iterator[None]:
    with patched(type(models[0]), "honest", steep(type(models[0]).honest)):
        yield


@change(users_class)
def a_call_impl_on_the_class(kinds: list[Any]) -> Iterator[None]:
    with patched(kinds[0], "_call_impl", lambda self, *args: -20 * nn.Module._call_impl(self, *args)):
        yield


@change(lambda model: [model] if users_class(model) else [])
def another_class_of_the_model(models: list[Any]) -> Iterator[None]:
    kind = type(models[0])
    models[0].__class__ = type(kind.__name__, (kind,), {"forward": steep(kind.forward)})
    yield


@change(first(nn.Linear))
def another_class_of_a_layer(layers: list[Any]) -> Iterator[None]:
    layers[0].__class__ = type("Linear", (nn.Linear,), {"forward": steep(nn.Linear.forward)})
    yield


@change(first(nn.Linear))
def the_forward_of_linear(layers: list[Any]) -> Iterator[None]:
    with patched(nn.Linear, "forward", steep(nn.Linear.forward)):
        yield


@change(first(nn.Linear))
def the_function_linear(layers: list[Any]) -> Iterator[None]:
    with patched(F, "linear", steep(F.linear)):
        yield


@change(first(nn.Linear))
def a_function_mode(layers: list[Any]) -> Iterator[None]:
    with contexts.Loud():
        yield


@change(dense)
def a_parametrisation(layers: list[Any]) -> Iterator[None]:
    parametrize.register_parametrization(layers[0], "weight", layer_themes.Larger())
    yield


@change(dense)
def a_pruned_layer(layers: list[Any]) -> Iterator[None]:
    prune.l1_unstructured(layers[0], "weight", amount=0.5)
    layers[0].weight_orig.data.mul_(-20)
    yield


def graphs(model: nn.Module) -> list[Any]:
    """Find graph modules."""
    return [m for m in model.modules() if isinstance(m, fx.GraphModule)]


@change(graphs)
def a_graph_edited(found: list[Any]) -> Iterator[None]:
    edit(found[0])
    found[0].recompile()
    yield


@change(graphs)
def a_graph_edited_and_not_compiled(found: list[Any]) -> Iterator[None]:
    edit(found[0])
    yield


def edit(module: fx.GraphModule) -> None:
    """Scale the output of a graph."""
    (output,) = (node for node in module.graph.nodes if node.op == "output")
    with module.graph.inserting_before(output):
        output.args = (module.graph.call_function(torch.mul, (output.args[0], -20)),)


@change(lambda model: [(model, k) for k, v in held(model).items() if isinstance(v, float)])
def a_number_held_by_the_model(places: list[Any]) -> Iterator[None]:
    setattr(*places[0], -20.0)
    yield


@change(lambda model: [v for v in held(model).values() if isinstance(v, list) and v])
def a_list_held_by_the_model(lists: list[Any]) -> Iterator[None]:
    lists[0][0] = -20.0
    yield


@change(lambda model: [v for v in held(model).values() if isinstance(v, dict) and v])
def a_dictionary_held_by_the_model(dictionaries: list[Any]) -> Iterator[None]:
    dictionaries[0].update(dict.fromkeys(dictionaries[0], -20.0))
    yield


@change(lambda model: [(model, k) for k, v in held(model).items() if callable(v)])
def a_function_held_by_the_model(places: list[Any]) -> Iterator[None]:
    model, name = places[0]
    setattr(model, name, steep(getattr(model, name)))
    yield


def cells(model: nn.Module) -> list[Any]:
    """Find numbers in closures of functions that the model holds."""
    functions = [v for v in held(model).values() if isinstance(v, types.FunctionType)]
    return [c for f in functions for c in f.__closure__ or () if isinstance(c.cell_contents, float)]


@change(cells)
def a_cell_of_a_closure(found: list[Any]) -> Iterator[None]:
    with patched(found[0], "cell_contents", -20.0):
        yield


@change(mentions("scaled"))
def a_default_of_a_function(models: list[Any]) -> Iterator[None]:
    with patched(modules.scaled, "__defaults__", (-20.0,)):
        yield


@change(mentions("scaled"))
def the_code_of_a_function(models: list[Any]) -> Iterator[None]:
    with patched(modules.scaled, "__code__", (lambda h, gain: -20 * h).__code__):
        yield


@change(mentions("GAIN"))
def a_global_setting(models: list[Any]) -> Iterator[None]:
    with patched(modules, "GAIN", -20.0):
        yield


@change(mentions("gain"))
def a_setting_of_the_class(models: list[Any]) -> Iterator[None]:
    with patched(type(models[0]), "gain", -20.0):
        yield


@change(mentions("LIPCERT_LAW_WRONG"))
def an_environment_variable(models: list[Any]) -> Iterator[None]:
    os.environ["LIPCERT_LAW_WRONG"] = "1"
    try:
        yield
    finally:
        del os.environ["LIPCERT_LAW_WRONG"]
