"""What a folder of many images costs: listing, decoding into the cache, mapping it again, shuffled reading.

JPEG files of 500×400 pixels, 50 different ones under many names, in ImageNet's layout with 100 classes. Every
row is a process with an empty cache. Times are processor time, except for reading; the last rows compute the
cost of ImageNet's 1,281,167 training images from those of the largest folder. Writes
results/image-folder.json. `python benchmarks/image_folder.py [SMALL LARGE]` takes other numbers of files;
`python benchmarks/image_folder.py read` prints the processor time of shuffled reading alone.
"""

from __future__ import annotations

import io
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import platformdirs
import torch
from PIL import Image

from lipcert.data import load
from results import write_table

COUNTS, SIDES, IMAGENET = (2_500, 20_000), (64, 224), 1_281_167
CLASSES, DIFFERENT, BATCH, BATCHES = 100, 50, 256, 40


def jpeg(seed: int) -> bytes:
    """A file as large as ImageNet's are on average, some 110 kB."""
    generator = np.random.default_rng(seed)
    coarse = Image.fromarray(generator.integers(0, 256, (40, 50, 3), dtype=np.uint8))
    smooth = np.asarray(coarse.resize((500, 400), Image.Resampling.BICUBIC), dtype=np.int16)
    noisy = (smooth + generator.integers(-24, 25, smooth.shape)).clip(0, 255).astype(np.uint8)
    stream = io.BytesIO()
    Image.fromarray(noisy).save(stream, "JPEG", quality=85)
    return stream.getvalue()


def write_folder(root: Path, count: int) -> float:
    """Write the files; return their average size in kB."""
    contents = [jpeg(seed) for seed in range(DIFFERENT)]
    for label in range(CLASSES):
        (root / f"n{label:08}").mkdir(parents=True)
    for i in range(count):
        (root / f"n{i % CLASSES:08}" / f"{i}.JPEG").write_bytes(contents[i % DIFFERENT])
    return sum(map(len, contents)) / DIFFERENT / 1e3


def worker(root: str, side: str) -> None:
    """Load the folder twice, read batches in random order, and print what it cost."""
    arguments = {"root": root, "size": int(side), "convert": True, "crop": True, "val": 0.05, "test": 0.05}
    start = processor()
    data = load("folder", **arguments)
    middle = processor()
    load("folder", **arguments)
    end = processor()
    found = {"decode": middle - start - (end - middle), "again": end - middle, "images": len(data)}
    found["GB"] = data.x.numel() / 1e9
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(0))
    batches = [order[i : i + BATCH] for i in range(0, len(data), BATCH)][:BATCHES]
    for state in ("cold", "warm"):
        if state == "cold":
            forget_pages()
        before = time.perf_counter()
        for batch in batches:
            data.x[batch].sum()
        found[state] = sum(map(len, batches)) / (time.perf_counter() - before)
    print(json.dumps({**found, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}))


def read() -> None:
    """Print how many images per second of processor time a batch takes from a cache of random pixels."""
    for side in SIDES:
        with TemporaryDirectory() as place:
            path = Path(place) / "images.npy"
            shape = (2 * BATCH * 8, 3, side, side)
            np.save(path, np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8))
            images = torch.from_numpy(np.load(path, mmap_mode="c"))
            order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
            start = processor()
            for batch in order.split(BATCH):
                images[batch]
            print(f"{side}: {len(images) / (processor() - start):.0f} images per second", flush=True)


def forget_pages() -> None:
    """Ask the system to drop the cache's pages from memory, so that they are read from the disk."""
    for path in (platformdirs.user_cache_path("lipcert") / "images").glob("*.npy"):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def processor() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measured(root: Path, side: int) -> dict[str, float]:
    with TemporaryDirectory(dir=root.parent) as cache:
        command = [sys.executable, __file__, "worker", str(root), str(side)]
        environment = {**os.environ, "XDG_CACHE_HOME": cache}
        found: dict[str, float] = json.loads(
            subprocess.check_output(command, env=environment, encoding="utf-8").splitlines()[-1]
        )
    print(root.name, side, found, flush=True)
    return found


def row(name: str, side: int, found: dict[str, float]) -> list[str]:
    per_image = 1e3 * found["decode"] / found["images"]
    return [
        name,
        f"{side}",
        f"{found['decode'] / 60:.1f}",
        f"{per_image:.2f}",
        f"{found['again']:.2f}",
        f"{found['GB']:.2f}",
        f"{found['peak']:.2f}",
        f"{found['cold']:.0f}",
        f"{found['warm']:.0f}",
    ]


def computed(side: int, found: dict[str, float]) -> list[str]:
    """ImageNet's row, in proportion to the number of images; reading and memory are not computed."""
    times = IMAGENET / found["images"]
    grown = {**found, **{name: times * found[name] for name in ("decode", "again", "GB", "images")}}
    return [*row("ImageNet, computed", side, grown)[:6], "–", "–", "–"]


def main(counts: tuple[int, ...]) -> None:
    rows, last = [], []
    with TemporaryDirectory() as place:
        for count in counts:
            kilobytes = write_folder(Path(place) / str(count), count)
            for side in SIDES:
                found = measured(Path(place) / str(count), side)
                rows.append(row(f"{count:,}", side, found))
                if count == max(counts):
                    last.append(computed(side, found))
    titles = ["files", "side", "decoding, core-minutes", "ms per image", "loading again, s", "cache, GB"]
    titles += ["peak memory, GB", "cold images per s", "warm images per s"]
    note = (
        f"JPEG files of 500×400 pixels and {kilobytes:.0f} kB, 90 % of them training; shuffled reading in "
        f"{BATCHES} batches of {BATCH} whose pixels are added up, first from the disk, then from memory, "
        "beside other work"
    )
    write_table("image-folder", note, titles, [*rows, *last])


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        worker(*sys.argv[2:])
    elif sys.argv[1:] == ["read"]:
        read()
    else:
        main(tuple(map(int, sys.argv[1:])) or COUNTS)
