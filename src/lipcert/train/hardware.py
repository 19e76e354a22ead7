"""The hardware of a training: devices, nodes, strategy, precision. It is not part of a recipe.

One process starts the others, or torchrun or SLURM does; Fabric detects which.
"""

from __future__ import annotations

import atexit
import os
from dataclasses import dataclass
from typing import Literal, cast, get_args

from lightning_fabric import Fabric
from lightning_fabric.strategies.ddp import DDPStrategy
from lightning_fabric.strategies.strategy import Strategy
from torch import Tensor, distributed
from torch.accelerator import is_available

from lipcert.certificates.shards import ALONE, Shard
from lipcert.errors import InputError
from lipcert.suggestions import expected_one_of
from lipcert.train.bfloat16 import check_bfloat16

# The words of Fabric, and the precisions in which training is tested.
Accelerator = Literal["auto", "cpu", "cuda", "gpu", "mps", "tpu"]
Precision = Literal["32", "bf16-mixed", "16-mixed"]
ACCELERATORS: tuple[Accelerator, ...] = get_args(Accelerator)
PRECISIONS: tuple[Precision, ...] = get_args(Precision)


@dataclass(frozen=True)
class Hardware:
    """The hardware to run on."""

    accelerator: Accelerator = "auto"
    devices: int | str = 1
    nodes: int = 1
    strategy: str = "auto"
    precision: Precision = "32"

    def __post_init__(self) -> None:
        if self.accelerator not in ACCELERATORS:
            raise InputError(f"--accelerator: {expected_one_of(ACCELERATORS, self.accelerator)}")
        if self.precision not in PRECISIONS:
            raise InputError(f"--precision: {expected_one_of(PRECISIONS, self.precision)}")
        if self.nodes < 1:
            raise InputError(f"--nodes: expected at least 1, got {self.nodes}")
        if self.devices != "auto" and not (str(self.devices).isdigit() and int(self.devices) > 0):
            raise InputError(f"--devices: expected a number > 0 or auto, got {self.devices!r}")

    def launch(self) -> Fabric:
        """Start the other processes, if there are any that nothing else started."""
        fabric = self.prepared()
        launch(fabric)
        return fabric

    def prepared(self) -> Fabric:
        """Choose the devices; raise `InputError` if they cannot be had, before anything is started."""
        count, nodes = started(self.devices, self.nodes)
        devices = int(count) if str(count).isdigit() else count
        on_cpu = self.accelerator == "cpu" or (self.accelerator == "auto" and not is_available())
        if self.precision == "16-mixed" and on_cpu:  # Fabric would warn, and take another precision
            raise InputError("--precision 16-mixed: needs an accelerator; a CPU trains in 32 or bf16-mixed")
        if self.precision == "bf16-mixed" and on_cpu:
            check_bfloat16()
        precision = "32-true" if self.precision == "32" else self.precision
        try:
            fabric = Fabric(
                accelerator=self.accelerator,
                devices=devices,
                num_nodes=nodes,
                strategy=self._strategy(nodes > 1 or devices != 1),
                precision=precision,
            )
        except (ValueError, RuntimeError, ImportError) as error:
            raise InputError(self._complaint(error)) from None
        return fabric

    def _complaint(self, error: Exception) -> str:
        if isinstance(error, RuntimeError | ImportError) and self.accelerator not in ("auto", "cpu"):
            return (
                f"--accelerator {self.accelerator}: there is none that torch can use here "
                "(`lipcert doctor` shows what is found); --accelerator auto takes what there is"
            )
        return f"hardware: {str(error).partition(chr(10))[0]}"  # Fabric names the argument that does not fit

    def _strategy(self, several: bool) -> str | Strategy:
        if self.strategy == "ddp" or (self.strategy == "auto" and several):
            # Every process updates its power-iteration vectors alike: there is nothing to send.
            return DDPStrategy(forward_sync_buffers=False)
        return self.strategy


def launch(fabric: Fabric) -> None:
    """Start the other processes of a prepared training."""
    fabric.launch()
    atexit.register(_leave)


def _leave() -> None:
    """Leave the process group while the interpreter is intact: gloo's threads may abort it later."""
    if distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()


def shard_of(fabric: Fabric) -> Shard:
    """Return this process's part of the work."""
    if fabric.world_size == 1:
        return ALONE

    def total(value: Tensor) -> Tensor:
        summed = fabric.all_reduce(value.to(fabric.device).clone(), reduce_op="sum")
        return cast(Tensor, summed).to(value.device)

    return Shard(fabric.global_rank, fabric.world_size, total, fabric.broadcast)


def is_first_process() -> bool:
    """Return whether this process is the one that writes, before any process group exists."""
    given = os.environ
    if "RANK" in given:  # set by torchrun
        return int(given["RANK"]) == 0
    # A node started by hand has NODE_RANK; processes that Fabric starts have LOCAL_RANK; srun's have PROCID.
    keys = ("NODE_RANK", "GROUP_RANK", "LOCAL_RANK", "SLURM_PROCID")
    return all(int(given.get(key, "0")) == 0 for key in keys)


def started(devices: int | str, nodes: int) -> tuple[int | str, int]:
    """Return devices and nodes as torchrun or srun started them, unless they are given."""
    given = os.environ
    if (str(devices), nodes) != ("1", 1):
        return devices, nodes
    if "LOCAL_WORLD_SIZE" in given and "WORLD_SIZE" in given:
        local = int(given["LOCAL_WORLD_SIZE"])
        return local, int(given["WORLD_SIZE"]) // local
    if "SLURM_PROCID" in given and given.get("SLURM_JOB_NAME") not in ("bash", "interactive"):
        nodes = int(given.get("SLURM_NNODES", "1"))
        return max(int(given.get("SLURM_NTASKS", "1")) // nodes, 1), nodes
    return devices, nodes
