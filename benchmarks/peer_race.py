"""A race over minutes of one thread on CIFAR-10: each library with the layers and the loss it recommends.

Networks have 4C3F's shape. Every entry sees flipped images and a rate that rises soon and falls to 0. Adam's
rate and the batch size of the peers are the best of six short trainings each, by certified accuracy at 36/255
of 1,000 images that the race holds out. Every network is certified by the same proofs. Run by
benchmarks/peers.py race, in its environment. Writes results/peers-race.json.
"""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import torch
from matplotlib.ticker import PercentFormatter
from peer_networks import ENTRIES, SHAPE, Entry, plain
from torch import Tensor, nn

from lipcert import certifier
from lipcert.data import load
from lipcert.report.figure import new_figure, save_figure
from lipcert.report.palette import series_look
from lipcert.train.schedules.trapezoid import Trapezoid
from results import read_table, write_table

RADII = (36 / 255, 72 / 255, 108 / 255)
BATCHES = (128, 512)
HELD_OUT = 1000
TITLES = [
    "entry",
    "rate",
    "batch",
    "epochs",
    "clean [%]",
    "CRA 36/255 [%]",
    "CRA 72/255 [%]",
    "CRA 108/255 [%]",
]
IMAGES = Path(__file__).parents[1] / "docs" / "images"

Pixels = tuple[Tensor, Tensor]


def split(name: str) -> Pixels:
    """Return images in [0, 1] and labels."""
    found = load("cifar10", name, val=0.0)
    return found.floats(slice(None)), found.y


def train(entry: Entry, data: Pixels, seconds: float, rate: float, batch: int) -> int:
    """Train for so long by the processor's clock, with nothing but steps; returns their number."""
    x, y = data
    optimizer, shape = entry.optimizer(rate), Trapezoid()
    starts = [group["lr"] for group in optimizer.param_groups]
    begin, steps = time.process_time(), 0
    entry.model.train()
    while (spent := (time.process_time() - begin) / seconds) < 1:
        for group, start in zip(optimizer.param_groups, starts, strict=True):
            group["lr"] = shape(start, spent)
        some = torch.randint(len(x), (batch,))
        images = torch.where(torch.rand(batch, 1, 1, 1) < 0.5, x[some].flip(3), x[some])
        error = entry.error(images, y[some])
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
        steps += 1
    return steps


def radii(model: nn.Module, data: Pixels) -> np.ndarray:
    """Return proved radii; −1 where the class is wrong."""
    x, y = data
    network = plain(model).eval()
    with torch.no_grad():
        assert torch.allclose(
            network(x[:64]), model(x[:64]), atol=1e-4
        )  # what is certified is what was trained
    found = certifier(network, SHAPE)(x)
    return torch.where(found.prediction == y, found.radius, -1.0).numpy()


def accuracies(found: np.ndarray) -> list[float]:
    """Return clean accuracy and CRA at the radii, in percent."""
    return [100 * float((found >= radius).mean()) for radius in (0.0, *RADII)]


def choose(name: str, data: Pixels, held_out: Pixels, seconds: float) -> tuple[float, int]:
    """Return the rate and batch size that certify most after a short training."""
    rates = ENTRIES[name]().rates
    if len(rates) == 1:
        return rates[0], BATCHES[0]
    scores = {}
    for rate, batch in product(rates, BATCHES):
        torch.manual_seed(0)
        entry = ENTRIES[name]()
        train(entry, data, seconds, rate, batch)
        scores[rate, batch] = accuracies(radii(entry.model, held_out))[1]
        print(f"{name}: rate {rate}, batch {batch}: {scores[rate, batch]:.1f} %", flush=True)
    return max(scores, key=lambda key: scores[key])


def compete(
    name: str, minutes: float, search: float, test: Pixels, held_out: Pixels, data: Pixels
) -> list[str]:
    """Choose, train and certify one entry; its radii are kept beside the table."""
    rate, batch = choose(name, data, held_out, 60 * search)
    torch.manual_seed(1)
    entry = ENTRIES[name]()
    steps = train(entry, data, 60 * minutes, rate, batch)
    found = radii(entry.model, test)
    np.save(_kept(name), found.astype(np.float32))
    epochs = steps * batch / len(data[0])
    return [name, f"{rate:g}", str(batch), f"{epochs:.1f}", *(f"{a:.1f}" for a in accuracies(found))]


def _kept(name: str) -> Path:
    return Path(f"race-{name.replace(' ', '-').replace(',', '')}.npy")


def draw(names: Sequence[str], minutes: float) -> None:
    """Draw certified accuracy over the radius for every entry."""
    figure, axes = new_figure((6.4, 3.8))
    grid = np.linspace(0, 1, 201)
    for i, name in enumerate(names):
        look, found = series_look(i), np.load(_kept(name))
        axes.plot(
            grid, [(found >= r).mean() for r in grid], color=look.colour, linestyle=look.dash, label=name
        )
    axes.set(xlabel="radius", xlim=(0, 1), ylim=(0, None))
    axes.set_title(f"CIFAR-10 after {minutes:g} minutes of one thread: certified accuracy", loc="left")
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.legend(frameon=False)
    save_figure(figure, IMAGES / "peers-race")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--search", type=float, default=1.0, help="minutes of each short training")
    parser.add_argument("--only", nargs="*", default=list(ENTRIES))
    given = parser.parse_args()
    torch.set_num_threads(1)
    x, y = split("train")
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    held_out, data = ((x[part], y[part]) for part in (order[:HELD_OUT], order[HELD_OUT:]))
    table = kept_rows(given.minutes)
    for name in given.only:
        row = compete(name, given.minutes, given.search, split("test"), held_out, data)
        print(*row, sep="  ", flush=True)
        table = kept_rows(given.minutes) | {name: row}
        write(table, given.minutes, given.search)
    draw([name for name in ENTRIES if name in table], given.minutes)


def note_of(minutes: float) -> str:
    """Return the note below the table, by which an earlier one is recognised."""
    return f"test split, proved; {minutes:g} minutes of one thread each, one seed"


def kept_rows(minutes: float) -> dict[str, list[str]]:
    """Return the rows of earlier runs of the same length: entries may be run one by one."""
    return {row[0]: row for row in read_table("peers-race", note_of(minutes))}


def write(table: dict[str, list[str]], minutes: float, search: float) -> None:
    """Write the finished rows, in the order of the entries."""
    command = ["python", "benchmarks/peers.py", "race", f"--minutes={minutes:g}", f"--search={search:g}"]
    rows = [table[name] for name in ENTRIES if name in table]
    write_table("peers-race", note_of(minutes), TITLES, rows, command=shlex.join(command))


if __name__ == "__main__":
    main()
