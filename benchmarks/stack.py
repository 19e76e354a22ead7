"""Three trainings of 4C3F as one stack against the same three, a step of each in turn.

Processes of their own that take turns, two threads. Writes results/stack.json.
"""

from __future__ import annotations

import sys

import torch
from step import BATCH, ready, training
from timing import in_turns, print_ratios, serve

from lipcert.train.stacked.stack import Stack
from results import write_table

MODELS, WORK, ROUNDS = 3, "engine, CLL", 15


def main() -> None:
    torch.set_num_threads(2)
    if sys.argv[1:] == ["stacked"]:
        serve(Stack([ready("4c3f", WORK) for _ in range(MODELS)]).advance)
    elif sys.argv[1:] == ["alone"]:
        steps = [training("4c3f", WORK) for _ in range(MODELS)]
        serve(lambda: [step.advance() for step in steps])
    else:
        timings = in_turns({"alone": ["alone"], "stacked": ["stacked"]}, ROUNDS)
        ratio = print_ratios(timings, "alone")["stacked"]
        note = f"4C3F, CLL, batch {BATCH}, two threads, interleaved, medians and quartiles"
        table = [[f"{MODELS} models stacked", f"{MODELS} alone", str(ratio)]]
        write_table("stack", note, ["work", "to", "ratio"], table)


if __name__ == "__main__":
    main()
