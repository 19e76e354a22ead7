"""The ledger: a row for every table and figure of the paper, judged by what is in results/."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from lipcert.paper import REPRODUCTIONS
from lipcert.paper.ledger import NO_TRAINING, SETTINGS, LedgerRow, anchor
from lipcert.paper.parts import PARTS, against_own_loss, fewer_parameters, ledger, needs_no_growing_eps
from lipcert.paper.results import Results
from lipcert.paper.verdict import TRUE_BY_DEFINITION, Verdict, Word
from lipcert.report.recorded import RecordedTable
from lipcert.tables.kinds import Kind
from tests.outcomes import outcome

RESULTS = Path(__file__).parents[2] / "results"

# Read off the paper by hand. Tables of the supplement: B1 two moons, B2 architectures, B3 SOC's γ, B4
# hyperparameters, D1 ε and p, D2 to D4 seeds on CIFAR-10, CIFAR-100 and Tiny-ImageNet.
FIGURES = ["1", "2", "3", "4", "4, as released", "5, left", "5, right", "D1", "D2", "D3", "D4a", "D4b", "D4c"]
TABLES = ["1", "2, CIFAR-10", "2, CIFAR-100", "B1", "B2", "B3", "B4", "D1"]
SEVERAL = ["Abstract, Section 4.2", "Abstract, trade-off", "Tables D2, D3 and D4"]
TEXT = ["Sections 3 and A", "Section C"]
TEXT += [f"Section B, {what}" for what in ("power iteration", "two moons", "last layers", "schedules")]

# Statements of the text, from the abstract to the end of the supplement, and the place of their row.
STATEMENTS = {
    "improves the certified accuracy at 36/255 of every method": SEVERAL[0],
    "maintains or improves the clean accuracy": SEVERAL[0],
    "8C2F has fewer parameters": SEVERAL[0],
    "CLL certifies more than the state of the art at 36/255": "Table 1",
    "Tiny-ImageNet: CLL certifies more at 108/255": "Table 1",
    "Tiny-ImageNet: CLL maintains or improves clean accuracy": "Table 1",
    "certifies more at 36/255 than SLL-XL": "Table 1",
    "certifies more at 36/255 than LBDN": "Table 1",
    "K_hf is larger, about twice": "Table 1",
    "SOC with 10 layers is slightly better": "Table 1",
    "CLL on SLL-XL provides no improvements": "Table 2, CIFAR-10",
    "CIFAR-10: CLL improves clean accuracy": "Table 2, CIFAR-10",
    "CIFAR-10: CLL certifies more at 108/255": "Table 2, CIFAR-10",
    "tightness gains most on soft-constrained": "Table 2, CIFAR-10",
    "GloRo trained anew": "Table 2, CIFAR-10",
    "CIFAR-100: CLL certifies more at 108/255": "Table 2, CIFAR-100",
    "CIFAR-100: CLL improves clean accuracy": "Table 2, CIFAR-100",
    "K_hf is highly similar": "Table 2, CIFAR-100",
    "probability ½ on the margin": "Sections 3 and A",
    "K_hf falls as the slack": "Sections 3 and A",
    "for two classes Definition 2": "Sections 3 and A",
    "generalises the loss of AOL": "Sections 3 and A",
    "true margin of two moons is exactly 0.3": "Figure 4",
    "error between iterations is below 1e-9": "Section B, power iteration",
    "converges faster when the slack is annealed": "Section B, two moons",
    "free last layer has a slight edge": "Section B, last layers",
    "needs no growing ε": "Section B, schedules",
    "its lead over the runner-up": "Section C",
    "K_f rises exponentially as λ falls": "Figure D4a",
    "δ = 0.2 certifies more than the canonical": "Figure D4b",
    "at every ε more slack trades": "Table D1",
}


@pytest.fixture(scope="module")
def rows() -> list[LedgerRow]:
    return ledger(RESULTS)


def test_every_figure_and_table_has_a_row(rows: list[LedgerRow]) -> None:
    expected = [*(f"Figure {n}" for n in FIGURES), *(f"Table {n}" for n in TABLES), *SEVERAL, *TEXT]
    assert {row.place for row in rows} == set(expected)
    assert len(PARTS) == len(expected)


def test_every_statement_of_the_text_has_a_row(rows: list[LedgerRow]) -> None:
    missing = [
        text
        for text, place in STATEMENTS.items()
        if not any(text in r.claim and r.place == place for r in rows)
    ]
    assert missing == []


def test_every_row_has_one_of_the_words_and_says_with_what(rows: list[LedgerRow]) -> None:
    for row in rows:
        assert row.said in {*Word, TRUE_BY_DEFINITION, SETTINGS}
        assert row.command
        if isinstance(row.finding, Verdict) and row.finding.word is not Word.NOT_RUN:
            if row.setting == NO_TRAINING:
                continue
            assert row.setting.count("seed") >= 1, row
            assert "width" in row.setting, row
            assert "budget" in row.setting, row


def test_every_claim_of_a_reproduction_of_the_paper_is_in_the_ledger(rows: list[LedgerRow]) -> None:
    listed = {row.claim for row in rows}
    others = {"pareto"}  # a figure that the paper does not have
    for name in REPRODUCTIONS:
        for claim in REPRODUCTIONS.create(name).claims:
            assert name in others or claim.text in listed, (name, claim.text)


def test_a_row_of_4c3f_is_computed_from_the_recorded_runs(rows: list[LedgerRow]) -> None:
    found = next(
        row for row in rows if row.claim.startswith("4C3F on CIFAR-10: CLL certifies more than GloRo")
    )
    table = RecordedTable.read(RESULTS / "images-12.json")
    assert table is not None
    cra, source = (table.titles.index(title) for title in ("CRA 36/255", "source"))

    def changed(method: str, is_printed: bool) -> RecordedTable:
        return replace(
            table,
            cells=[
                [*row[:cra], "99.0", *row[cra + 1 :]]
                if row[0] == method and (row[source] == "paper") == is_printed
                else row
                for row in table.cells
            ],
        )

    check = against_own_loss("CRA 36/255", Kind("points", "{:.1f}".format))
    assert found.finding != check(changed("CLL", is_printed=False))
    assert check(changed("CLL", is_printed=False)).word is Word.HOLDS
    assert check(changed("CLL", is_printed=True)) == check(table)  # the paper's own rows decide nothing
    assert check(replace(table, cells=[])).word is Word.NOT_RUN


def test_the_headline_is_judged_by_the_table_of_rivals(rows: list[LedgerRow], tmp_path: Path) -> None:
    for path in RESULTS.glob("*.json"):
        shutil.copy(path, tmp_path)
    rivals = REPRODUCTIONS.create("table-rivals")
    names = [variant.recipe for variant, _ in rivals.trials(Path(), "cpu")]
    outcomes = [
        outcome(recipe=name, seed=seed, cra=0.5 if name.endswith("cll") else 0.4)
        for name in dict.fromkeys(names)
        for seed in (1, 2)
    ]
    Results("table-rivals", "lipcert reproduce table-rivals --budget cpu", (4,), (1, 2), "", outcomes).write(
        tmp_path / "table-rivals.json"
    )
    before, after = ([r for r in each if r.place == SEVERAL[0]] for each in (rows, ledger(tmp_path)))
    assert [row.claim for row in after] == [row.claim for row in before]
    headline = after[0]
    assert before[0].finding != after[0].finding
    assert headline.finding is not None
    assert headline.finding.said == Word.HOLDS
    assert "CPL +10.0" in headline.here
    assert "lipconv width 0.125, 5 of 20 layers" in headline.setting
    assert "cpl width 0.133, 4 of 70 convolutions" in headline.setting


def test_as_released_judges_cll_by_the_released_rows_alone(rows: list[LedgerRow]) -> None:
    found = {row.claim: row for row in rows if row.place == "Figure 4, as released"}
    beyond = found["as released, CLL retains more certified accuracy than GloRo beyond the true margin"]
    assert beyond.said == Word.FAILS
    assert "at 2ε = 0.4 −1.5, at 2ε = 0.5 −9.3" in beyond.here
    assert "seed 1; table-seeds: " in beyond.setting


def test_parameters_are_counted_without_training() -> None:
    verdict = fewer_parameters(())
    assert verdict.word is Word.HOLDS
    assert "4,342,984" in verdict.found
    assert "0.95 billion" in verdict.found


def test_what_has_no_results_is_not_run_and_names_its_hours(tmp_path: Path) -> None:
    for name in ("gpu-hours", "images-12", "cll-and-gloro"):
        shutil.copy(RESULTS / f"{name}.json", tmp_path)
    rows = ledger(tmp_path)
    for row in rows:
        is_4c3f = row.place == SEVERAL[0] and row.claim.startswith("4C3F")
        recorded = is_4c3f or row.place == "Section B, schedules" or row.setting == NO_TRAINING
        trained = not recorded and row.said != SETTINGS
        assert (row.said == Word.NOT_RUN) == trained, row
    hours = RecordedTable.read(RESULTS / "gpu-hours.json")
    assert hours is not None
    by_name = {cells[0]: float(cells[-1]) for cells in hours.cells}
    slack = next(row for row in rows if row.place == "Figure 5, left")
    assert f"a GPU job of about {by_name['fig-slack']:,.0f} hours" in slack.here
    moons = next(row for row in rows if row.claim.startswith("GloRo already loses points"))
    assert moons.here == "command ready, not run: minutes of a CPU"
    heads = next(row for row in rows if row.place == "Section B, last layers")
    assert heads.here.startswith("command ready, not run: a GPU job")


def test_the_hours_are_of_every_reproduction_on_images() -> None:
    hours = RecordedTable.read(RESULTS / "gpu-hours.json")
    assert hours is not None
    on_images = {part.reproduction for part in PARTS if part.reproduction.startswith(("fig-", "table-"))}
    # Figure 3 is drawn from a formula; the rivals' full rows are those of Table 2 and one network more.
    # Heads are two of these.
    assert on_images - {"fig-calibration", "table-rivals", "table-heads"} <= {
        cells[0] for cells in hours.cells
    }


def test_parameters_are_counted_on_any_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """SLL-XL has 3.8 GB of weights; nothing is allocated to count them."""
    monkeypatch.setattr("lipcert.models.memory.available_memory", lambda: 10**9)
    assert fewer_parameters(()).word is Word.HOLDS


def test_a_growing_eps_is_compared_with_a_fixed_one() -> None:
    table = RecordedTable.read(RESULTS / "cll-and-gloro.json")
    assert table is not None
    assert needs_no_growing_eps(table).word is Word.FAILS
    level = [[*row[:2], "46.3 ± 0.2", *row[3:]] for row in table.cells]
    assert needs_no_growing_eps(replace(table, cells=level)).word is Word.HOLDS


def test_sections_exist_for_all_details(rows: list[LedgerRow]) -> None:
    page = (RESULTS.parent / "docs" / "reproduction-tables.md").read_text()
    headings = {line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")}
    assert {row.heading for row in rows if row.heading} <= headings
    assert anchor("Figure 5, right: CLL and GloRo at growing margins").endswith("gloro-at-growing-margins")
