"""One epoch as a line of a log, for trainings that no terminal shows."""

from __future__ import annotations

from lipcert.runs.metrics import Metrics
from lipcert.tables.kinds import CONSTANT, LOSS, duration, percent


def epoch_line(metrics: Metrics, epochs: int, spent: float, left: float) -> str:
    """Say how far a training is: `spent` and `left` are seconds of the clock on the wall.

    Example:
        >>> print(epoch_line(Metrics(3, 12, 0.51234, 0.871, 6.0214, 1.0), 40, 12.0, 148.0))
        epoch 3 of 40: loss 0.512, accuracy 87.1 %, K_f 6.0; 12.0 s wall-clock time, about 148.0 s left
    """
    loss, k_f = LOSS.text(metrics.loss), CONSTANT.text(metrics.k_f)
    parts = [f"loss {loss}, accuracy {percent(metrics.accuracy)}, K_f {k_f}"]
    found = metrics.validation
    if found is not None:
        cra = f"CRA {percent(found.val_cra_estimate)} (estimated constants)"
        parts.append(f"validation accuracy {percent(found.val_accuracy)}, {cra}")
    remains = f"about {duration(left)} left" if metrics.epoch < epochs else "done"
    parts.append(f"{duration(spent)} wall-clock time, {remains}")
    return f"epoch {metrics.epoch} of {epochs}: {'; '.join(parts)}"
