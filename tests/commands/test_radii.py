"""--radii: numbers and fractions, refused before anything is proved."""

from __future__ import annotations

import pytest

from lipcert.commands.work import certify_model
from lipcert.commands.work.certify_model import Subject, parsed_radii
from lipcert.errors import InputError


def test_fractions_are_read_as_the_field_prints_them() -> None:
    assert parsed_radii("36/255,72/255,0.5") == (36 / 255, 72 / 255, 0.5)


@pytest.mark.parametrize("text", ["", "abc", "36/0", "36/", "0.1;0.2", "0", "-36/255", "inf", "nan", "1/2/3"])
def test_bad_radii_are_refused_before_any_proof(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def prove(*args: object) -> None:
        raise AssertionError("a proof was begun")

    monkeypatch.setattr(certify_model, "certifier", prove)
    with pytest.raises(InputError, match=r"^--radii: expected") as error:
        Subject.open("moons-cll", None, "val", text)
    assert repr(text) in str(error.value)
