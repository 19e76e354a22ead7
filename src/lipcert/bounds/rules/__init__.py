"""The rules of torch's own modules, one family a file; importing this package registers them."""

from lipcert.bounds.rules import joins, linear, normalisation, pointwise, pooling, shapes

__all__ = ["joins", "linear", "normalisation", "pointwise", "pooling", "shapes"]
