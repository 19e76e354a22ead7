"""The report: what it writes, what it refuses, and the page in a real Chromium."""

from __future__ import annotations

import csv
import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lipcert.data.examples import write_cifar10
from lipcert.errors import InputError
from lipcert.recipes import execute, read_recipe
from lipcert.report.charts import radius_chart
from lipcert.report.layer_table import layer_table
from lipcert.report.report_inputs import Finished, find_sources, names_of
from lipcert.report.report_page import write_report
from lipcert.sweeps import complete, lay_out
from lipcert.sweeps.findings import SweepRow, write_rows
from lipcert.tables.kinds import from_above, from_below
from tests.browser import chromium_page, overheard
from tests.sweeps.here import CrewHere

TITLES = layer_table([], "").titles

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two image runs, a point run and a sweep of points."""
    root = tmp_path_factory.mktemp("report")
    images = write_cifar10(root / "data")["root"]
    few = ["train.batch_size=16", f"data.root={images}", "train.validate_every=1"]
    for loss in ("cll", "gloro"):
        execute(read_recipe(f"cifar10-4c3f-{loss}", "smoke", [*few, "train.epochs=2"]), root / loss)
    sweep = lay_out("moons-cll", "smoke", [], ["loss.eps=0.1,0.15,0.2", "seed=1,2"], root / "sweep")
    sweep.write("lipcert sweep moons-cll")
    complete([trial for trial, _ in sweep.trials], CrewHere())
    return root


def test_tables_and_figures_are_files_too(place: Path, tmp_path: Path) -> None:
    written = write_report([place / "cll", place / "gloro"], tmp_path / "report.html")
    assert written.paths[0] == tmp_path / "report.html"
    names = {path.name for path in written.paths}
    assert {"comparison.md", "comparison.csv", "comparison.tex", "radius.pdf", "radius.svg"} <= names
    assert {"cll-layers.md", "cll-layers.csv", "cll-layers.tex", "gloro-certificate.tex"} <= names
    with (tmp_path / "report" / "comparison.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["source"] for row in rows] == ["cll", "paper", "gloro", "paper"]
    page = (tmp_path / "report.html").read_text()
    before_the_library = page.partition("<script>")[0]
    assert "http:" not in before_the_library
    assert "https:" not in before_the_library
    certificate = json.loads((place / "cll" / "certificate.json").read_text())
    assert certificate["model_sha256"] in page
    assert "most robust" in page.lower()


def test_a_sweep_has_a_summary_and_curves_with_bars(place: Path, tmp_path: Path) -> None:
    written = write_report([place / "sweep"], tmp_path / "out")
    names = {path.name for path in written.paths}
    assert {"sweep-summary.csv", "sweep-loss-eps-accuracy.pdf", "sweep-loss-eps-constant.svg"} <= names
    page = (tmp_path / "out.html").read_text()
    assert "6 of 6 trainings are finished" in page
    charts = json.loads(page.split('id="charts">')[1].split("</script>")[0])
    accuracy = next(chart for chart in charts if chart["name"] == "sweep-loss-eps-accuracy")
    assert accuracy["lines"][0]["x"] == [0.1, 0.15, 0.2]
    assert any(value > 0 for line in accuracy["lines"] for value in line["spread"])


def test_sweeps_of_one_name_do_not_write_over_each_other(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "sweep", tmp_path / "again" / "sweep")
    written = write_report([place / "sweep", tmp_path / "again" / "sweep"], tmp_path / "out")
    assert len(set(written.paths)) == len(written.paths)
    summaries = [path.name for path in written.paths if path.name.endswith("-summary.csv")]
    assert summaries == [f"{place.name}-sweep-summary.csv", "again-sweep-summary.csv"]
    page = (tmp_path / "out.html").read_text()
    for name in (f"{place.name}-sweep", "again-sweep"):
        assert page.count(f"<h2>{name}: sweep of moons-cll</h2>") == 1


def test_every_layer_has_three_numbers_and_the_head_makes_k_f_of_them(place: Path, tmp_path: Path) -> None:
    write_report([place / "cll"], tmp_path / "report")
    with (tmp_path / "report" / "cll-layers.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == TITLES
    certificate = json.loads((place / "cll" / "certificate.json").read_text())
    assert [row["layer"] for row in rows[:-1]] == [layer["path"] for layer in certificate["layers"]]
    for row in rows:
        assert float(row["at least"]) <= float(row["at most (proved)"]) <= 1.01 * float(row["at least"])
        assert float(row["estimate"]) == pytest.approx(float(row["at least"]), rel=1e-5)
    product = math.prod(float(row["at most (proved)"]) for row in rows)
    assert rows[-1]["layer"].endswith("(head)")
    assert product == pytest.approx(certificate["k_f"], rel=1e-4)
    head = rows[-1]["at most (proved)"]
    page = (tmp_path / "report.html").read_text()
    features, whole = from_above(certificate["k_features"]), from_above(certificate["k_f"])
    assert f"K_f ≤ {features} × {head} = {whole}, proved" in page
    witnessed = json.loads((place / "cll" / "tightness.json").read_text())["lower"]
    assert f"Two points witness K_f ≥ {from_below(witnessed)}" in page


def test_a_run_of_a_sweep_that_is_named_as_well_counts_once(place: Path, tmp_path: Path) -> None:
    one = place / "sweep" / "loss.eps=0.1,seed=2"
    sources = find_sources([place / "sweep", one])
    assert [run.run.path for run in sources.runs] == [one]
    assert len(sources.everything) == 6
    assert sources.everything[0] == sources.runs[0]
    assert [len(one.runs) for one in sources.sweeps[0].summary] == [2, 2, 2]  # the sweep has it too


def test_names_are_made_of_as_much_of_a_path_as_it_takes() -> None:
    assert names_of([]) == []
    assert names_of([Path("/x/run"), Path("/y/x/run")]) == ["x-run", "y-x-run"]
    with pytest.raises(InputError, match="/a/run and /a/run: cannot be told apart"):
        names_of([Path("/a/run"), Path("/b/run"), Path("/b/run"), Path("/a/run")])
    with pytest.raises(InputError, match="/a-b/c and /a/b-c: cannot be told apart"):
        names_of([Path("/a-b/c"), Path("/a/b-c"), Path("/q/c")])  # two files would have one name


def test_an_interrupted_sweep_names_what_is_missing_and_why(place: Path, tmp_path: Path) -> None:
    sweep = tmp_path / "sweep"
    shutil.copytree(place / "sweep", sweep)
    runs = [f"loss.eps={eps},seed={seed}" for eps in (0.1, 0.15, 0.2) for seed in (1, 2)]
    unbegun, half, failed, early = runs[1:5]
    for name in (unbegun, early):
        shutil.rmtree(sweep / name)
    for name in (half, failed):
        (sweep / name / "certificate.json").unlink()
    said = {failed: "the loss became nan", early: "no data", runs[0]: "failed at first"}
    rows = [SweepRow({}, Path(name), complaint=why) for name, why in said.items()]
    write_rows(rows, sweep / "sweep.csv")
    written = write_report([sweep], tmp_path / "out")
    assert find_sources([sweep]).sweeps[0].unfinished == {
        half: "not finished, 3 of 3 epochs",
        failed: "the loss became nan",
        unbegun: "not begun",
        early: "no data",
    }
    page = (tmp_path / "out.html").read_text()
    assert "2 of 6 trainings are finished" in page
    assert all(name in page.partition("<script>")[0] for name in (unbegun, half, failed, early))
    assert "sweep-unfinished.csv" in {path.name for path in written.paths}
    assert [str(table.title) for table in written.tables] == ["sweep: 2 of 6 trainings are finished", ""]
    assert len(written.tables[1].rows) == 4
    (sweep / "sweep.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"sweep\.csv: cannot be read as the table"):
        write_report([sweep], tmp_path / "out")


def test_what_is_not_this_runs_result_is_labelled(place: Path, tmp_path: Path) -> None:
    write_report([place / "sweep" / "loss.eps=0.1,seed=1"], tmp_path / "moons")
    page = (tmp_path / "moons.html").read_text()
    assert "The recipe's claim (the paper's figure, not this run's result): 100 %" in page
    assert "Accuracies in percent, on the val split, with proved bounds" in page


def test_radii_without_end_are_drawn(place: Path) -> None:
    sure = Finished(place / "cll", read_recipe(str(place / "cll" / "recipe.yaml")), "constant")
    sure.samples.prediction.copy_(sure.samples.label)
    sure.samples.radius.fill_(math.inf)
    chart = radius_chart([sure])
    assert set(chart.lines[0].y) == {100.0}
    assert all(math.isfinite(x) for x in chart.lines[0].x)


def test_what_cannot_be_reported_is_named(place: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"

    def refused(*paths: Path) -> str:
        with pytest.raises(InputError) as error:
            write_report(paths, out)
        assert not out.exists()
        return str(error.value)

    assert "no such directory" in refused(tmp_path / "nowhere")
    assert "neither a run" in refused(tmp_path)
    half = tmp_path / "half"
    shutil.copytree(place / "cll", half)
    (half / "certificate.json").unlink()
    assert "is the run finished?" in refused(half)
    (half / "certificate.json").write_text('{"form')
    assert "not JSON" in refused(half)
    (half / "certificate.json").write_text("{}")
    assert "half/certificate.json: not a lipcert certificate" in refused(half)
    found = json.loads((place / "cll" / "certificate.json").read_text())
    del found["splits"]["test"]["clean"]
    (half / "certificate.json").write_text(json.dumps(found))
    assert "half/certificate.json: not a lipcert certificate (splits.test.clean: missing)" in refused(half)
    (half / "certificate.json").write_text(json.dumps({**found, "splits": {}}))
    assert "half/certificate.json: not a lipcert certificate (splits: " in refused(half)
    shutil.copy(place / "cll" / "certificate.json", half)
    (half / "tightness.json").write_text('{"lower": ')
    assert "half/tightness.json: cut short" in refused(half)
    shutil.copy(place / "cll" / "tightness.json", half)
    samples = (place / "cll" / "certified.npz").read_bytes()
    for kept in (0, 100, len(samples) // 2):
        (half / "certified.npz").write_bytes(samples[:kept])
        assert "half/certified.npz: c" in refused(half)
    assert "one table takes one data set" in refused(place / "cll", place / "sweep")
    assert "named twice" in refused(place / "cll", place / "cll")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "sweep.json").write_text("{")
    assert "cannot be read as a sweep" in refused(broken)


@pytest.mark.parametrize("name", ["page.pdf", "page.htm", "page.v2"])
def test_a_page_is_html(name: str, place: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"--output .*{name}: expected a name that ends in \.html"):
        write_report([place / "cll"], tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def browser_page() -> Iterator[Page]:
    with chromium_page() as page:
        yield page


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_works_in_a_browser(width: int, browser_page: Page, place: Path, tmp_path: Path) -> None:
    page = browser_page
    complaints, asked = overheard(page)
    written = write_report([place / "cll", place / "gloro"], tmp_path / "report.html")
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(written.paths[0].as_uri())
    page.wait_for_selector(".chart .plot-container")
    assert not complaints
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []

    # No part of the page is wider than the window; wide tables scroll in their own box.
    assert page.evaluate("document.documentElement.scrollWidth") <= width

    heading = page.locator("table.sortable th button", has_text="clean").first
    rows = "[...document.querySelector('table.sortable').tBodies[0].rows]"
    titles = page.locator("table.sortable").first.locator("th").all_text_contents()
    column = f"{rows}.map(row => parseFloat(row.cells[{titles.index('clean')}].textContent))"
    heading.click()
    falling = page.evaluate(column)
    heading.click()
    assert falling == sorted(falling, reverse=True)
    assert page.evaluate(column) == sorted(falling)

    chart = page.locator("#radius .nsewdrag").first
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None
    for share in (0.1, 0.3, 0.5):  # somewhere along the curves
        page.mouse.move(box["x"] + share * box["width"], box["y"] + 0.97 * box["height"], steps=5)
        page.wait_for_timeout(200)
        if page.locator("#radius .hovertext").count():
            break
    assert page.locator("#radius .hovertext").count() > 0

    page.locator("details > summary").first.click()
    assert page.locator("details figure img").first.is_visible()
    layers = page.locator("details table.sortable").first
    assert layers.locator("th").all_text_contents() == TITLES
    assert "(head)" in layers.locator("tbody tr").last.inner_text()
    assert layers.is_visible()
    assert page.locator("tr.paper").count() == 2
    assert not complaints
