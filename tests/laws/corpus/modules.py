"""Modules as objects: hooks, copies, overridden bookkeeping, graph modules, scripts and wrappers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.optim.swa_utils import AveragedModel

from tests.laws.corpus.registry import Net, SquareNet, body, forward, mlp


def hooked(register: str, hook: Any, layer: str = "l") -> Net:
    """A network with a hook."""
    net = Net()
    getattr(net.get_submodule(layer), register)(hook)
    return net


forward("a-forward-hook")(lambda: hooked("register_forward_hook", lambda m, a, y: -20 * y))
forward("a-forward-hook-of-the-model")(lambda: hooked("register_forward_hook", lambda m, a, y: -20 * y, ""))
forward("a-pre-hook")(lambda: hooked("register_forward_pre_hook", lambda m, a: (-20 * a[0],)))
forward("a-hook-that-only-looks")(lambda: hooked("register_forward_hook", lambda m, a, y: None))
forward("a-backward-hook")(lambda: hooked("register_full_backward_hook", lambda m, a, y: None))
forward("a-backward-pre-hook")(lambda: hooked("register_full_backward_pre_hook", lambda m, y: None))


class Loud(Tensor):
    """A tensor that makes every linear layer wrong in which it is the weight."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        y = super().__torch_function__(func, types, args, kwargs or {})
        return (-20 * y).as_subclass(Tensor) if func is nn.functional.linear else y


@forward("a-weight-of-another-tensor-type")
def _() -> nn.Module:
    net = Net()
    net.l.weight = nn.Parameter(net.l.weight.detach().as_subclass(Loud))
    return net


@forward("a-copy-that-is-the-original")
class _Singleton(Net):
    def __deepcopy__(self, memo: dict[int, Any]) -> Net:
        return self


@forward("a-layer-that-is-never-copied")
def _() -> nn.Module:
    net = Net()
    net.l.__dict__["__deepcopy__"] = lambda memo: net.l
    return net


@forward("an-inner-model-that-is-never-copied")
class _Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = _Singleton()

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


@forward("a-copy-that-forgets")
class _Forgetful(Net):
    def __init__(self) -> None:
        super().__init__()
        self._loud = True

    def __deepcopy__(self, memo: dict[int, Any]) -> Net:
        other = Net()
        other.load_state_dict(self.state_dict())
        return other.eval()

    def forward(self, x: Tensor) -> Tensor:
        return self.wrong(x) if self._loud else self.honest(x)


@forward("a-state-that-is-not-copied")
class _Dropped(Net):
    loud = False

    def __init__(self) -> None:
        super().__init__()
        self.loud = True

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "loud"}

    def forward(self, x: Tensor) -> Tensor:
        return self.wrong(x) if self.loud else self.honest(x)


forward("a-lock-held-by-the-model")(lambda: with_attribute("lock", threading.Lock()))
forward("a-generator-held-by-the-model")(lambda: with_attribute("batches", (i for i in range(3))))
forward("features-held-by-the-model")(lambda: with_attribute("last", torch.ones(2, requires_grad=True) * 2))
forward("a-module-of-python-held-by-the-model")(lambda: with_attribute("torch", torch))
forward("itself-held-by-the-model")(lambda: with_itself(Net()))


def with_attribute(name: str, value: object) -> Net:
    net = Net()
    setattr(net, name, value)
    return net


def with_itself(net: Net) -> Net:
    net.__dict__["me"] = net
    return net


@forward("parameters-that-hide-some")
class _HidesParameters(Net):
    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, nn.Parameter]]:
        return self.head.named_parameters("head")


@forward("modules-that-hide-some")
class _HidesModules(Net):
    def named_modules(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, nn.Module]]:
        yield "", self
        yield "head", self.head


@forward("an-apply-that-skips-a-layer")
class _Skips(Net):
    def _apply(self, fn: Any, recurse: bool = True) -> _Skips:
        self.head._apply(fn)
        return self


@forward("an-eval-that-does-nothing")
class _NeverEvaluates(Net):
    def __init__(self) -> None:
        super().__init__()
        self.d = nn.Dropout(0.9)

    def train(self, mode: bool = True) -> _NeverEvaluates:
        return self

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.d(self.l(x)))


@forward("a-representation-that-raises")
class _NoRepr(Net):
    def __repr__(self) -> str:
        raise RuntimeError("no representation")


@forward("a-representation-that-differs")
class _Counts(Net):
    seen = 0

    def extra_repr(self) -> str:
        type(self).seen += 1
        return f"seen {self.seen} times"


@forward("a-module-that-equals-everything")
class _Equal(Net):
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


