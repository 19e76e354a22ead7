"""The tab with the two moons: its controls, and a training that redraws it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import gradio as gr
from gradio.components import Component

from lipcert.errors import LipcertError
from lipcert.explore import markup
from lipcert.explore.computing import in_turn
from lipcert.explore.playground import CLL, DEPTH, EPS, LOSSES, SLACK, Wish, numbers_of, pictures_of, train
from lipcert.explore.turns import Turns


class Watching:
    """Handle the buttons, separately for every visitor."""

    def __init__(self) -> None:
        self._turns = Turns()

    def stop(self, request: gr.Request) -> None:
        """Stop the visitor's training; the last frame stays."""
        self._turns.take(_visitor(request))

    def leave(self, request: gr.Request) -> None:
        """End everything of a visitor who closed the page."""
        self._turns.leave(_visitor(request))

    def watch(
        self, loss: str, eps: float, slack: float, depth: float, request: gr.Request
    ) -> Iterator[tuple[str, str]]:
        """Yield numbers and pictures, frame by frame, until another training starts."""
        visitor = _visitor(request)
        turn = self._turns.take(visitor)
        yield from in_turn(self._frames(visitor, turn, loss, eps, slack, depth))

    def _frames(
        self, visitor: str, turn: int, loss: str, eps: float, slack: float, depth: float
    ) -> Iterator[tuple[str, str]]:
        try:
            wish = Wish(loss, eps, slack, int(depth))
            for frame in train(wish, lambda: self._turns.holds(visitor, turn)):
                shown = numbers_of(frame), pictures_of(frame)
                if not self._turns.holds(visitor, turn):  # otherwise an old picture would replace a new one
                    return
                yield shown
        except LipcertError as error:
            yield markup.message(str(error), "error"), ""


def playground_tab() -> Watching:
    """Lay out the tab, with the untrained network at first."""
    watching = Watching()
    (first,) = islice(train(Wish()), 1)
    with gr.Row():
        with gr.Column(scale=1, min_width=260):
            wishes = _wishes(Wish())
            with gr.Row():
                go = gr.Button("Train", variant="primary", min_width=100, elem_id="train")
                stop = gr.Button("Stop", min_width=100, elem_id="stop")
            gr.HTML("<small>Every frame is proved: nothing shown here is an estimate.</small>")
        with gr.Column(scale=3, min_width=320):
            numbers = gr.HTML(numbers_of(first), elem_id="moons-numbers")
            pictures = gr.HTML(pictures_of(first), elem_id="moons-pictures")
    stop.click(watching.stop, queue=False, show_progress="hidden", api_name="stop")
    # The previous training ends at once, even while the new one still waits in the queue.
    ended = go.click(watching.stop, queue=False, trigger_mode="multiple", api_visibility="private")
    ended.then(
        watching.watch,
        wishes,
        [numbers, pictures],
        trigger_mode="multiple",
        show_progress="hidden",
        api_name="train",
    )
    return watching


def _wishes(wish: Wish) -> list[Component]:
    """Return the controls, in the order of a `Wish`."""
    loss = gr.Radio(list(LOSSES), value=wish.loss, label="Loss", elem_id="loss")
    eps = gr.Slider(*EPS, wish.eps, step=0.01, label="Margin ε", elem_id="eps")
    slack = gr.Slider(*SLACK, wish.slack, step=0.001, label="Slack (CLL)", elem_id="slack")
    depth = gr.Slider(*DEPTH, wish.depth, step=1, label="Hidden layers", elem_id="depth")
    loss.change(
        lambda chosen: gr.update(interactive=chosen == CLL),
        loss,
        slack,
        queue=False,
        show_progress="hidden",
        api_visibility="private",
    )
    return [loss, eps, slack, depth]


def _visitor(request: gr.Request) -> str:
    return str(request.session_hash)
