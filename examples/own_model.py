"""Certify a network of your own: any nn.Module whose layers have a rule, with branches or without.

python examples/own_model.py
"""

import torch
from torch import Tensor, nn

import lipcert


class Network(nn.Module):
    """A convolution, a residual block, a head; nothing of lipcert in it."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 8, 3, stride=2, padding=1)
        self.inner = nn.Conv2d(8, 8, 3, padding=1)
        self.head = nn.Linear(8 * 7 * 7, 10)

    def forward(self, x: Tensor) -> Tensor:
        """(B, 10)."""
        x = torch.relu(self.first(x))
        x = x + torch.relu(self.inner(x))  # its constant is at most 1 + that of the branch
        return self.head(x.flatten(1))


torch.manual_seed(0)
model = Network().eval()
for layer in lipcert.upper(model, (1, 14, 14)).layers:
    print(f"{layer.path:8} {layer.kind:8} at most {layer.upper:.4f}, {layer.prover}")
certificate = lipcert.certify(model, torch.rand(3, 1, 14, 14))
print("classes", certificate.prediction.tolist(), "radii", [f"{r:.4f}" for r in certificate.radius])

try:  # a layer without a global constant is refused, never counted as 1
    lipcert.upper(nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 2)), (4,))
except lipcert.UnknownBoundError as error:
    print("refused:", error)
