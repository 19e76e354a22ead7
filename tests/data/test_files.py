"""Data sets as they lie on disk: every official layout is read, everything damaged is named in one line."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from PIL import Image

from lipcert import InputError
from lipcert.data import load
from lipcert.data.base import Split
from lipcert.data.examples import (
    write_arrays,
    write_cifar10,
    write_cifar100,
    write_folder,
    write_tiny_imagenet,
)
from lipcert.data.image_cache import Form, common_form, decoded, read_image
from lipcert.data.splitting import hold_out


@pytest.mark.parametrize(("name", "write"), [("cifar10", write_cifar10), ("cifar100", write_cifar100)])
def test_both_layouts_of_cifar_hold_the_same(
    name: str, write: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    for split in ("train", "val", "test"):
        binary, python = (
            load(name, split=split, **_once(write, tmp_path / layout, layout))  # type: ignore[arg-type]
            for layout in ("binary", "python")
        )
        assert torch.equal(binary.x, python.x)
        assert torch.equal(binary.y, python.y)
        assert binary.classes == python.classes
        assert binary.x.dtype == torch.uint8
        assert binary.input_shape == (3, 32, 32)


def _once(write: Callable[..., dict[str, Any]], root: Path, layout: str) -> dict[str, Any]:
    return {"root": str(root)} if root.exists() else write(root, layout)


def test_a_record_is_label_red_green_blue(tmp_path: Path) -> None:
    root = write_cifar10(tmp_path)["root"]
    raw = np.fromfile(Path(root) / "cifar-10-batches-bin" / "test_batch.bin", np.uint8).reshape(-1, 3073)
    data = load("cifar10", split="test", root=root)
    assert data.y.tolist() == raw[:, 0].tolist()
    assert data.x[3, 2, 5, 7] == raw[3, 1 + 2 * 1024 + 5 * 32 + 7]
    assert data.classes[0] == "airplane"
    assert float(data.floats(slice(3, 4))[0, 2, 5, 7]) == pytest.approx(float(data.x[3, 2, 5, 7]) / 255)


def test_fine_labels_of_cifar100(tmp_path: Path) -> None:
    data = load("cifar100", split="test", **write_cifar100(tmp_path))
    assert data.y.tolist() == list(range(100))
    assert len(data.classes) == 100


def test_the_root_is_given_or_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write_cifar10(tmp_path / "data")["root"]
    monkeypatch.setenv("LIPCERT_DATA", root)
    assert len(load("cifar10")) == 90
    assert len(load("cifar10", root=f"{root}/cifar-10-batches-bin")) == 90
    monkeypatch.setenv("LIPCERT_DATA", str(tmp_path))
    with pytest.raises(InputError, match="lipcert data fetch cifar10"):
        load("cifar10")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def relabel(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[0] = 77
    path.write_bytes(bytes(content))


@pytest.mark.parametrize(
    ("layout", "file", "damage", "message"),
    [
        ("binary", "data_batch_2.bin", cut, "cut short"),
        ("binary", "data_batch_3.bin", Path.unlink, "cannot be read"),
        ("binary", "data_batch_1.bin", relabel, r"labels 0\.\.9, got 77"),
        ("binary", "batches.meta.txt", Path.unlink, "class names"),
        ("python", "data_batch_4", cut, "damaged"),
        ("python", "data_batch_4", Path.unlink, "cannot be read"),
        ("python", "data_batch_5", lambda p: p.write_bytes(pickle.dumps([1, 2])), "expected a dictionary"),
        ("python", "data_batch_5", lambda p: p.write_bytes(pickle.dumps({"data": 1})), "expected the keys"),
        (
            "python",
            "data_batch_5",
            lambda p: p.write_bytes(pickle.dumps({"data": np.zeros((2, 5), np.uint8), "labels": [1, 2]}, 2)),
            "3072 values",
        ),
    ],
)
def test_damaged_cifar_is_named(
    layout: str, file: str, damage: Callable[[Path], Any], message: str, tmp_path: Path
) -> None:
    root = write_cifar10(tmp_path, layout)["root"]
    damage(next(Path(root).iterdir()) / file)
    with pytest.raises(InputError, match=message) as error:
        load("cifar10", root=root)
    assert "\n" not in str(error.value)


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("executed",)


def test_a_malicious_batch_is_not_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    root = write_cifar10(tmp_path / "data", "python")["root"]
    (Path(root) / "cifar-10-batches-py" / "data_batch_1").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(InputError, match="mkdir"):
        load("cifar10", root=root)
    assert not Path("executed").exists()


def test_tiny_imagenet(tmp_path: Path) -> None:
    arguments = write_tiny_imagenet(tmp_path)
    train, val, test = (load("tiny-imagenet", split=s, **arguments) for s in ("train", "val", "test"))  # type: ignore[arg-type]
    assert (len(train), len(val), len(test)) == (6, 2, 6)
    assert train.classes == ("goldfish", "European fire salamander")
    assert test.y.tolist() == [0, 0, 0, 1, 1, 1]
    # The official validation images, in the order of the annotations.
    image = Image.open(tmp_path / "tiny-imagenet-200" / "val" / "images" / "val_4.JPEG")
    assert torch.equal(test.x[4], torch.from_numpy(np.array(image)).permute(2, 0, 1))
    # The grey image of a class became RGB.
    grey = [x for data in (train, val) for x in data.x if torch.equal(x[0], x[1])]
    assert len(grey) == 2


TINY = Path("tiny-imagenet-200")


@pytest.mark.parametrize(
    ("damage", "split", "message"),
    [
        (lambda r: (r / "val" / "images" / "val_2.JPEG").unlink(), "test", r"line 3: .*missing"),
        (lambda r: cut(r / "val" / "images" / "val_2.JPEG"), "test", "not a readable image"),
        (lambda r: (r / "wnids.txt").write_text(""), "train", "empty"),
        (lambda r: (r / "wnids.txt").write_text("n01443537\nn9\n"), "train", "no images of class n9"),
        (lambda r: (r / "wnids.txt").write_text("n01443537\nn9\n"), "test", "unknown class 'n01629819'"),
        (lambda r: (r / "val" / "val_annotations.txt").unlink(), "test", "cannot be read"),
    ],
)
def test_damaged_tiny_imagenet_is_named(
    damage: Callable[[Path], Any], split: Any, message: str, tmp_path: Path
) -> None:
    arguments = write_tiny_imagenet(tmp_path)
    damage(tmp_path / TINY)
    with pytest.raises(InputError, match=message):
        load("tiny-imagenet", split=split, **arguments)


def test_folders_are_split_the_same_for_every_class(tmp_path: Path) -> None:
    arguments = write_folder(tmp_path)
    parts = [load("folder", split=s, **arguments) for s in ("train", "val", "test")]  # type: ignore[arg-type]
    assert [len(p) for p in parts] == [16, 2, 2]
    assert all(p.y.bincount().tolist() == [len(p) // 2] * 2 for p in parts)
    assert parts[0].classes == ("cats", "dogs")


def test_folders_with_splits_of_their_own(tmp_path: Path) -> None:
    for part in ("train", "test"):
        write_folder(tmp_path / part)
    sizes = [len(load("folder", split=s, root=str(tmp_path))) for s in ("train", "val", "test")]  # type: ignore[arg-type]
    assert sizes == [18, 2, 20]


def save(path: Path, *shape: int) -> None:
    Image.fromarray(np.zeros(shape, np.uint8)).save(path)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda r: save(r / "cats" / "0.png", 8, 8), "L image, expected RGB; set data.convert=true"),
        (lambda r: save(r / "cats" / "0.png", 8, 8, 4), "RGBA image"),
        (lambda r: save(r / "cats" / "5.png", 9, 8, 3), "8×. pixels, the first image has 8×."),
        (lambda r: (r / "dogs" / "1.png").write_text("no image"), "not a readable image"),
        (lambda r: cut(r / "dogs" / "1.png"), "not a readable image"),
        (lambda r: [p.unlink() for p in (r / "dogs").iterdir()], "no images of this class"),
        (lambda r: [p.unlink() for p in sorted((r / "dogs").iterdir())[1:]], "a single sample"),
        (lambda r: (r / "dogs").rename(r / ".dogs"), "one subfolder per class"),
    ],
)
def test_folders_that_cannot_be_are_named(
    damage: Callable[[Path], Any], message: str, tmp_path: Path
) -> None:
    arguments = write_folder(tmp_path)
    damage(tmp_path)
    with pytest.raises(InputError, match=message):
        [load("folder", split=s, **arguments) for s in ("train", "val", "test")]  # type: ignore[arg-type]


def test_images_are_converted_and_resized_if_asked(tmp_path: Path) -> None:
    arguments = write_folder(tmp_path)
    save(tmp_path / "cats" / "0.png", 20, 30)
    data = load("folder", size=16, convert=True, **arguments)
    assert data.input_shape == (3, 16, 16)


@pytest.mark.parametrize(
    ("others", "shape"),
    [
        ([], (3, 8, 8)),
        ([(8, 8)], (3, 8, 8)),  # a grey one among colours
        ([(8, 8, 4)], (3, 8, 8)),  # transparent
        ([(9, 8, 3)], (3, 64, 64)),
        ([(300, 200, 3)], (3, 64, 64)),
    ],
)
def test_images_are_detected_as_they_come(
    others: list[tuple[int, ...]], shape: tuple[int, ...], tmp_path: Path
) -> None:
    arguments = write_folder(tmp_path)
    for i, other in enumerate(others):
        save(tmp_path / "cats" / f"{i}.png", *other)
    parts = [load("folder", split=s, detect=True, **arguments) for s in ("train", "val", "test")]  # type: ignore[arg-type]
    assert {part.input_shape for part in parts} == {shape}
    assert load("folder", detect=True, size=5, **arguments).input_shape == (3, 5, 5)


def test_grey_images_keep_one_channel(tmp_path: Path) -> None:
    arguments = write_folder(tmp_path)
    for path in tmp_path.glob("*/*.png"):
        save(path, 12, 10)
    assert load("folder", detect=True, **arguments).input_shape == (1, 12, 10)


def test_photographs_stand_upright(tmp_path: Path) -> None:
    pixels = np.zeros((6, 10, 3), np.uint8)
    pixels[:, :5] = 255
    turned = Image.Exif()
    turned[0x0112] = 6  # to be turned to the right
    Image.fromarray(pixels).save(tmp_path / "photo.png", exif=turned)
    assert common_form((tmp_path / "photo.png",)).size is None
    files = [tmp_path / f"{orientation}.png" for orientation in range(1, 9)]
    for orientation, path in enumerate(files, start=1):
        turned[0x0112] = orientation
        Image.fromarray(pixels if orientation < 5 else pixels.transpose(1, 0, 2)).save(path, exif=turned)
    assert common_form(tuple(files)).size is None  # upright they are all alike
    image = read_image(tmp_path / "photo.png", Form(convert=True))
    assert image.shape == (3, 10, 6)
    assert (image[:, :5] == 255).all()
    assert (image[:, 5:] == 0).all()


def test_deep_images_are_refused(tmp_path: Path) -> None:
    Image.fromarray(np.zeros((4, 4), np.uint16)).save(tmp_path / "deep.png")
    with pytest.raises(InputError, match=r"deep\.png: more than 8 bits"):
        read_image(tmp_path / "deep.png", Form(convert=True))


def test_images_are_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lipcert.data import image_cache as images

    arguments = write_folder(tmp_path)
    first = load("folder", **arguments)
    decode = images.read_image
    monkeypatch.setattr(images, "read_image", lambda *_: pytest.fail("decoded again"))
    assert torch.equal(load("folder", **arguments).x, first.x)
    monkeypatch.setattr(images, "read_image", decode)
    for path in (tmp_path / "cats").iterdir():
        save(path, 8, 8, 3)
    assert not torch.equal(load("folder", **arguments).x, first.x)


def test_another_image_of_the_same_length_is_decoded_anew(tmp_path: Path) -> None:
    path = tmp_path / "image.bmp"
    for value in (0, 255):
        Image.fromarray(np.full((8, 8, 3), value, np.uint8)).save(path)
        os.utime(path, ns=(value, value))
        assert (decoded([path], Form()) == value).all()


def test_arrays_from_a_file_and_in_memory(tmp_path: Path) -> None:
    whole = load("arrays", **write_arrays(tmp_path))
    assert len(whole) == 24
    x, y = np.random.rand(40, 3), np.arange(40) % 2
    np.savez(tmp_path / "parts.npz", x_train=x, y_train=y, x_test=x[:10], y_test=y[:10])
    sizes = [len(load("arrays", split=s, path=str(tmp_path / "parts.npz"))) for s in ("train", "val", "test")]  # type: ignore[arg-type]
    assert sizes == [36, 4, 10]
    images = np.zeros((20, 3, 4, 4), np.uint8)
    assert load("arrays", x=images, y=np.arange(20) % 2, classes=("a", "b")).x.dtype == torch.uint8


def test_arrays_are_split_by_their_shares() -> None:
    x, y = np.arange(200, dtype=np.float32)[:, None], np.arange(200) % 2
    found = [load("arrays", split=s, x=x, y=y, val=0.2, test=0.3).x.flatten() for s in get_args(Split)]
    assert [len(part) for part in found] == [112, 28, 60]  # of the 140 that are not for the test, a fifth
    assert torch.cat(found).sort().values.tolist() == x.flatten().tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "either a path"),
        ({"x": np.zeros((4, 2))}, "either a path"),
        ({"path": "nowhere.npz"}, "not a readable"),
        ({"x": np.zeros((20, 4, 4, 3), np.uint8), "y": np.arange(20) % 2}, "channels first"),
        ({"x": np.zeros((20, 2)), "y": np.arange(20) / 2}, "whole-number"),
        ({"x": np.zeros((20, 2)), "y": np.zeros(20, int)}, "at least 2 classes"),
        ({"x": np.full((20, 2), np.nan), "y": np.arange(20) % 2}, "finite"),
        ({"x": np.zeros((20, 2)), "y": np.arange(19) % 2}, "20 int64 labels"),
    ],
)
def test_arrays_that_cannot_be_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load("arrays", **arguments)


def test_held_out_samples_are_the_same_share_of_every_class() -> None:
    y = torch.tensor([0] * 100 + [1] * 10 + [2] * 2)
    stays, held = hold_out(y, 0.1, seed=3)
    assert y[held].bincount().tolist() == [10, 1, 1]
    assert sorted([*stays.tolist(), *held.tolist()]) == list(range(112))
    assert torch.equal(hold_out(y, 0.1, seed=3)[1], held)
    assert not torch.equal(hold_out(y, 0.1, seed=4)[1], held)
    for share in (0.0, 1.0, -0.1):
        with pytest.raises(InputError, match="val"):
            hold_out(y, share, seed=0)


@pytest.mark.skipif("LIPCERT_DATA" not in os.environ, reason="LIPCERT_DATA does not say where CIFAR-10 is")
def test_the_real_cifar10() -> None:
    train, val, test = (load("cifar10", split=s) for s in ("train", "val", "test"))  # type: ignore[arg-type]
    assert [len(d) for d in (train, val, test)] == [47_500, 2_500, 10_000]
    assert test.y.bincount().tolist() == [1000] * 10
    assert float(test.floats(slice(None)).mean()) == pytest.approx(0.4765, abs=1e-3)
