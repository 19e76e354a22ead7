"""Activations and layers, one parametrisation per file, each with its bound rule beside it."""

from lipcert.nn.blocks import Branches, Residual
from lipcert.nn.groupsort import GroupSort
from lipcert.nn.householder import Householder
from lipcert.nn.minmax import MinMax
from lipcert.nn.normalised import Normalised
from lipcert.nn.scale import Scale

__all__ = ["Branches", "GroupSort", "Householder", "MinMax", "Normalised", "Residual", "Scale"]
