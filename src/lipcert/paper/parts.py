"""The parts of the paper: every table and figure, and the statements of its text, in the paper's order.

Tables of the supplement are numbered by section, as the paper numbers the supplement's figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from lipcert.models import MODELS
from lipcert.paper.accuracy_tables import series_at
from lipcert.paper.claims import (
    Check,
    beats,
    best_at,
    by_slack,
    compared,
    moved,
    seeds_agree,
    trades_everywhere,
)
from lipcert.paper.definition import Claim
from lipcert.paper.formula_claims import CALIBRATED, CERTIFICATION, CONVERGED, METHOD, MOONS
from lipcert.paper.heads_table import FREE_HEADS
from lipcert.paper.ledger import COUNTED, LedgerRow, Part, RecordedClaim
from lipcert.paper.moons_claims import (
    gloro_becomes_linear,
    gloro_is_smoother,
    reaches_every_point,
    resembles_gloro,
    retains_beyond,
)
from lipcert.paper.outcome import Outcome
from lipcert.paper.printed_measures import CLEAN, FAR, NEAR
from lipcert.paper.table_claims import TABLE_1, TABLE_2_CIFAR10, TABLE_2_CIFAR100
from lipcert.paper.two_moons import RELEASED
from lipcert.paper.verdict import Verdict, Word
from lipcert.recipes import read_recipe
from lipcert.report.published import published
from lipcert.report.recorded import RecordedTable
from lipcert.runs.measures import K_HF
from lipcert.tables.kinds import POINTS, Kind, Range

_SPREAD = max(found.cra_36[1] for found in published().seeds.values())


def against_own_loss(title: str, kind: Kind) -> Callable[[RecordedTable], Verdict]:
    """Compare CLL with the loss that a network comes with, by a column of a recorded table of runs.

    Rows of one network and loss are its seeds; the rows that the paper prints are left out.
    """

    def check(table: RecordedTable) -> Verdict:
        rows = [dict(zip(table.titles, cells, strict=True)) for cells in table.cells]
        mine = [row for row in rows if row["source"] != "paper" and row[title] != "–"]
        ours = [row for row in mine if row["method"] == "CLL"]
        pairs = {}
        for model in dict.fromkeys(row["model"] for row in mine):
            theirs = [row for row in mine if row["model"] == model and row["method"] != "CLL"]
            alike = [row for row in ours if row["model"] == model]
            if theirs and alike:
                pairs[f"{model} ({theirs[0]['method']})"] = _values(alike, title), _values(theirs, title)
        if not pairs:
            return Verdict(Word.NOT_RUN, "no network was trained with CLL and with its own loss")
        return compared(pairs, kind, "CLL less the other loss", point=1.0 if kind is POINTS else None)

    return check


def needs_no_growing_eps(table: RecordedTable) -> Verdict:
    """Check that CLL certifies no less with a fixed ε than with one that grows, mean ± half a distance."""
    rows = {row[0]: row for row in table.cells}
    column = table.titles.index("CRA 36/255")
    fixed, growing = (_around(rows[name][column]) for name in (_FIXED, f"{_FIXED}, ε ramp"))
    found = f"{POINTS.text(fixed.mean)} % with a fixed ε, {POINTS.text(growing.mean)} % with a growing one"
    return Verdict(Word.of(moved(fixed, growing) is not True), found)


_FIXED = "CLL, cpu budget"


def _around(cell: str) -> Range:
    """Return the values of two seeds whose mean ± half their distance was recorded.

    Example:
        >>> _around("46.0 ± 0.5").values
        (45.5, 46.5)
    """
    mean, half = (float(number) for number in cell.split(" ± "))
    return Range.of([mean - half, mean + half])


def _values(rows: Sequence[dict[str, str]], title: str) -> Range:
    return Range.of([float(row[title]) for row in rows])


def fewer_parameters(rows: Sequence[Outcome]) -> Verdict:
    """Check that 8C2F has fewer parameters than Sandwich, and Sandwich fewer than SLL-XL; needs no row."""
    counts = [_parameters(name) for name in ("tiny-8c2f-cll", "tiny-sandwich", "tiny-sll-xl")]
    shown = ", ".join(
        f"{name} {count:,}" for name, count in zip(("8C2F", "Sandwich", "SLL-XL"), counts, strict=True)
    )
    note = f"the order is judged; SLL-XL has {counts[-1] / 1e9:.2f} billion here"
    return Verdict(Word.of(counts == sorted(set(counts))), f"{shown}: {note}")


def _parameters(recipe: str) -> int:
    """Count the parameters of a network for Tiny-ImageNet, without memory for them."""
    model = read_recipe(recipe).model
    with torch.device("meta"):
        made = MODELS.create(model.name, num_classes=200, input_shape=(3, 64, 64), **model.arguments)
    return sum(parameter.numel() for parameter in made.parameters())


def as_released(check: Check) -> Check:
    """Judge CLL by the rows with the released settings alone, and GloRo by its own."""

    def checked(rows: Sequence[Outcome]) -> Verdict:
        return check([row for row in rows if row.series == RELEASED or row.run.loss == "gloro"])

    return checked


_RIVALS = "Tables 1 and 2: CLL on the networks of others"
_FRONT = "The front of clean and certified accuracy"
_FIGURE_4 = "Figure 4: two moons, CLL against GloRo"
_FORMULAS = "Formulas"
_NINE = ("table-seeds",)  # GloRo with nine seeds

PARTS: tuple[Part, ...] = (
    Part(
        "Abstract, Section 4.2",
        "table-rivals",
        _RIVALS,
        recorded=(
            RecordedClaim(
                "4C3F on CIFAR-10: CLL certifies more than GloRo at 36/255",
                "61.4 against 59.6 %",
                "images-12",
                "width 1",
                against_own_loss("CRA 36/255", POINTS),
            ),
            RecordedClaim(
                "4C3F on CIFAR-10: CLL has no less clean accuracy than GloRo",
                "77.6 against 77.4 %",
                "images-12",
                "width 1",
                against_own_loss("clean", POINTS),
            ),
            RecordedClaim(
                "4C3F on CIFAR-10: CLL's bound is tighter than GloRo's",
                "80 against 71 %",
                "images-12",
                "width 1",
                against_own_loss("tightness", POINTS),
            ),
        ),
        untrained=(
            Claim(
                "8C2F has fewer parameters than Sandwich and SLL-XL on Tiny-ImageNet",
                "4.3 M, 39 M and 1.1 billion",
                fewer_parameters,
            ),
        ),
        checked_by=COUNTED,
    ),
    Part("Abstract, trade-off", "pareto", _FRONT),
    Part("Table 1", "table-tiny-imagenet", _RIVALS, claims=TABLE_1),
    Part("Table 2, CIFAR-10", "table-cifar10", _RIVALS, claims=TABLE_2_CIFAR10),
    Part("Table 2, CIFAR-100", "table-cifar100", _RIVALS, claims=TABLE_2_CIFAR100),
    Part("Sections 3 and A", heading=_FORMULAS, untrained=METHOD),
    Part("Figure 1", "moons-margin", "Figure 1: a small and a large constant"),
    Part("Figure 2", "moons-teaser", "Figure 2: the teaser"),
    Part(
        "Figure 3",
        "fig-calibration",
        "Figure 3: the calibrated logistic",
        claims=(CALIBRATED,),
    ),
    # With nine seeds instead of one.
    Part(
        "Figure 4",
        "moons",
        _FIGURE_4,
        _NINE,
        untrained=(MOONS,),
        claims=(
            Claim(
                "for too large margins GloRo degenerates to a near linear boundary",
                "lower right panel",
                gloro_becomes_linear,
            ),
        ),
    ),
    # GloRo was released as it is printed.
    Part(
        "Figure 4, as released",
        "moons-released",
        _FIGURE_4,
        claims=(
            Claim(
                "as released, CLL certifies every training point at the true margin",
                "100 %",
                as_released(reaches_every_point),
            ),
            Claim(
                "as released, CLL retains more certified accuracy than GloRo beyond the true margin",
                "at 2ε = 0.4 and 0.5",
                as_released(retains_beyond),
                also=_NINE,
            ),
            Claim(
                "GloRo's K_hf is consistently smaller than CLL's as released",
                "at every margin",
                as_released(gloro_is_smoother),
                also=_NINE,
            ),
        ),
    ),
    Part("Figure 5, left", "fig-slack", "Figure 5, left: slack"),
    Part("Figure 5, right", "fig-epsilon", "Figure 5, right: CLL and GloRo at growing margins"),
    Part("Section B, power iteration", heading=_FORMULAS, untrained=(CONVERGED,)),
    Part("Section B, two moons", "moons-annealing", "Section B: an annealed slack"),
    Part("Section B, last layers", "table-heads", "Section B: last layers under CLL", claims=FREE_HEADS),
    Part(
        "Section B, schedules",
        heading=_FORMULAS,
        recorded=(
            RecordedClaim(
                "CLL needs no growing ε to perform best",
                "fixed in Table B4, logarithmic for GloRo",
                "cll-and-gloro",
                "cpu budget",
                needs_no_growing_eps,
            ),
        ),
    ),
    Part("Table B1", settings="two moons: network, epochs, rate, p, λ"),
    Part("Table B2", settings="the layers of 4C3F, 6C2F and 8C2F"),
    Part(
        "Table B3",
        "table-soc-gamma",
        "Table B3: the weight of SOC's certificates",
        claims=(
            Claim(
                "SOC on Tiny-ImageNet certifies most with γ = 0.3",
                "21.5 %, others 21.1 to 21.4 %",
                best_at(NEAR, 0.3, "SOC"),
            ),
        ),
    ),
    Part("Table B4", settings="hyperparameters of all trained models"),
    Part("Section C", heading=_FORMULAS, untrained=(CERTIFICATION,)),
    Part("Figure D1", "fig-convergence", "Figure D1: convergence"),
    Part(
        "Figure D2",
        "moons-slack",
        "Figure D2: slack on two moons",
        claims=(
            Claim(
                "with p = 0.125 (printed 0.25) CLL is very similar to GloRo",
                "panel at p = 0.125, and Figure 4 at the true margin",
                resembles_gloro(0.125),
                also=_NINE,
            ),
        ),
    ),
    Part("Figure D3", "moons-soc", "Figure D3: orthogonal networks on two moons"),
    Part("Figure D4a", "fig-lambda", "Figure D4a: the weight of the penalty"),
    Part("Figure D4b", "fig-offset", "Figure D4b: the margin offset"),
    Part("Figure D4c", "fig-temperature", "Figure D4c: the temperature of GloRo"),
    Part(
        "Table D1",
        "table-epsilon-slack",
        "Table D1: margin and slack together",
        claims=(
            Claim(
                "at every slack a larger ε trades clean accuracy for certified accuracy at 108/255",
                "p = 0.005: clean 45.4 → 35.1 %, CRA 3.4 → 13.2 %",
                trades_everywhere(CLEAN, FAR),
            ),
            Claim(
                "at every ε more slack trades clean accuracy for certified accuracy at 108/255",
                "ε = 0.5: clean 40.7 → 36.2 %, CRA 9.4 → 12.8 %",
                by_slack(trades_everywhere(CLEAN, FAR)),
            ),
            Claim(
                "a larger ε with less slack is better in clean and certified accuracy, and has a larger K_hf",
                "ε = 0.75, p = 0.0025 less ε = 0.5, p = 0.025: clean +0.4, CRA +0.3 and 0.0, K_hf +0.6",
                beats((CLEAN, NEAR, FAR, K_HF), (series_at(0.0025), 0.75), (series_at(0.025), 0.5)),
            ),
        ),
    ),
    # What was run under this name is Figure 4 with nine seeds.
    Part(
        "Tables D2, D3 and D4",
        "table-seeds",
        evidence=(),
        claims=(
            Claim(
                "the standard deviation of CRA at 36/255 over nine seeds is small",
                f"at most {POINTS.text(_SPREAD)} points",
                seeds_agree(NEAR, points=_SPREAD),
            ),
        ),
    ),
)


def ledger(results: Path) -> list[LedgerRow]:
    """Return a row for every claim, table and figure, judged by the files in a directory of results."""
    return [row for part in PARTS for row in part.rows(results)]
