"""The tab with the images: pick or upload one, choose ε, see the certificate and the attack."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np

from lipcert.data import Dataset
from lipcert.data.image_files import SUFFIXES
from lipcert.errors import InputError, LipcertError
from lipcert.explore import markup
from lipcert.explore.computing import in_turn
from lipcert.explore.exhibit import Exhibit
from lipcert.explore.image_view import Judge, attempt_html, read_upload, verdict_html


@dataclass(frozen=True)
class Chosen:
    """The image to look at, and its true label where that is known: of the data, not of an upload."""

    image: np.ndarray
    label: str | None = None


# What was chosen, the attack and the certificate.
Look = tuple[Chosen | None, str, str]

# The initial ε of the attack, and its maximum.
_EPS, _FARTHEST = 0.5, 3.0


@dataclass
class Visit:
    """Count one visitor's requests, so that a slow answer never replaces the answer to a later request."""

    requests: int = 0

    def while_latest(self, answers: Iterator[Look]) -> Iterator[Look]:
        """Yield the answers until the visitor asks for something else."""
        self.requests += 1
        mine = self.requests
        for answer in answers:
            if self.requests != mine:
                return
            yield answer


@dataclass(frozen=True)
class Looking:
    """Handle the controls of the tab."""

    judge: Judge
    examples: Dataset | None

    def look(self, visit: Visit, chosen: Chosen | None, eps: float) -> Iterator[Look]:
        """Yield the certificate and then, seconds later, the strongest attack found."""
        if chosen is not None:
            yield from visit.while_latest(in_turn(self._look(chosen, eps)))

    def _look(self, chosen: Chosen, eps: float) -> Iterator[Look]:
        image, label = chosen.image, chosen.label
        try:
            verdict = self.judge(image)
            shown = verdict_html(verdict, eps, label)
            yield chosen, markup.message("Attacking …"), shown
            attempt = self.judge.attack(image, eps)
            yield chosen, attempt_html(image, verdict, attempt, eps, label), shown
        except LipcertError as error:
            yield None, markup.message(str(error), "error"), ""

    def pick(self, visit: Visit, eps: float, event: gr.SelectData) -> Iterator[Look]:
        """Look at one of the examples."""
        if self.examples is not None:
            yield from self.look(visit, example(self.examples, int(event.index)), eps)

    def receive(self, visit: Visit, path: str | None, eps: float) -> Iterator[Look]:
        """Look at an upload, which may be any file."""
        try:
            if path is None:
                raise InputError("upload: expected an image, got nothing; choose a file")
            chosen = Chosen(read_upload(Path(path), self.judge.form))
        except LipcertError as error:
            complaint: Look = (None, markup.message(str(error), "error"), "")
            yield from visit.while_latest(iter([complaint]))
            return
        yield from self.look(visit, chosen, eps)


def example(examples: Dataset, index: int) -> Chosen:
    """Return one of the examples, with its label."""
    return Chosen(examples.x[index].numpy(), examples.classes[int(examples.y[index])])


def images_tab(page: gr.Blocks, exhibit: Exhibit) -> None:
    """Lay out the tab; the first example is shown when the page opens."""
    if exhibit.judge is None:
        gr.HTML(markup.message(exhibit.remark))
        return
    looking, examples = Looking(exhibit.judge, exhibit.examples), exhibit.examples
    visit = gr.State(Visit())
    chosen = gr.State(None if examples is None else example(examples, 0))
    with gr.Row():
        with gr.Column(scale=1, min_width=300):
            gallery = None if examples is None else _gallery(examples)
            if exhibit.remark:
                gr.HTML(markup.message(exhibit.remark))
            upload = gr.UploadButton("Upload an image", file_types=list(SUFFIXES), elem_id="upload")
            eps = gr.Slider(0.0, _FARTHEST, _EPS, step=0.05, label="ε of the attack", elem_id="attack-eps")
        with gr.Column(scale=2, min_width=320):
            shown = [chosen, gr.HTML(elem_id="attempt"), gr.HTML(elem_id="verdict")]
    line: dict[str, Any] = {"outputs": shown, "concurrency_id": "images", "show_progress": "hidden"}
    eps.change(looking.look, [visit, chosen, eps], trigger_mode="always_last", api_name="look", **line)
    upload.upload(looking.receive, [visit, upload, eps], api_name="upload", **line)
    if gallery is not None:
        gallery.select(
            looking.pick, [visit, eps], trigger_mode="always_last", api_visibility="private", **line
        )
        page.load(looking.look, [visit, chosen, eps], api_visibility="private", **line)


def _gallery(examples: Dataset) -> gr.Gallery:
    images = [image.permute(1, 2, 0).numpy() for image in examples.x]
    names = [examples.classes[int(label)] for label in examples.y]
    return gr.Gallery(
        [
            (image if image.shape[2] == 3 else image[..., 0], name)
            for image, name in zip(images, names, strict=True)
        ],
        show_label=False,
        columns=6,
        height="auto",
        allow_preview=False,
        interactive=False,
        format="png",
        buttons=[],
        elem_id="gallery",
    )
