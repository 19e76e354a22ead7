"""The network that a proof is about: a copy out of reach, and a mark by which its original is known."""

from __future__ import annotations

import copy
from typing import cast

import torch
from torch import nn
from torch.nn.utils import parametrize

from lipcert.bounds.contract import refuse_unsettled
from lipcert.hashing import tensors_checksum
from lipcert.nn.derived import Derived

# Kinds of attributes that are settings of a layer.
_PLAIN = (bool, int, float, str, tuple, type(None))


def frozen_copy(model: nn.Module) -> nn.Module:
    """What the certificate speaks of: float64, its weights settled, out of the reach of later training."""
    for path, module in model.named_modules():
        refuse_unsettled(path, module)
        if isinstance(module, Derived):
            module.forget()  # what is certified is what runs from now on, whoever wrote to it
    frozen = copy.deepcopy(model)
    # Weights that are computed are settled in the precision they run in, and widened then.
    for module in list(frozen.modules()):
        if isinstance(module, Derived):
            module.remember_precision()
        if parametrize.is_parametrized(module):
            _settle(module)
    return frozen.to("cpu", torch.float64)


def _settle(module: nn.Module) -> None:
    """Turn parametrised weights of a copied module into ordinary ones."""
    shared = type(module)  # torch takes the weight from the class, which the copy shares with its original
    members = {k: v for k, v in vars(shared).items() if k not in ("__dict__", "__weakref__")}
    module.__class__ = type(shared.__name__, shared.__bases__, members)
    for name in list(cast(nn.ModuleDict, module.parametrizations)):
        parametrize.remove_parametrizations(module, name, leave_parametrized=True)


def fingerprint(model: nn.Module) -> tuple[str, str, tuple[str, ...]]:
    """Changes with any weight, setting or mode of the model."""
    # Buffers that are not saved count as well, so not from the state_dict.
    tensors = tensors_checksum(dict([*model.named_parameters(), *model.named_buffers()]))
    return tensors, repr(model), tuple(_settings(module) for module in model.modules())


def _settings(module: nn.Module) -> str:
    """All plain attributes, for those that print does not show; `training` is one."""
    plain = {k: v for k, v in vars(module).items() if not k.startswith("_") and isinstance(v, _PLAIN)}
    return repr(sorted(plain.items()))
