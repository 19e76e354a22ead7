"""Provide activations and layers, one parametrisation per file, each with its bound rule beside it.

Every file of this folder is imported, so that a new one registers its rules without being named here.
"""

from lipcert.nn.aol import AOLConv2d, AOLLinear
from lipcert.nn.blocks import Branches, Residual
from lipcert.nn.bro import BROConv2d, BROLinear
from lipcert.nn.cayley import CayleyConv2d, CayleyLinear
from lipcert.nn.cholesky import CholeskyConv2d, CholeskyLinear
from lipcert.nn.cpl import CPLConv2d, CPLLinear
from lipcert.nn.groupsort import GroupSort
from lipcert.nn.householder import Householder
from lipcert.nn.l2_pool import L2NormPool2d
from lipcert.nn.last_layer import LLNLinear
from lipcert.nn.linear_residual import LinearResidualConv2d
from lipcert.nn.lot import LOTConv2d, LOTLinear
from lipcert.nn.minmax import MinMax
from lipcert.nn.normalised import Normalised
from lipcert.nn.pad_channels import PadChannels
from lipcert.nn.sandwich import SandwichConv2d, SandwichLinear
from lipcert.nn.scale import Scale
from lipcert.nn.shift_mix import OrthogonalParameter, PartialAbs, ShiftMix
from lipcert.nn.sll import SLLConv2d, SLLLinear
from lipcert.nn.soc import SOCConv2d, SOCLinear
from lipcert.nn.standardise import Standardise
from lipcert.registry import import_files

__all__ = [
    "AOLConv2d",
    "AOLLinear",
    "BROConv2d",
    "BROLinear",
    "Branches",
    "CPLConv2d",
    "CPLLinear",
    "CayleyConv2d",
    "CayleyLinear",
    "CholeskyConv2d",
    "CholeskyLinear",
    "GroupSort",
    "Householder",
    "L2NormPool2d",
    "LLNLinear",
    "LOTConv2d",
    "LOTLinear",
    "LinearResidualConv2d",
    "MinMax",
    "Normalised",
    "OrthogonalParameter",
    "PadChannels",
    "PartialAbs",
    "Residual",
    "SLLConv2d",
    "SLLLinear",
    "SOCConv2d",
    "SOCLinear",
    "SandwichConv2d",
    "SandwichLinear",
    "Scale",
    "ShiftMix",
    "Standardise",
]

import_files(__name__)
