"""The float64 logits of a proved model, and their margins less what rounding may have taken."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from lipcert.bounds.evaluation import Evaluation, evaluate, joined, plain
from lipcert.bounds.provers.summing import summing
from lipcert.certificates.certificate import Rounding
from lipcert.certificates.proved_model import ProvedModel
from lipcert.types import Shape

# Numbers of inputs that fill a cache, and of weights that are worth another sample at a time.
_CACHED, _WEIGHTS_PER_SAMPLE = 1 << 16, 1 << 17


# Numbers in the largest value between two layers, for the pieces of other devices.
_AT_ONCE = 1 << 25


def _shapes(proved: ProvedModel) -> list[Shape]:
    return [step.shape for step in proved.program.steps]


@dataclass(frozen=True)
class Margins:
    """Hold f_i − f_j from below and K_ij from above, for the predicted class i and every rival j."""

    logits: Tensor  # (B, N)
    top: Tensor  # (B,)
    margin: Tensor  # (B, N)
    constants: Tensor  # (B, N)
    limit: Tensor | None = None  # (B,) within which float32 does not overflow


class Float64Evaluation:
    """Evaluates a proved model in float64, where its float64 copy is; the head always on the CPU."""

    def __init__(self, proved: ProvedModel) -> None:
        self._proved = proved
        self._growths = proved.replay.growths[: len(proved.features.steps)]
        # Convolutions in float64 are products with patches written out: a few images fill a cache. Rounding
        # looks at all weights once per piece, so many of them want larger pieces.
        weights = sum(p.numel() for p in proved.model.parameters())
        self.piece = max(16, _CACHED // math.prod(proved.input_shape), weights // _WEIGHTS_PER_SAMPLE)
        if proved.where.type != "cpu":  # which has no such cache, but many cores
            largest = max(math.prod(shape) for shape in (proved.input_shape, *_shapes(proved)))
            self.piece = max(1, _AT_ONCE // largest)
        # Torch's float64 convolutions are faster with channels last, which others' layers may not expect.
        homes = {type(step.module).__module__.split(".")[0] for step in proved.program.steps}
        is_image = len(proved.input_shape) == 3 and homes <= {"torch", "lipcert"}
        is_image = is_image and proved.where.type == "cpu"
        self._layout = torch.channels_last if is_image else torch.contiguous_format

    def features(self, x: Tensor, rounding: Rounding) -> Evaluation:
        """Return what the head takes, with its errors."""
        proved = self._proved
        x = x.detach().to(proved.where, torch.float64, memory_format=self._layout)
        pieces = torch.split(x, self.piece)
        float32 = rounding == "float32"
        known = () if float32 else self._growths  # what float32 loses is worth a second look
        with summing(proved.where):
            if rounding == "ignored":
                features = torch.cat([plain(proved.features, piece) for piece in pieces]).cpu()
                return Evaluation(features, features.new_zeros(len(x)))
            found = [evaluate(proved.features, proved.bound, p, float32, growths=known) for p in pieces]
        return joined(found).on_cpu()

    def logits(self, x: Tensor) -> Tensor:
        """Return the logits that certificates are about: (B, N)."""
        return self._proved.head(self.features(x, "ignored").features)

    def margins(self, x: Tensor, rounding: Rounding) -> Margins:
        """Return margins less their errors; the errors of float32 grow with the distance, as constants do."""
        head, at_x = self._proved.head, self.features(x, rounding)
        logits = head(at_x.features)  # (B, N)
        top = logits.argmax(dim=1)  # (B,)
        margin, constants = head.margin(logits, top), self._proved.pairs[top]  # (B, N)
        if rounding != "ignored":
            margin = margin - head.margin_error(at_x, top, margin)
        if at_x.deployed is None:
            return Margins(logits, top, margin, constants)
        lost, growing = head.float32_error(at_x, at_x.deployed, top)
        limit = head.float32_limit(at_x, at_x.deployed)
        return Margins(logits, top, margin - lost, constants + growing, limit)
