"""Every test starts from the same random state, on one thread (two workers share two cores)."""

from __future__ import annotations

import os

import pytest
import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("default", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("default")


@pytest.fixture(autouse=True)
def _same_start() -> None:
    torch.manual_seed(0)
