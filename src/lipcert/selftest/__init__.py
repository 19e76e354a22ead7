"""Compare everything that is registered on a device with the CPU in float64: `lipcert doctor --selftest`."""

from lipcert.selftest.device_checks import Check, SelfTest
from lipcert.selftest.device_test import run_self_test

__all__ = ["Check", "SelfTest", "run_self_test"]
