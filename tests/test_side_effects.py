"""Importing and using lipcert leaves the process as it was."""

from __future__ import annotations

import subprocess
import sys
import textwrap

PRELUDE = """
import importlib, pkgutil
import matplotlib, torch
from torch.optim import optimizer as torch_optimizer

def state():
    backend = dict.__getitem__(matplotlib.rcParams, "backend")  # without choosing one
    hooks = [len(v) for k, v in vars(torch_optimizer).items() if k.startswith("_global_optimizer")]
    of_modules = [v for k, v in vars(torch.nn.modules.module).items() if k.startswith("_global_")]
    modules = [len(v) for v in of_modules if hasattr(v, "__len__")]
    return {
        "threads": torch.get_num_threads(),
        "backend": str(backend),
        "pyplot": "matplotlib.pyplot" in __import__("sys").modules,
        "optimizer hooks": hooks,
        "module hooks": modules,
        "default dtype": torch.get_default_dtype(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "matmul": torch.get_float32_matmul_precision(),
        "grad": torch.is_grad_enabled(),
        "random": torch.get_rng_state().sum().item(),
    }

before = state()
"""

USES = {
    "import": """
        import lipcert
        for module in pkgutil.walk_packages(lipcert.__path__, "lipcert."):
            if not module.name.endswith("__main__") and "ray" not in module.name:
                importlib.import_module(module.name)
    """,
    "certify": """
        import lipcert
        model = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3))
        kinds = [type(m) for m in model.modules()]
        before = state()
        lipcert.Bounded(model, (2,))(torch.zeros(1, 2))
        lipcert.certify(model, torch.zeros(1, 2))
        assert kinds == [type(m) for m in model.modules()]
    """,
    "fit": """
        import numpy as np, lipcert
        x = np.random.default_rng(0).normal(size=(60, 2))
        before = state()
        lipcert.CertifiedClassifier(epochs=2).fit(x, x[:, 0] > 0)
    """,
    "train": """
        from lipcert.recipes import execute, read_recipe
        import tempfile
        torch.set_num_threads(2)
        before = state() | {"random": None}
        execute(read_recipe("moons-cll", "smoke", ["train.threads=1"]), tempfile.mkdtemp() + "/run")
    """,
}


def test_the_process_is_as_it_was() -> None:
    """One process for all uses, each compared with what was there before it."""
    program = PRELUDE
    for name, use in USES.items():
        check = """
        after = state()
        changed = {k: (v, after[k]) for k, v in before.items() if v is not None and v != after[k]}
        assert not changed, ("NAME", changed)
        """
        program += textwrap.dedent(use) + textwrap.dedent(check.replace("NAME", name))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def test_training_from_python_leaves_the_allocator_alone() -> None:
    program = """
import ctypes, sys
calls = []
real = ctypes.CDLL
class Spy(real):
    def __getattr__(self, name):
        if name == "mallopt":
            calls.append(name)
        return super().__getattr__(name)
ctypes.CDLL = Spy
import numpy as np, lipcert
x = np.random.default_rng(0).normal(size=(60, 2))
lipcert.CertifiedClassifier(epochs=2).fit(x, x[:, 0] > 0)
assert not calls
from lipcert.commands.support.allocator import keep_freed_memory
keep_freed_memory()
assert calls  # the spy sees what the command line does
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
