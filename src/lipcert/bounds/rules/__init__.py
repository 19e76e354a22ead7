"""Provide the rules of torch's own modules, one family per file; importing this package registers them."""

from lipcert.bounds.rules import convolution, joins, linear, normalisation, pointwise, pooling, shapes

__all__ = ["convolution", "joins", "linear", "normalisation", "pointwise", "pooling", "shapes"]
