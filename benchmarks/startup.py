"""How long the library and the command take to start, beside what they cannot do without.

Fresh processes in turns, medians. Writes results/startup.json.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from timing import interleaved, print_ratios

from results import write_table


def run(*arguments: str) -> Callable[[], None]:
    return lambda: (
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL) and None
    )


def main() -> None:
    timings = interleaved(
        {
            "import typer, rich": run("-c", "import typer, rich"),
            "lipcert --help": run("-m", "lipcert.cli", "--help"),
            "import torch": run("-c", "import torch"),
            "import lipcert": run("-c", "import lipcert"),
            "from lipcert import certifier": run("-c", "from lipcert import certifier"),
        },
        rounds=15,
    )
    print_ratios(timings, "import torch")
    pairs = [("lipcert --help", "import typer, rich"), ("import lipcert", "import torch")]
    pairs += [("from lipcert import certifier", "import torch")]
    table = [[work, base, str(timings[work].ratio(timings[base]))] for work, base in pairs]
    print(*table, sep="\n")
    write_table("startup", "fresh processes in turns, medians and quartiles", ["work", "to", "ratio"], table)


if __name__ == "__main__":
    main()
