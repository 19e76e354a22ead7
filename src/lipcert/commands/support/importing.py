"""The option `--import`, which every command has: it loads code of one's own before the command runs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, get_type_hints

from lipcert.commands.support.options import Imports

NAME = "import_"


def importing(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of a command with one more option, `--import`."""

    @functools.wraps(run)
    def with_imports(*args: Any, **given: Any) -> Any:
        load(given.pop(NAME, None) or ())
        return run(*args, **given)

    option = inspect.Parameter(NAME, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Imports)
    hints = {**get_type_hints(run, include_extras=True), NAME: Imports}
    own = inspect.signature(run)
    typed = [p.replace(annotation=hints.get(p.name, p.annotation)) for p in own.parameters.values()]
    with_imports.__signature__ = own.replace(parameters=[*typed, option])  # type: ignore[attr-defined]
    with_imports.__annotations__ = hints
    return with_imports


def load(sources: Sequence[str]) -> None:
    """Load what the option names."""
    if sources:
        from lipcert.extensions import give

        for source in sources:
            give(source)
