"""Section B of the supplement: under CLL a free last layer has a slight edge over rows of length 1.

The networks of `table-rivals` are trained with CLL and rows of length 1; that table has the free heads.
"""

from __future__ import annotations

from lipcert.paper.accuracy_tables import draw_compared
from lipcert.paper.claims import improves
from lipcert.paper.definition import Claim, Reduction, Reproduction, Variant, register
from lipcert.paper.printed_measures import CLEAN, NEAR
from lipcert.paper.rivals_table import THIN

_FREE = ("cifar10-lipconv20-cll", "cifar10-cpl-xl-cll")
_NORMALISED = {recipe: f"{recipe}-lln" for recipe in _FREE}
_ROWS = tuple(Variant(recipe, (f"name={name}", "model.head=lln")) for recipe, name in _NORMALISED.items())
_NAMES = dict(zip(_FREE, ("LipConv", "CPL"), strict=True))

# Only the ledger sees both tables.
FREE_HEADS = tuple(
    Claim(
        f"with CLL a free last layer has a slight edge over rows of length 1, in {what}",
        "no numbers",
        improves(measure, _NORMALISED, _NAMES, what="free less normalised"),
        also=("table-rivals",),
    )
    for measure, what in ((NEAR, "certified accuracy at 36/255"), (CLEAN, "clean accuracy"))
)

register(
    Reproduction(
        "table-heads",
        "LipConv and CPL on CIFAR-10 with CLL and rows of length 1, to compare with table-rivals; cpu: thin",
        _ROWS,
        draw_compared,
        {"cpu": Reduction(THIN, seeds=(1, 2)), "smoke": Reduction(variants=_ROWS[1:])},
    )
)
