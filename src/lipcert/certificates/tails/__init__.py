"""Tighter constants K_ij for the dense end of a network, from multipliers: `effort="tight"`."""
