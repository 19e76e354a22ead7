"""Trace a module to the list of steps that it computes."""
