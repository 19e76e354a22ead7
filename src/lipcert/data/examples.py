"""Tiny data sets of noise in the official layouts, for the tests and as examples of the file formats."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

_CIFAR10 = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def _pixels(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def _temporary(root: Path | None) -> Path:
    return root or Path(tempfile.mkdtemp(prefix="lipcert-"))


def write_cifar10(root: Path | None = None, layout: str = "binary") -> dict[str, Any]:
    """Write five training batches and a test batch of 20 images each."""
    root = _temporary(root)
    folder = root / ("cifar-10-batches-bin" if layout == "binary" else "cifar-10-batches-py")
    folder.mkdir(parents=True)
    labels = np.arange(20, dtype=np.uint8) % 10
    for i, name in enumerate([*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]):
        images = _pixels(i, 20, 3072)
        if layout == "binary":
            np.concatenate([labels[:, None], images], axis=1).tofile(folder / f"{name}.bin")
        else:
            _dump(folder / name, {b"data": images, b"labels": labels.tolist()})
    if layout == "binary":
        (folder / "batches.meta.txt").write_text("\n".join(_CIFAR10) + "\n\n", encoding="utf-8")
    else:
        _dump(folder / "batches.meta", {b"label_names": [name.encode() for name in _CIFAR10]})
    return {"root": str(root)}


def write_cifar100(root: Path | None = None, layout: str = "binary") -> dict[str, Any]:
    """Write 300 training and 100 test images; a record is coarse label, fine label, pixels."""
    root = _temporary(root)
    folder = root / ("cifar-100-binary" if layout == "binary" else "cifar-100-python")
    folder.mkdir(parents=True)
    names = [f"class_{i}" for i in range(100)]
    for seed, (name, count) in enumerate({"train": 300, "test": 100}.items()):
        images, fine = _pixels(seed, count, 3072), np.arange(count, dtype=np.uint8) % 100
        if layout == "binary":
            np.concatenate([fine[:, None] // 5, fine[:, None], images], axis=1).tofile(folder / f"{name}.bin")
        else:
            _dump(folder / name, {b"data": images, b"fine_labels": fine.tolist()})
    if layout == "binary":
        (folder / "fine_label_names.txt").write_text("\n".join(names) + "\n", encoding="utf-8")
    else:
        _dump(folder / "meta", {b"fine_label_names": [name.encode() for name in names]})
    return {"root": str(root)}


def write_tiny_imagenet(root: Path | None = None) -> dict[str, Any]:
    """Write two classes: four training images each, one of them grey, and three for validation."""
    root = _temporary(root)
    folder = root / "tiny-imagenet-200"
    wnids = {"n01443537": "goldfish, Carassius auratus", "n01629819": "European fire salamander"}
    lines = []
    for label, wnid in enumerate(wnids):
        train = folder / "train" / wnid / "images"
        train.mkdir(parents=True)
        for i in range(4):
            image = _pixels(10 * label + i, 64, 64, 3)
            Image.fromarray(image if i else image[..., 0]).save(train / f"{wnid}_{i}.JPEG")
        images = folder / "val" / "images"
        images.mkdir(parents=True, exist_ok=True)
        for i in range(3):
            name = f"val_{3 * label + i}.JPEG"
            Image.fromarray(_pixels(100 + 10 * label + i, 64, 64, 3)).save(images / name)
            lines.append(f"{name}\t{wnid}\t0\t32\t44\t62")
    (folder / "val" / "val_annotations.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "wnids.txt").write_text("\n".join(wnids) + "\n", encoding="utf-8")
    (folder / "words.txt").write_text(
        "\n".join(f"{k}\t{v}" for k, v in wnids.items()) + "\n", encoding="utf-8"
    )
    return {"root": str(root), "val": 0.25}


def write_folder(root: Path | None = None) -> dict[str, Any]:
    """Write two classes of ten images."""
    root = _temporary(root)
    for label, name in enumerate(("cats", "dogs")):
        (root / name).mkdir(parents=True)
        for i in range(10):
            Image.fromarray(_pixels(10 * label + i, 8, 8, 3)).save(root / name / f"{i}.png")
    return {"root": str(root)}


def write_arrays(root: Path | None = None) -> dict[str, Any]:
    """Write thirty points into an .npz file."""
    path = _temporary(root) / "points.npz"
    points = np.random.default_rng(0).random((30, 4), dtype=np.float32)
    np.savez(path, x=points, y=np.arange(30) % 3)
    return {"path": str(path)}


def _dump(path: Path, content: dict[bytes, Any]) -> None:
    path.write_bytes(pickle.dumps(content, protocol=2))
