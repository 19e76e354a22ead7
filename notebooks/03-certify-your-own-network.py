# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {name: python3, language: python, display_name: Python 3}
# ---

# %% [markdown]
# # Certify your own network
# Any PyTorch network can get certificates, if lipcert knows a rule for each of its layers. Nothing in the
# class below comes from lipcert.

# %%
import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

import lipcert
from lipcert.report.palette import BLUE, GREY


# %%
class Network(nn.Module):
    """Classify images of 8 × 8 pixels by a convolution, a block with a shortcut, and a dense layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 16, 4, stride=2, padding=1)
        self.inner = nn.Conv2d(16, 16, 3, padding=1)
        self.head = nn.Linear(16 * 4 * 4, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Return ten scores per image."""
        x = torch.relu(self.first(x))
        x = x + torch.relu(self.inner(x))
        return self.head(x.flatten(1))


# %% [markdown]
# The data are handwritten digits, with pixels from 0 to 1. Every fourth image is kept for the test.

# %%
digits = load_digits()
images = torch.tensor(digits.images / 16, dtype=torch.float32)[:, None]
labels = torch.tensor(digits.target)
test = torch.arange(len(labels)) % 4 == 0

# %% [markdown]
# One loop trains with any loss. `Bounded` wraps the network. It returns the scores and also their Lipschitz
# constant: how fast the scores can change at most when the image changes.


# %%
def train(loss: lipcert.losses.Loss) -> nn.Module:
    """Train a network in fifteen passes over the images."""
    torch.manual_seed(0)
    model, x, y = Network(), images[~test], labels[~test]
    bounded = lipcert.Bounded(model, input_shape=(1, 8, 8))
    optimizer = torch.optim.Adam(bounded.parameters(), lr=3e-3)
    for batch in (batch for _ in range(15) for batch in torch.randperm(len(y)).split(64)):
        logits, lip = bounded(x[batch])
        optimizer.zero_grad()
        (loss(logits, y[batch], lip).mean() + loss.penalty(lip)).backward()
        optimizer.step()
    return model.eval()


# %% [markdown]
# Cross-entropy is the usual loss and ignores the constant. CLL asks every image for a distance `eps` from
# the boundary. Then `certifier` proves the constant, and every test image gets a radius: no change of the
# pixels with a smaller L2 norm changes the class.

# %% alt="Share of test images that are correct and certified, by radius: CLL stays far above cross-entropy"
cll = lipcert.losses.CLL(eps=0.3, slack=0.25, lam=1e-3)
losses = {"cross-entropy": (lipcert.losses.CrossEntropy(), GREY), "CLL": (cll, BLUE)}
figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
radii = torch.linspace(0, 1.2, 61).tolist()
for name, (loss, colour) in losses.items():
    certify = lipcert.certifier(train(loss), input_shape=(1, 8, 8))
    found = lipcert.certified_accuracy(certify(images[test]), labels[test], radii)
    axes.plot(radii, [100 * at.value for at in found], color=colour, label=name)
    print(f"{name}: accuracy {found[0].value:.1%}, certified at 0.3: {found[15].value:.1%}")
axes.set(xlabel="radius (L2 norm of the change)", ylabel="correct and certified (%)", ylim=(0, 100))
axes.legend(frameon=False)
plt.show()

# %% [markdown]
# Cross-entropy is more accurate, and certifies hardly anything at 0.3. CLL certifies most images there.
#
# A layer without a rule is an error: it is never counted as harmless.

# %%
try:
    lipcert.upper(nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 2)), (4,))
except lipcert.UnknownBoundError as error:
    print(error)

# %% [markdown]
# The page on layers lists every layer with a rule.
