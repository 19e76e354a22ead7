"""The page of a published model: a model card with the metadata that the Hugging Face Hub reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lipcert.certificates.statement import Accuracy, Statement
from lipcert.data.base import Split
from lipcert.models.downloads import PREFIX
from lipcert.report.model_card import model_card
from lipcert.runs import Run
from lipcert.tables.kinds import RADIUS

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

_IMAGE = 3  # dimensions


def hub_page(run: Run, name: str, address: str, license: str | None, code: list[str]) -> str:
    """Return the text of README.md; `address` is what a user gives to `lipcert.load`."""
    from huggingface_hub import ModelCardData

    statement = run.statement()
    task = _task(statement)
    data = ModelCardData(
        model_name=name,
        library_name="lipcert",
        license=license,
        pipeline_tag=task,
        tags=["certified-robustness", "adversarial-robustness", "lipschitz", "safetensors"],
        eval_results=list(_results(statement, task)),
    )
    page = model_card(run.path, name, address)
    return f"---\n{data.to_yaml()}\n---\n\n{page}\n{_use(address, code)}"


def _task(statement: Statement) -> str:
    """Return the hub's name for what the model does."""
    return "image-classification" if len(statement.model.input_shape) == _IMAGE else "tabular-classification"


def _results(statement: Statement, task: str) -> Iterator[EvalResult]:
    """Yield clean and certified accuracy of every split, as fractions."""
    for split, found in statement.splits.items():
        yield _result(statement, task, split, found.clean, "accuracy", "clean accuracy")
        for row in found.certified:
            told = f"certified robust accuracy, L2 radius {RADIUS.text(row.radius)}"
            yield _result(statement, task, split, row, "certified-robust-accuracy", told)


def _result(
    statement: Statement, task: str, split: Split, row: Accuracy, metric: str, told: str
) -> EvalResult:
    from huggingface_hub import EvalResult

    return EvalResult(
        task_type=task,
        dataset_type=statement.data.name,
        dataset_name=statement.data.name,
        dataset_split=split,
        metric_type=metric,
        metric_name=told,
        metric_value=row.value,
        metric_args={"norm": "L2", "radius": row.radius} if row.radius else None,
    )


def _use(address: str, code: list[str]) -> str:
    """Show how to load the model and to prove its certificate again."""
    extra = "lipcert[hub]" if address.startswith(PREFIX) else "lipcert"
    options = "".join(f" --import {name}" for name in code)
    trust = (
        f"The model needs code of its author: {', '.join(code)}. Read it, and name it with `--import` or "
        "`lipcert.extensions.load` if you trust it; nothing executes it otherwise.\n\n"
        if code
        else ""
    )
    where = "" if address.startswith(PREFIX) else "In this folder:\n\n"
    return f"""## Use
{trust}{where}```sh
pip install '{extra}'
lipcert verify {address}{options}
```

```python
import lipcert

model = lipcert.load("{address}")
```
"""
