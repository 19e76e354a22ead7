"""The curves of a run: accuracy against radius, and the metrics of every epoch."""

from __future__ import annotations

from functools import partial
from html import escape

from lipcert.explore import markup
from lipcert.report.chart_files import draw_chart
from lipcert.report.charts import Chart, Line, radius_chart, training_charts
from lipcert.report.method_names import method_of
from lipcert.report.palette import run_looks
from lipcert.report.report_inputs import Finished


def charts_of(run: Finished) -> list[Chart]:
    """Return the charts for which the run has data."""
    charts = []
    if run.run.certified.is_file() and run.run.certificate.is_file():
        charts.append(radius_chart([run]))
    elif run.run.certificate.is_file():
        charts.append(_certified_chart(run))
    return [*charts, *training_charts([run])]


def _certified_chart(run: Finished) -> Chart:
    """Draw from the certificate alone, at the radii that it names."""
    splits = run.certificate.splits
    looks = run_looks([method_of(run.recipe)] * len(splits))
    lines = [
        Line(name, [row.radius for row in split.rows], [100 * row.value for row in split.rows], look)
        for (name, split), look in zip(splits.items(), looks, strict=True)
    ]
    return Chart("radius", "Certified accuracy against radius", "L2 radius", "certified [%]", lines)


def curves_html(run: Finished | None) -> str:
    """Return every chart with its title, or a sentence where there is nothing to draw."""
    if run is None:
        return markup.message("A model file alone has no curves; give a run directory.")
    drawn = "".join(
        f'<figure class="chart"><figcaption>{escape(chart.title)}</figcaption>'
        f"{markup.drawing(partial(draw_chart, chart=chart), chart.title)}</figure>"
        for chart in charts_of(run)
    )
    missing = (
        "" if run.run.metrics_file.is_file() else markup.message("No metrics.jsonl: no curves of training.")
    )
    return f'<div class="charts">{drawn}</div>{missing}'
