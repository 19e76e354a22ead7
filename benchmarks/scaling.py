"""How much faster do two and four processes train? 4C3F with CLL on real CIFAR-10, one thread per process.

`python benchmarks/scaling.py` trains three epochs of 5000 images per round with 1, 2 and 4 processes in
turns, as `lipcert train --devices N` does. The first epoch warms up and does not count. Efficiency is the
time of one process over N times that of N processes: 1 is ideal where every process has a core. Writes
results/scaling.json. `python benchmarks/scaling.py 2` makes two rounds instead of five.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from timing import Timing

from lipcert.cores import available_cores
from lipcert.runs import Run
from results import write_table

PROCESSES = (1, 2, 4)
SETTINGS = (
    "train.epochs=3",
    "train.threads=1",
    "train.validate_every=0",
    "data.val=0.9",
    "certify.effort=fast",
    "certify.tightness=null",
    "certify.splits=[test]",
    "certify.rounding=ignored",
)


def seconds(processes: int) -> float:
    """Return the seconds of the second and third epoch."""
    with TemporaryDirectory() as folder:
        run = Run(Path(folder) / "run")
        command = [sys.executable, "-m", "lipcert", "train", "cifar10-4c3f-fast", "--output", str(run.path)]
        settings = [word for setting in SETTINGS for word in ("--set", setting)]
        options = ["--accelerator", "cpu", "--devices", str(processes)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        subprocess.run([*command, *settings, *options], env=environment, check=True, capture_output=True)
        first, *_, last = run.metrics()
        return last.seconds - first.seconds


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    times: dict[int, list[float]] = {count: [] for count in PROCESSES}
    for _ in range(rounds):
        for count in PROCESSES:
            times[count].append(seconds(count))
    timings = {count: Timing(tuple(found)) for count, found in times.items()}
    alone = timings[1]
    rows = []
    for count, timing in timings.items():
        speedup = alone.ratio(timing)
        rows.append([str(count), str(speedup), str(speedup / count)])
        print(*rows[-1], sep="  ")
    cores = f"one thread per process on {available_cores()} cores"
    load = f"load average {os.getloadavg()[2]:.0f}"  # everything that ran meanwhile
    note = f"4C3F, CLL, batch 128, {cores}, {rounds} rounds in turns, medians and quartiles, {load}"
    write_table("scaling", note, ["processes", "speed / one process", "efficiency"], rows)


if __name__ == "__main__":
    main()
