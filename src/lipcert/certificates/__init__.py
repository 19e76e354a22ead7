"""Certify predictions with proved radii, and write the file that states them."""
