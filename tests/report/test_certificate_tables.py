"""Tables of certificates: what is proved is printed on the safe side."""

from __future__ import annotations

from lipcert.certificates.statement import read_certificate
from lipcert.models.model_names import model_place
from lipcert.report.certificate_tables import certificate_table
from lipcert.report.model_card import model_card


def test_the_title_states_no_less_than_was_proved() -> None:
    statement = read_certificate(model_place("moons-cll") / "certificate.json")
    assert f"{statement.k_f:.6g}" == "52.3438"  # the nearest number of six digits is too small
    assert "K_f ≤ 52.3439 (proved)" in certificate_table(statement).title


def test_a_model_card_states_no_less_than_was_proved() -> None:
    assert "Proved: K_f ≤ 52.3439 (effort" in model_card(model_place("moons-cll"), "moons-cll")
