"""Provide activations and layers, one parametrisation per file, each with its bound rule beside it.

Every file of this folder is imported, so that a new one registers its rules without being named here.
"""

from lipcert.nn.aoc import AOCConv2d, AOCConvTranspose2d
from lipcert.nn.aol import AOLConv2d, AOLLinear
from lipcert.nn.batch_centering import BatchCentering
from lipcert.nn.bcop import BCOPConv2d
from lipcert.nn.bjorck import BjorckConv2d, BjorckLinear
from lipcert.nn.blocks import Branches, Residual
from lipcert.nn.bro import BROConv2d, BROLinear
from lipcert.nn.cayley import CayleyConv2d, CayleyLinear
from lipcert.nn.cholesky import CholeskyConv2d, CholeskyLinear
from lipcert.nn.cpl import CPLConv2d, CPLLinear
from lipcert.nn.fixed_linear import FixedLinear
from lipcert.nn.frobenius import FrobeniusConv2d, FrobeniusLinear
from lipcert.nn.full_sort import FullSort
from lipcert.nn.groupsort import GroupSort
from lipcert.nn.householder import Householder
from lipcert.nn.l2_pool import L2NormPool2d
from lipcert.nn.last_layer import LLNLinear
from lipcert.nn.layer_centering import LayerCentering
from lipcert.nn.linear_residual import LinearResidualConv2d
from lipcert.nn.linear_spline import LinearSpline
from lipcert.nn.lot import LOTConv2d, LOTLinear
from lipcert.nn.minmax import MinMax
from lipcert.nn.n_activation import NActivation
from lipcert.nn.normalised import Normalised
from lipcert.nn.pad_channels import PadChannels
from lipcert.nn.rko import RKOConv2d
from lipcert.nn.sandwich import SandwichConv2d, SandwichLinear
from lipcert.nn.scale import Scale
from lipcert.nn.scaled_pool import ScaledAdaptiveAvgPool2d
from lipcert.nn.shift_mix import OrthogonalParameter, PartialAbs, ShiftMix
from lipcert.nn.sll import SLLConv2d, SLLLinear
from lipcert.nn.soc import SOCConv2d, SOCLinear
from lipcert.nn.standardise import Standardise
from lipcert.registry import import_files

__all__ = [
    "AOCConv2d",
    "AOCConvTranspose2d",
    "AOLConv2d",
    "AOLLinear",
    "BCOPConv2d",
    "BROConv2d",
    "BROLinear",
    "BatchCentering",
    "BjorckConv2d",
    "BjorckLinear",
    "Branches",
    "CPLConv2d",
    "CPLLinear",
    "CayleyConv2d",
    "CayleyLinear",
    "CholeskyConv2d",
    "CholeskyLinear",
    "FixedLinear",
    "FrobeniusConv2d",
    "FrobeniusLinear",
    "FullSort",
    "GroupSort",
    "Householder",
    "L2NormPool2d",
    "LLNLinear",
    "LOTConv2d",
    "LOTLinear",
    "LayerCentering",
    "LinearResidualConv2d",
    "LinearSpline",
    "MinMax",
    "NActivation",
    "Normalised",
    "OrthogonalParameter",
    "PadChannels",
    "PartialAbs",
    "RKOConv2d",
    "Residual",
    "SLLConv2d",
    "SLLLinear",
    "SOCConv2d",
    "SOCLinear",
    "SandwichConv2d",
    "SandwichLinear",
    "Scale",
    "ScaledAdaptiveAvgPool2d",
    "ShiftMix",
    "Standardise",
]

import_files(__name__)
