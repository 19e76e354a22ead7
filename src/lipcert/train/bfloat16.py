"""Check that this CPU can train in bfloat16: a few stop the process at an illegal instruction."""

from __future__ import annotations

import functools
import subprocess
import sys

from lipcert.errors import InputError

# One training step of a convolution and a dense layer, which a crash ends without harm to anybody else.
_TRIAL = """
import torch
from torch import nn
model = nn.Sequential(nn.Conv2d(3, 32, 3), nn.Conv2d(32, 32, 4, 2), nn.Flatten(), nn.Linear(4608, 64))
with torch.autocast("cpu", torch.bfloat16):
    model(torch.rand(8, 3, 28, 28)).float().square().mean().backward()
assert all(p.grad.isfinite().all() for p in model.parameters())
"""


@functools.cache
def check_bfloat16() -> None:
    """Raise `InputError` if a training step in bfloat16 fails in a process of its own."""
    done = subprocess.run([sys.executable, "-c", _TRIAL], capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        how = done.stderr.strip().rpartition("\n")[2] or f"exit status {done.returncode}"
        raise InputError(f"--precision bf16-mixed: a trial step on this CPU failed ({how}); train in 32")
