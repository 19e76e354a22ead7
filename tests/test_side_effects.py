"""Importing and using lipcert leaves the process as it was."""

from __future__ import annotations

import subprocess
import sys
import textwrap

PRELUDE = """
import gc, importlib, locale, logging, multiprocessing, os, pkgutil, random, signal, sys, threading
import matplotlib, numpy, torch
import lightning_fabric, rich.console  # the first wraps torch.compile, the second draws random numbers
from torch.optim import optimizer as torch_optimizer

# Classes and modules whose functions nobody but their owner may replace.
THEIRS = (
    torch, torch.Tensor, torch.nn.Module, torch.nn.functional, torch.optim.Optimizer, numpy,
)

def functions():
    return {
        f"{owner.__name__}.{name}": id(value)
        for owner in THEIRS
        for name, value in vars(owner).items()
        if callable(value) and not isinstance(value, type)
    }

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
        "random": hash(bytes(torch.get_rng_state())),
        "numpy's random": hash(numpy.random.get_state()[1].tobytes()),
        "python's random": hash(random.getstate()),
        "interop threads": torch.get_num_interop_threads(),
        "default device": str(torch.get_default_device()),
        "tf32": (torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32),
        "cudnn": (torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic),
        "mkldnn": torch.backends.mkldnn.enabled,
        "denormals": float(torch.tensor([1e-310], dtype=torch.float64) / 2),
        "anomalies": torch.is_anomaly_enabled(),
        "settings of pictures": hash(str(dict.items(matplotlib.rcParams))),
        "environment": dict(os.environ),
        "signals": [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)],
        "errors": (sys.excepthook, threading.excepthook),
        "logging": (logging.root.level, len(logging.root.handlers), logging.root.manager.disable),
        "start of processes": multiprocessing.get_start_method(allow_none=True),
        "locale": locale.setlocale(locale.LC_ALL),
        "garbage": gc.get_threshold(),
        "recursion": sys.getrecursionlimit(),
        "place": os.getcwd(),
        "print": (torch._tensor_str.PRINT_OPTS.precision, numpy.get_printoptions()["precision"]),
        "functions": functions(),
    }

def changes(before):
    after = state()
    found = {k: (v, after[k]) for k, v in before.items() if v is not None and v != after[k]}
    for key in ("functions", "environment"):  # those that were there before: others may come with a package
        if key in found:
            old, new = found.pop(key)
            found |= {f"{key}: {name}": value for name, value in old.items() if new.get(name) != value}
    return found

before = state()
"""

USES = {
    "import": """
        import lipcert
        names = {module.name for module in pkgutil.walk_packages(lipcert.__path__, "lipcert.")}
        for name in sorted(names - {"lipcert.__main__"}):  # which runs the command line
            importlib.import_module(name)
        assert len(names & set(sys.modules)) == len(names) - 1
    """,
    "certify": """
        import lipcert
        model = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3))
        kinds = [type(m) for m in model.modules()]
        before = state()
        weights = {name: (id(w), w.clone(), w._version) for name, w in model.named_parameters()}
        inside = {name: set(vars(m)) for name, m in model.named_modules()}
        lipcert.Bounded(model, (2,))(torch.zeros(1, 2))
        lipcert.certify(model, torch.zeros(1, 2))
        assert kinds == [type(m) for m in model.modules()]
        assert inside == {name: set(vars(m)) for name, m in model.named_modules()}
        for name, w in model.named_parameters():
            old, content, version = weights[name]
            assert id(w) == old and w._version == version and w.equal(content), name
        hooks = [len(v) for m in model.modules() for k, v in vars(m).items() if k.endswith("_hooks")]
        assert not any(hooks)
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
        changed = changes(before)
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
