"""Checks that what was proved is what runs."""