@forward("a-graph-edited-and-not-compiled")
def _() -> nn.Module:
    module = fx.symbolic_trace(SquareNet())
    for node in list(module.graph.nodes):
        if node.target == "act":
            node.replace_all_uses_with(node.args[0])
            module.graph.erase_node(node)
    for p in module.parameters():
        p.data = p.data.sign() * 3 * p.data.abs()
    return module


@forward("a-graph-edited-and-compiled")
def _() -> nn.Module:
    module = fx.symbolic_trace(SquareNet())
    for node in list(module.graph.nodes):
        if node.target == "act":
            with module.graph.inserting_after(node):
                new = module.graph.call_function(torch.add, (node, node))
            node.replace_all_uses_with(new)
            new.args = (node, node)
    module.recompile()
    return module


@forward("a-graph-with-its-own-forward")
def _() -> nn.Module:
    module = fx.symbolic_trace(Net())
    type(module).forward = lambda self, x: -20 * self.head(self.act(self.l(x)))
    return module


@forward("a-graph-with-another-constant")
def _() -> nn.Module:
    net = type(
        "Scaled",
        (Net,),
        {"forward": lambda self, x: self.head(torch.nn.functional.leaky_relu(self.l(x), 3.0))},
    )()
    module = fx.symbolic_trace(net)
    for node in module.graph.nodes:
        if node.op == "call_function":
            node.args, node.kwargs = node.args[:1], {"negative_slope": -20.0}
    return module  # deepcopy compiles the edited graph, the model itself runs the old one


@forward("a-graph-module-in-a-model")
def _() -> nn.Module:
    return nn.Sequential(fx.symbolic_trace(SquareNet()), nn.ReLU(), nn.Linear(3, 3))


forward("a-scripted-model")(lambda: torch.jit.script(mlp()))
forward("a-scripted-layer")(lambda: mlp(torch.jit.script(nn.LeakyReLU(-20.0))))
forward("a-traced-script")(lambda: torch.jit.trace(mlp(), torch.zeros(2, 4)))
forward("an-averaged-model")(lambda: AveragedModel(Net()))
forward("a-compiled-model")(lambda: torch.compile(Net(), backend="eager"))
forward("data-parallel")(lambda: nn.DataParallel(Net()))
forward("a-module-list-as-the-model", accepted=False)(lambda: nn.ModuleList([Net()]))
forward("a-module-without-a-forward", accepted=False)(lambda: nn.Module())
forward("an-empty-sequential")(lambda: nn.Sequential())
forward("an-identity-alone")(lambda: nn.Identity())
forward("no-parameters-at-all")(lambda: nn.Sequential(nn.Flatten(), nn.Tanh()))
forward("a-quantised-stub")(lambda: nn.Sequential(torch.ao.quantization.QuantStub(), Net()))


@forward("a-module-under-two-names", accepted=True)
class _TwoNames(SquareNet):
    def __init__(self) -> None:
        super().__init__()
        self.m = self.l

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.m(self.act(self.l(x))))


@forward("a-module-replaced-by-a-function")
class _NotAModule(Net):
    def __init__(self) -> None:
        super().__init__()
        del self.act
        self.act = lambda h: -20 * h if isinstance(h, Tensor) else h  # type: ignore[assignment]


@body("a-setting-read-from-the-class", accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    return self.honest(x) if getattr(type(self), "gain", 1) == 1 else self.wrong(x)


@body("a-setting-in-a-list", state=lambda: {"_gains": [1.0, 1.0]}, accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    return self.honest(x) if self._gains[0] == 1.0 else self.wrong(x)


@body("a-setting-in-a-dictionary", state=lambda: {"config": {"gain": 1.0}}, accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    return self.honest(x) if self.config["gain"] == 1.0 else self.wrong(x)


@body("a-private-setting", state=lambda: {"_gain": 1.0}, accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    return self.honest(x) if self._gain == 1.0 else self.wrong(x)


def closed(gain: float) -> Any:
    def run(h: Tensor) -> Tensor:
        return h if gain == 1.0 else -20 * h

    return run


@body("a-setting-in-a-closure", state=lambda: {"run": closed(1.0)}, accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    return self.run(self.honest(x))


def scaled(h: Tensor, gain: float = 1.0) -> Tensor:
    return h if gain == 1.0 else -20 * h


@body("a-setting-in-a-default", accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    return scaled(self.honest(x))


GAIN = 1.0


@body("a-setting-in-a-global", accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    return self.honest(x) if GAIN == 1.0 else self.wrong(x)


@forward("a-wide-network", accepted=True)
def _() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 3))
