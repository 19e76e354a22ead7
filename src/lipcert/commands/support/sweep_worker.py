"""The process of a sweep: train the given recipes, one alone or several as a stack.

Run as a module, it reads its work from a line of standard input. The sender keeps the input open: when it
is closed, the training saves its state and ends as well.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lipcert.atomic import disk_error
from lipcert.commands.support.allocator import keep_freed_memory
from lipcert.errors import LipcertError, exit_status
from lipcert.recipes import Recipe, execute, execute_stack
from lipcert.recipes.imports import load_kept
from lipcert.recipes.splits import Splits
from lipcert.report.run_figures import write_evaluation
from lipcert.runs import Run
from lipcert.train.hardware import Accelerator, Hardware

# Resolved recipes by their run directories.
Work = Mapping[str, dict[str, Any]]


def carry_out(work: Work, accelerator: Accelerator = "auto") -> None:
    """Train, certify and draw; interrupted trainings continue."""
    for tree in work.values():
        load_kept(tree)
    keep_freed_memory()  # this process belongs to a worker, local or of Ray
    recipes = {Path(path): Recipe.model_validate(tree) for path, tree in work.items()}
    hardware, splits = Hardware(accelerator=accelerator), Splits()
    try:
        if len(recipes) > 1:
            execute_stack(recipes, resume=True, hardware=hardware, splits=splits)
        else:
            ((path, recipe),) = recipes.items()
            execute(recipe, path, resume=True, hardware=hardware, splits=splits)
    finally:  # one of a stack may fail when others are finished
        for path, recipe in recipes.items():
            run = Run(path)
            if run.certificate.is_file():
                write_evaluation(run, recipe, splits)


def main() -> None:
    """Run the process."""
    work = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_sender, daemon=True).start()
    try:
        carry_out(work)
    except (LipcertError, OSError) as error:
        told = disk_error(error) if isinstance(error, OSError) else error
        print(told, file=sys.stderr)
        sys.exit(exit_status(told))


def _end_with_sender() -> None:
    while os.read(sys.stdin.fileno(), 1024):  # nothing is ever sent: this waits for the end
        pass
    os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    main()
