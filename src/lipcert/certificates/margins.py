"""The float64 logits of a proved model, and their margins less what rounding may have taken."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from lipcert.bounds.evaluation import Evaluation, evaluate, joined, plain
from lipcert.certificates.certificate import Rounding
from lipcert.certificates.proved_model import ProvedModel

# Numbers of inputs that fill a cache, and of weights that are worth another sample at a time.
_CACHED, _WEIGHTS_PER_SAMPLE = 1 << 16, 1 << 17


@dataclass(frozen=True)
class Margins:
    """Hold f_i − f_j from below and K_ij from above, for the predicted class i and every rival j."""

    logits: Tensor  # (B, N)
    top: Tensor  # (B,)
    margin: Tensor  # (B, N)
    constants: Tensor  # (B, N)
    limit: Tensor | None = None  # (B,) within which float32 does not overflow


class Float64Evaluation:
    """Evaluates a proved model in float64 on the CPU, whatever it runs on."""

    def __init__(self, proved: ProvedModel) -> None:
        self._proved = proved
        self._growths = proved.replay.growths[: len(proved.features.steps)]
        # Convolutions in float64 are products with patches written out: a few images fill a cache. Rounding
        # looks at all weights once per piece, so many of them want larger pieces.
        weights = sum(p.numel() for p in proved.model.parameters())
        self.piece = max(16, _CACHED // math.prod(proved.input_shape), weights // _WEIGHTS_PER_SAMPLE)
        # Torch's float64 convolutions are faster with channels last, which others' layers may not expect.
        homes = {type(step.module).__module__.split(".")[0] for step in proved.program.steps}
        is_image = len(proved.input_shape) == 3 and homes <= {"torch", "lipcert"}
        self._layout = torch.channels_last if is_image else torch.contiguous_format

    def features(self, x: Tensor, rounding: Rounding) -> Evaluation:
        """Return what the head takes, with its errors."""
        proved = self._proved
        x = x.detach().to("cpu", torch.float64, memory_format=self._layout)
        pieces = torch.split(x, self.piece)
        if rounding == "ignored":
            features = torch.cat([plain(proved.features, piece) for piece in pieces])
            return Evaluation(features, x.new_zeros(len(x)))
        float32 = rounding == "float32"
        known = () if float32 else self._growths  # what float32 loses is worth a second look
        return joined([evaluate(proved.features, proved.bound, p, float32, growths=known) for p in pieces])

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
