"""Data sets as they lie on disk: every official layout is read, everything damaged is named in one line."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import platformdirs
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
from lipcert.data.image_cache import common_form, decoded
from lipcert.data.image_files import Form, read_image
from lipcert.data.splitting import hold_out, part


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
    for name in ("train", "test"):
        write_folder(tmp_path / name)
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
        (lambda r: [p.unlink() for p in (r / "dogs").iterdir()], r"no images of 1 of 2 classes \(dogs\)"),
        (lambda r: (r / "birds").mkdir(), r"no images of 1 of 3 classes \(birds\); put some .* or remove"),
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


def test_a_test_folder_may_lack_a_class(tmp_path: Path) -> None:
    for split in ("train", "test"):
        write_folder(tmp_path / split)
    for path in (tmp_path / "test" / "cats").iterdir():
        path.unlink()
    data = load("folder", split="test", root=str(tmp_path), detect=True)
    assert data.y.tolist() == [1] * 10
    assert data.classes == ("cats", "dogs")
    for path in (tmp_path / "test" / "dogs").iterdir():
        path.unlink()
    with pytest.raises(InputError, match=r"no images of 2 of 2 classes \(cats, dogs\)"):
        load("folder", split="test", root=str(tmp_path))


def test_hidden_files_are_no_images(tmp_path: Path) -> None:
    arguments = write_folder(tmp_path)
    before = load("folder", **arguments)
    (tmp_path / "cats" / "._0.png").write_bytes(b"of macOS")
    assert torch.equal(load("folder", **arguments).x, before.x)


def test_images_that_change_in_the_same_process_are_noticed(tmp_path: Path) -> None:
    arguments = write_folder(tmp_path)
    assert load("folder", detect=True, **arguments).input_shape == (3, 8, 8)
    for path in tmp_path.glob("*/*.png"):
        save(path, 12, 10)
    assert load("folder", detect=True, **arguments).input_shape == (1, 12, 10)


@pytest.mark.parametrize("detect", [False, True])
def test_all_unreadable_images_are_named_at_once(detect: bool, tmp_path: Path) -> None:
    arguments = write_folder(tmp_path) | {"detect": detect, "val": 0.05, "test": 0.05}
    bad = sorted(tmp_path.glob("*/*.png"))[1::3]
    for path in bad:
        path.write_text("no image", encoding="utf-8")
    with pytest.raises(InputError) as found:
        [load("folder", split=s, **arguments) for s in get_args(Split)]
    first, *rest = str(found.value).split("\n")
    assert first.endswith("images cannot be used:")
    assert int(first.split()[0]) == len(rest) > 2
    for line in rest:
        assert any(line.startswith(f"  {path}: not a readable image") for path in bad)


def test_many_unreadable_images_are_counted(tmp_path: Path) -> None:
    paths = [tmp_path / f"{i:02}.png" for i in range(30)]
    for path in paths:
        path.write_text("no image", encoding="utf-8")
    for read in (lambda: common_form(paths), lambda: decoded(paths, Form())):
        with pytest.raises(InputError) as found:
            read()
        lines = str(found.value).split("\n")
        assert lines[0] == "30 of 30 images cannot be used:"
        assert len(lines) == 22
        assert lines[-1] == "  and 10 more"


def cache_file() -> Path:
    return max(
        (platformdirs.user_cache_path("lipcert") / "images").iterdir(), key=lambda p: p.stat().st_ctime_ns
    )


@pytest.mark.parametrize(
    "damage",
    [
        cut,
        lambda p: p.write_bytes(b""),
        lambda p: p.write_bytes(p.read_bytes()[:20]),
        lambda p: p.write_bytes(b"x" * 5000),
        lambda p: np.save(p, np.zeros((3, 3))),
    ],
)
def test_a_damaged_cache_is_decoded_again(damage: Callable[[Path], Any], tmp_path: Path) -> None:
    paths = [tmp_path / f"{i}.png" for i in range(5)]
    for i, path in enumerate(paths):
        Image.fromarray(np.full((8, 8, 3), i, np.uint8)).save(path)
    first = decoded(paths, Form()).clone()
    cache = cache_file()
    damage(cache)
    assert torch.equal(decoded(paths, Form()), first)
    assert np.array_equal(np.load(cache), first.numpy())


FULL = """
import resource, signal, sys
from pathlib import Path
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
from lipcert.data.image_cache import decoded
from lipcert.data.image_files import Form
from lipcert.errors import LipcertError
try:
    decoded(sorted(Path(sys.argv[1]).iterdir()), Form(size=(64, 64)))
except LipcertError as error:
    print(error)
