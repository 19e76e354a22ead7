"""Laws that everything registered obeys: tests run them on lipcert, and `lipcert check` on other code."""

from lipcert.laws.checking import LawCheck, LawReport, check_source
from lipcert.laws.law import BrokenLawError, Law, Laws

__all__ = ["BrokenLawError", "Law", "LawCheck", "LawReport", "Laws", "check_source"]
