"""A training that begins with the weights of another model: what does not fit is told with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from lipcert import InputError
from lipcert.models.model_files import ModelCard, read_model, save, start_from


def saved(card: ModelCard, place: Path) -> str:
    save(card.build(), card, place / "model.safetensors")
    return str(place / "model.safetensors")


def begun(theirs: ModelCard, ours: ModelCard, place: Path) -> None:
    source = saved(theirs, place)
    start_from(ours.build(), read_model(Path(source)), source, ours)


def test_other_widths_name_the_shapes_and_the_setting(tmp_path: Path) -> None:
    wide, narrow = (ModelCard("mlp", 2, (2,), {"widths": w}) for w in ([16, 16, 16], [8, 8, 8]))
    with pytest.raises(InputError) as error:
        begun(wide, narrow, tmp_path)
    message = str(error.value)
    assert "\n" not in message
    assert "0.bias is 16 there and 8 here; 0.weight is 16×2 there and 8×2 here" in message
    assert ", and 3 more; because widths is [16, 16, 16] there and [8, 8, 8] here (a budget may" in message
    assert "--set model.widths=" in message


def test_other_depths_name_what_is_missing(tmp_path: Path) -> None:
    deep, shallow = (
        ModelCard("mlp", 2, (2,), {"widths": [8, 8, 8]}),
        ModelCard("mlp", 2, (2,), {"widths": [8]}),
    )
    with pytest.raises(InputError, match=r"4\.bias is 8 there and missing here"):
        begun(deep, shallow, tmp_path)


def test_another_architecture_is_named(tmp_path: Path) -> None:
    other = ModelCard("soc-mlp", 2, (2,), {"widths": [8]})
    with pytest.raises(InputError, match="it is a soc-mlp, this recipe trains a mlp"):
        begun(other, ModelCard("mlp", 2, (2,), {"widths": [8]}), tmp_path)


def test_another_input_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"because input_shape is \[3\] there and \[2\] here"):
        begun(
            ModelCard("mlp", 2, (3,), {"widths": (8,)}), ModelCard("mlp", 2, (2,), {"widths": [8]}), tmp_path
        )


def test_a_head_for_other_classes_is_left_as_it_is(tmp_path: Path) -> None:
    two, three = (ModelCard("mlp", n, (2,), {"widths": [8]}) for n in (2, 3))
    begun(two, three, tmp_path)
