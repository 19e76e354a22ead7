"""Certificates: radii that are proved, and the file that states them."""
