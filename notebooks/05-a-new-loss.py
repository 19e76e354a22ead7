# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {name: python3, language: python, display_name: Python 3}
# ---

# %% [markdown]
# # A new loss in ten minutes
# A loss tells the training what a good network is. Here is a new one for certified radii, from the idea to
# a trained network.

# %%
from dataclasses import dataclass

import matplotlib.pyplot as plt
import torch
from torch import Tensor

import lipcert
from lipcert.losses import LOSSES, Loss, label_radius
from lipcert.losses.base import check_number
from lipcert.report.palette import AMBER, BLUE, GREY
from lipcert.types import PairLip

# %% [markdown]
# ## The idea
# A loss in lipcert sees the scores of the network (`logits`), the correct classes (`labels`), and `lip`:
# Lipschitz constants, which say how fast the scores can change at most. Scores divided by constants are
# distances. `label_radius` gives them: how far a point is inside the region of its class, and below 0
# outside.
#
# The new loss asks how much of the distance `eps` is missing, as a share. A point that has it costs
# nothing.


# %%
@LOSSES.register("shortfall", example={"eps": 0.1})
@dataclass(frozen=True)
class Shortfall(Loss):
    """Charge every sample for the share of the distance eps that it lacks."""

    eps: float

    def __post_init__(self) -> None:
        check_number("eps", self.eps, above=0)

    def values(self, logits: Tensor, labels: Tensor, lip: PairLip) -> Tensor:
        """Return one value per sample, (B,)."""
        return (1 - label_radius(logits, labels, lip) / self.eps).relu()


# %% [markdown]
# ## Two checks
# By hand: with the constant 2, a lead of 0.1 is a distance of 0.05, half of eps. And a number added to all
# scores must change nothing.

# %%
shortfall = LOSSES.create("shortfall", eps=0.1)
logits, labels = torch.tensor([[0.1, 0.0], [0.0, 5.0]]), torch.tensor([0, 1])
lip = PairLip(features=torch.tensor(2.0), head=torch.tensor([[1.0], [0.0]]))
print("costs", shortfall(logits, labels, lip).tolist())
assert torch.allclose(shortfall(logits + 7, labels, lip), shortfall(logits, labels, lip), atol=1e-5)

# %% [markdown]
# ## A training
# The new loss, CLL and cross-entropy train the same network on two moons, for 250 steps each.

# %% alt="Share of points that are correct and certified, by radius, for the new loss, CLL and cross-entropy"
data, val = lipcert.data.load("moons", train=600), lipcert.data.load("moons", split="val", val=2000)
cll = lipcert.losses.CLL(eps=0.15, slack=0.01, lam=1e-6, sides="one")
losses = [LOSSES.create("shortfall", eps=0.15), cll, lipcert.losses.CrossEntropy()]
radii = torch.linspace(0, 0.3, 61).tolist()
figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for loss, colour in zip(losses, (AMBER, BLUE, GREY), strict=True):
    torch.manual_seed(1)
    model = lipcert.models.create("mlp", num_classes=2, input_shape=(2,))
    bounded = lipcert.Bounded(model, input_shape=(2,))
    optimizer = torch.optim.Adam(bounded.parameters(), lr=1e-2)
    for _ in range(250):
        logits, lip = bounded(data.x)
        optimizer.zero_grad()
        (loss(logits, data.y, lip).mean() + loss.penalty(lip)).backward()
        optimizer.step()
    found = lipcert.certified_accuracy(lipcert.certify(model.eval(), val.x), val.y, radii)
    axes.plot(radii, [100 * at.value for at in found], color=colour, label=type(loss).__name__)
    print(f"{type(loss).__name__:12} accuracy {found[0].value:.1%}, certified at 0.15: {found[30].value:.1%}")
axes.set(xlabel="radius", ylabel="correct and certified (%)", ylim=(0, 103))
axes.legend(frameon=False)
plt.show()

# %% [markdown]
# Put the class into a file `mine.py`, and write `loss: {name: shortfall, eps: 0.15}` into a recipe. Then
# `lipcert train recipe.yaml --import mine.py` trains with it.
