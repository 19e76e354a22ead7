"""Check what the paper's text claims about Tables 1 and 2, by the rows of a table's own recipes."""

from __future__ import annotations

from lipcert.paper.claims import gains_more, improves, no_better, similar
from lipcert.paper.definition import Claim
from lipcert.paper.printed_measures import CLEAN, FAR, NEAR
from lipcert.runs.measures import K_HF, TIGHTNESS

# Recipes with CLL, and the rows that the text compares them with.
_TINY = {
    "tiny-8c2f-cll": "tiny-8c2f-gloro-trades",
    "tiny-lipconv20-cll": "tiny-lipconv20-soc",
    "tiny-8c2f-cll-1.0": "tiny-sandwich",
}
_TINY_BOUNDS = {ours: theirs for ours, theirs in _TINY.items() if theirs != "tiny-sandwich"}
_SOFT = {"cifar10-6c2f-cll": "cifar10-6c2f-gloro", "cifar10-4c3f-cll": "cifar10-4c3f-gloro"}
_HARD = {"cifar10-lipconv20-cll": "cifar10-lipconv20-soc", "cifar10-cpl-xl-cll": "cifar10-cpl-xl"}
_CIFAR10 = {**_SOFT, **_HARD}
_SLL = {"cifar10-sll-xl-cll": "cifar10-sll-xl"}
_CIFAR100 = {
    f"cifar100-{name}-cll": f"cifar100-{rival}"
    for name, rival in (("lipconv20", "lipconv20-soc"), ("cpl-xl", "cpl-xl"), ("sll-xl", "sll-xl"))
}


def _beats_the_best(rival: str, name: str, printed: str) -> Claim:
    return Claim(
        f"Tiny-ImageNet: CLL on LipConv-20 certifies more at 36/255 than {name}",
        printed,
        improves(NEAR, {"tiny-lipconv20-cll": rival}),
    )


TABLE_1 = (
    Claim(
        "Tiny-ImageNet: CLL certifies more than the state of the art at 36/255",
        "25.9 against 23.9 % (GloRo), 26.0 against 21.0 % (SOC), 25.3 against 24.7 % (LBDN)",
        improves(NEAR, _TINY),
    ),
    Claim(
        "Tiny-ImageNet: CLL certifies more at 108/255 as well",
        "10.7 against 9.0 % (GloRo), 15.5 against 7.5 % (SOC), 13.8 against 13.4 % (LBDN)",
        improves(FAR, _TINY),
    ),
    Claim(
        "Tiny-ImageNet: CLL maintains or improves clean accuracy",
        "39.8 against 39.5 % (GloRo), 32.6 against 31.7 % (SOC), 33.5 against 33.4 % (LBDN)",
        improves(CLEAN, _TINY),
    ),
    _beats_the_best("tiny-sll-xl", "SLL-XL", "26.0 against 23.2 %"),
    _beats_the_best("tiny-sandwich", "LBDN", "26.0 against 24.7 %"),
    Claim(
        "Tiny-ImageNet: CLL's bounds are tighter than those of GloRo and SOC",
        "64 against 53 % on 8C2F, 84 against 81 % on LipConv-20",
        improves(TIGHTNESS, _TINY_BOUNDS),
    ),
    Claim(
        "Tiny-ImageNet: CLL's K_hf is larger, about twice GloRo's and SOC's (its own is set by ε and p)",
        "10.6 against 3.9 on 8C2F (the text says 7.3), 11.6 against 6.4 on LipConv-20",
        improves(K_HF, _TINY_BOUNDS),
    ),
    Claim(
        "Tiny-ImageNet: SOC with 10 layers is slightly better than with 20",
        "21.5 against 21.0 % at 36/255",
        improves(NEAR, {"tiny-lipconv10-soc": "tiny-lipconv20-soc"}, what="10 layers less 20"),
    ),
    Claim(
        "Tiny-ImageNet: CLL on 8C2F certifies more than Local-Lip-B",
        "25.9 against 23.4 % at 36/255",
        improves(NEAR, {"tiny-8c2f-cll": "tiny-8c2f-local-lip-b"}),
    ),
)

TABLE_2_CIFAR10 = (
    Claim(
        "CLL certifies more at 36/255 than GloRo, SOC and CPL",
        "+2.9, +1.8, +1.6 and +1.5 points",
        improves(NEAR, _CIFAR10),
    ),
    Claim(
        "CIFAR-10: CLL certifies more at 108/255 than GloRo, SOC and CPL",
        "+4.3 (4C3F), +0.7 and +5.1 points; the text calls the radius 128/255",
        improves(FAR, {ours: theirs for ours, theirs in _CIFAR10.items() if "6c2f" not in ours}),
    ),
    Claim(
        "CIFAR-10: CLL improves clean accuracy over GloRo, SOC and CPL",
        "+0.6, +0.2, +1.1 and +0.3 points",
        improves(CLEAN, _CIFAR10),
    ),
    Claim(
        "CIFAR-10: CLL on SLL-XL provides no improvements",
        "73.0 against 73.3 % clean, 65.5 against 65.8 % at 36/255",
        no_better((CLEAN, NEAR), _SLL),
    ),
    Claim(
        "CIFAR-10: CLL's bound of CPL-XL is tighter",
        "80 against 78 %",
        improves(TIGHTNESS, {"cifar10-cpl-xl-cll": "cifar10-cpl-xl"}),
    ),
    Claim(
        "CIFAR-10: tightness gains most on soft-constrained networks",
        "+8 (6C2F) and +9 (4C3F) against 0 (LipConv-20) and +2 points (CPL-XL)",
        gains_more(TIGHTNESS, _SOFT, _HARD),
    ),
    Claim(
        "CIFAR-10: CLL certifies more than Local-Lip-B, without local bounds",
        "61.3 against 60.7 % at 36/255, on 6C2F",
        improves(NEAR, {"cifar10-6c2f-cll": "cifar10-6c2f-local-lip-b"}),
    ),
    Claim(
        "CIFAR-10: GloRo trained anew, on 4C3F, certifies more at 36/255 than reported, on 6C2F",
        "59.6 against 58.4 %",
        improves(NEAR, {"cifar10-4c3f-gloro": "cifar10-6c2f-gloro"}, what="4C3F less 6C2F"),
    ),
)

TABLE_2_CIFAR100 = (
    Claim(
        "CLL certifies more at 36/255 than SOC, CPL and SLL",
        "+0.3, +2.9 and +0.1 points; 36.6 % is more than the state of the art, 36.5 % (SLL)",
        improves(NEAR, _CIFAR100),
    ),
    Claim(
        "CIFAR-100: CLL certifies more at 108/255 than SOC, CPL and SLL",
        "+2.5, +8.9 and +0.1 points",
        improves(FAR, _CIFAR100),
    ),
    Claim(
        "CIFAR-100: CLL improves clean accuracy over SOC, CPL and SLL",
        "+0.4, +0.1 and +0.4 points",
        improves(CLEAN, _CIFAR100),
    ),
    Claim(
        "CIFAR-100: CLL's bound of CPL-XL is tighter",
        "79 against 74 %",
        improves(TIGHTNESS, {"cifar100-cpl-xl-cll": "cifar100-cpl-xl"}),
    ),
    Claim(
        "CIFAR-100: on SLL-XL, K_hf is highly similar with CLL and with the loss of AOL",
        "6.5 against 6.0; on CIFAR-10 10.6 against 6.7",
        similar(K_HF, {"cifar100-sll-xl-cll": "cifar100-sll-xl"}, factor=1.25),
    ),
)
