"""What a run directory takes for the same recipe."""

from __future__ import annotations

from pathlib import Path

import pytest

from lipcert.errors import InputError
from lipcert.runs import Run


def test_a_claim_is_words_and_may_change(tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    run.start({"claim": "61 %", "seed": 1}, resume=False, overwrite=False)
    run.check({"claim": "60 %", "seed": 1}, resume=True, overwrite=False)
    run.certificate.write_text("{}")
    assert run.holds({"claim": "60 %", "seed": 1})
    assert not run.holds({"claim": "61 %", "seed": 2})
    with pytest.raises(InputError, match="differs in seed"):
        run.check({"claim": "61 %", "seed": 2}, resume=True, overwrite=False)
