"""Colours: one per method, in one file, and told apart by colour-blind readers."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import lipcert
from lipcert.losses import LOSSES
from lipcert.paper.loss_layer_grid import LOSSES as SETTINGS
from lipcert.recipes import read_recipe
from lipcert.report import palette
from lipcert.report.method_names import method_of

ROOT = Path(lipcert.__file__).parents[2]

# Machado, Oliveira, Fernandes 2009, at full severity, for linear RGB.
BLINDNESS = {
    "none": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
}


def lab(colour: str, blindness: np.ndarray) -> np.ndarray:
    """CIE Lab of what a reader sees."""
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = (blindness @ linear).clip(0, 1)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ seen / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("blindness", BLINDNESS)
@pytest.mark.parametrize(
    "colours",
    [
        (*palette.CLASSES, palette.WRONG),
        (palette.PROVED, palette.ATTACKED, palette.GREY),
        tuple(palette.METHODS[loss].colour for loss in ("cll", "gloro", "cross-entropy")),
    ],
    ids=["moons", "band", "methods"],
)
def test_colours_without_marks_differ_for_every_reader(colours: tuple[str, ...], blindness: str) -> None:
    for one, other in combinations(colours, 2):
        apart = np.linalg.norm(lab(one, BLINDNESS[blindness]) - lab(other, BLINDNESS[blindness]))
        assert apart > 20, (one, other)


def test_a_method_has_one_colour() -> None:
    assert palette.method_colour("CLL") == palette.BLUE
    assert palette.method_colour("GloRo, ε growing") == palette.RED
    own = [method.colour for method in palette.METHODS.values() if method.colour != palette.OTHER_METHOD]
    assert len(set(own)) == len(own)
    assert len({method.title for method in palette.METHODS.values()}) == len(palette.METHODS)
    assert palette.method_colour("a new one") == palette.OTHER_METHOD


def test_a_loss_has_the_same_name_and_colour_by_every_way() -> None:
    assert set(palette.METHODS) <= set(LOSSES)
    for loss, method in palette.METHODS.items():
        recipe = read_recipe("cifar10-grid", None, list(SETTINGS[loss]))
        assert method_of(recipe) == palette.loss_title(loss) == method.title
        assert palette.method_colour(method_of(recipe)) == method.colour


def test_runs_of_one_method_are_tints_of_its_colour() -> None:
    first, rival, second = palette.run_looks(["CLL", "GloRo", "CLL"])
    assert (first.colour, rival.colour) == (palette.BLUE, palette.RED)
    assert second.colour not in (first.colour, rival.colour)
    assert second.dash != first.dash


def test_marks_have_a_sign_each_and_shades_end_in_the_full_colour() -> None:
    assert len(palette.MARK_SIGNS) == len(palette.MARKS)
    assert palette.shades(palette.BLUE, 4)[-1] == palette.BLUE
    assert len(set(palette.shades(palette.BLUE, 4))) == 4


def test_no_other_file_names_a_colour() -> None:
    package = ROOT / "src" / "lipcert"
    files = [path for ending in ("py", "css", "html") for path in package.rglob(f"*.{ending}")]
    files += (ROOT / "docs").glob("*.py")
    colour = re.compile(r"#([0-9a-fA-F]{3}){1,2}\b|(color|background): *(white|black|red|blue|grey|gray)\b")
    named = [path.name for path in files if colour.search(path.read_text(encoding="utf-8"))]
    assert named == ["palette.py"]