"""


def test_a_full_disk_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    """A limit on the length of files stands for the disk. A hole in a mapped file would end in SIGBUS."""
    (tmp_path / "images").mkdir()
    for i in range(10):
        Image.fromarray(np.full((8, 8, 3), i, np.uint8)).save(tmp_path / "images" / f"{i}.png")
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "images")],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert "the cache of images cannot be written (File too large); free some space" in done.stdout, (
        done.stderr
    )
    assert list((tmp_path / "cache" / "lipcert" / "images").iterdir()) == []


def test_the_cache_has_no_holes(tmp_path: Path) -> None:
    """Zeros that are not stored could not be stored later, when the disk is full."""
    for i in range(4):
        Image.fromarray(np.zeros((256, 256, 3), np.uint8)).save(tmp_path / f"{i}.png")
    decoded(sorted(tmp_path.iterdir()), Form())
    status = cache_file().stat()
    assert status.st_blocks * 512 >= status.st_size > 4 * 3 * 256**2


def test_arrays_from_a_file_and_in_memory(tmp_path: Path) -> None:
    whole = load("arrays", **write_arrays(tmp_path))
    assert len(whole) == 24
    x, y = np.random.rand(40, 3), np.arange(40) % 2
    np.savez(tmp_path / "parts.npz", x_train=x, y_train=y, x_test=x[:10], y_test=y[:10])
    sizes = [len(load("arrays", split=s, path=str(tmp_path / "parts.npz"))) for s in ("train", "val", "test")]  # type: ignore[arg-type]
    assert sizes == [36, 4, 10]
    assert load("arrays", x=x, y=np.arange(40) % 3).classes == ("0", "1", "2")
    images = np.zeros((20, 3, 4, 4), np.uint8)
    assert load("arrays", x=images, y=np.arange(20) % 2, classes=("a", "b")).x.dtype == torch.uint8


def test_arrays_are_split_by_their_shares() -> None:
    x, y = np.arange(200, dtype=np.float32)[:, None], np.arange(200) % 2
    found = [load("arrays", split=s, x=x, y=y, val=0.2, test=0.3).x.flatten() for s in get_args(Split)]
    assert [len(part) for part in found] == [112, 28, 60]  # a fifth of the 140 that are not for the test
    assert torch.cat(found).sort().values.tolist() == x.flatten().tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "either a path"),
        ({"x": np.zeros((4, 2))}, "either a path"),
        ({"path": "nowhere.npz"}, "no such file"),
        ({"x": np.zeros((20, 4, 4, 3), np.uint8), "y": np.arange(20) % 2}, "channels first"),
        ({"x": np.zeros((20, 2)), "y": np.arange(20) / 2}, "whole-number"),
        ({"x": np.zeros((20, 2)), "y": np.zeros(20, int)}, "at least 2 classes"),
        ({"x": np.zeros((20, 2)), "y": np.arange(20) % 2 - 1}, "labels from 0 on, got -1"),
        ({"x": np.full((20, 2), np.nan), "y": np.arange(20) % 2}, "finite"),
        ({"x": np.zeros((20, 2)), "y": np.arange(19) % 2}, "20 int64 labels"),
        ({"x": np.zeros((20, 0)), "y": np.arange(20) % 2}, r"expected samples of shape .*got \(20, 0\)"),
        ({"x": np.zeros((20, 2)), "y": np.arange(20) % 2 * 10**12}, "got 1000000000000; number the classes"),
        ({"x": np.zeros((20, 2)), "y": np.arange(20) % 2, "classes": "ab"}, "one name per class, got 'ab'"),
        ({"x": np.zeros((20, 2)), "y": np.arange(20) % 2, "classes": ("a", "a")}, "got 'a' twice"),
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
    stays, held = hold_out(y, 0.9, seed=3)  # one of two stays
    assert (y[stays].bincount().tolist(), y[held].bincount().tolist()) == ([10, 1, 1], [90, 9, 1])
    for share in (0.0, 1.0, -0.1):
        with pytest.raises(InputError, match="val"):
            hold_out(y, share, seed=0)


def test_a_validation_share_of_zero_leaves_all_to_training() -> None:
    y = torch.tensor([0] * 10 + [1] * 10 + [2])  # a single sample would be too few to split
    assert part(y, "train", {"val": 0}, seed=3).tolist() == list(range(21))
    rest = part(y[:20], "train", {"test": 0.2, "val": 0.0}, seed=3)
    assert len(rest) == 16
    with pytest.raises(InputError, match="val: there is no validation split"):
        part(y, "val", {"val": 0}, seed=3)
    assert len(part(y[:20], "train", {"test": 0.0}, seed=3)) == 20
    with pytest.raises(InputError, match="test: there is no test split"):
        part(y[:20], "test", {"test": 0.0}, seed=3)
    assert len(part(y[:20], "test", {"test": 1.0}, seed=3)) == 20
    with pytest.raises(InputError, match="train: there is no such split, because the share of test is 1"):
        part(y[:20], "train", {"test": 1.0}, seed=3)


@pytest.mark.skipif("LIPCERT_DATA" not in os.environ, reason="LIPCERT_DATA does not say where CIFAR-10 is")
def test_the_real_cifar10() -> None:
    train, val, test = (load("cifar10", split=s) for s in ("train", "val", "test"))  # type: ignore[arg-type]
    assert [len(d) for d in (train, val, test)] == [47_500, 2_500, 10_000]
    assert test.y.bincount().tolist() == [1000] * 10
    assert float(test.floats(slice(None)).mean()) == pytest.approx(0.4765, abs=1e-3)
