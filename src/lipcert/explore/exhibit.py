"""The model of the page, proved once, with the data of its directory and this machine."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from lipcert.certificates.certifier import certifier
from lipcert.certificates.loading import load
from lipcert.certificates.predictions import image_form, sharpness
from lipcert.certificates.statement import Statement, find_certificate
from lipcert.data import Dataset
from lipcert.data.base import shown_split
from lipcert.data.image_files import Form
from lipcert.errors import InputError, LipcertError
from lipcert.explore.image_view import Judge
from lipcert.models import ModelCard
from lipcert.models.model_files import model_file, read_card
from lipcert.models.model_names import is_path, model_place
from lipcert.progress import proving
from lipcert.recipes import read_run_recipe
from lipcert.report.report_inputs import Finished
from lipcert.runs import Run

# The default MODEL.
DEFAULT = "cifar10-4c3f-cll"

# The number of images to pick from.
_EXAMPLES = 16


@dataclass(frozen=True)
class Exhibit:
    """A model; `judge` is None if it takes no images, `run` is None for a bare model file."""

    source: str
    judge: Judge | None
    examples: Dataset | None
    remark: str  # what is missing, and why
    run: Finished | None

    @classmethod
    def open(cls, source: str) -> Exhibit:
        """Load and prove a model; raise `InputError` if there is no such model."""
        card = read_card(model_file(source))
        run = _run_of(source)
        statement = find_certificate(model_place(source)) if run is None else run.found_certificate
        try:
            form = image_form(source, card, statement)
        except InputError as error:
            return cls(source, None, None, f"{error}.", run)
        examples, remark = _examples(run, card)
        return cls(source, _judge(source, card, form, statement), examples, remark, run)


def _judge(source: str, card: ModelCard, form: Form, statement: Statement | None) -> Judge:
    model = load(source, statement)
    with proving():
        prover = certifier(model, card.input_shape)
    names = card.classes or tuple(str(i) for i in range(prover.proved.classes))
    return Judge(model, prover, form, names, sharpness(statement))


def _run_of(source: str) -> Finished | None:
    """Return the run of a directory with a recipe (a run, a published or a pretrained model), else None."""
    place = model_place(source)
    run = Run(place)
    if not run.recipe.is_file():
        return None
    return Finished(place, read_run_recipe(run), place.resolve().name if is_path(source) else source)


def _examples(run: Finished | None, card: ModelCard) -> tuple[Dataset | None, str]:
    """Return images of the split that is shown, if they are on this machine; else the reason why not."""
    if run is None:
        return None, "A model file names no data to pick images from; upload some."
    try:
        data = run.recipe.make_data(shown_split(run.recipe.certify.splits))
    except LipcertError as error:
        return None, f"No images to pick from ({error}); upload some."
    if data.input_shape != card.input_shape or data.x.dtype != torch.uint8:
        return None, "The data are not images of the model's size; upload some."
    # The order of the data does not matter: the random choice is always the same.
    chosen = torch.randperm(len(data), generator=torch.Generator().manual_seed(0))[:_EXAMPLES]
    return data.subset(chosen), ""
