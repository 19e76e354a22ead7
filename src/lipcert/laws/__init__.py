"""What everything registered obeys: laws that the tests run on lipcert, and `lipcert check` on other code."""

from lipcert.laws.checking import LawCheck, LawReport, check_source
from lipcert.laws.law import BrokenLawError, Law, Laws

__all__ = ["BrokenLawError", "Law", "LawCheck", "LawReport", "Laws", "check_source"]
