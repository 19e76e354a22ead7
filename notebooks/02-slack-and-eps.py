# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {name: python3, language: python, display_name: Python 3}
# ---

# %% [markdown]
# # Slack and ε in pictures
# Training for certificates has two numbers to choose. **ε** (epsilon) is the radius that every training
# point shall get. **Slack** says how strictly: with little slack every point counts, with much slack some
# may fall short.

# %%
import matplotlib.pyplot as plt
import torch

import lipcert
from lipcert.report.palette import BLUE, CLASSES, GREEN, ORANGE, WRONG

# Two moons, 0.3 apart: a line in the middle leaves 0.15 on each side, so ε = 0.15 just fits.
data = lipcert.data.load("moons", train=500)

# %% [markdown]
# A short training. `Bounded` makes the network return its scores, and with them its Lipschitz constant: how
# fast the scores can change at most. From both, the loss CLL knows how far the boundary is.


# %%
def train(eps: float, slack: float) -> lipcert.Certifier:
    """Train a network on the moons, and return what certifies it."""
    torch.manual_seed(1)
    model = lipcert.models.create("mlp", num_classes=2, input_shape=(2,))
    bounded = lipcert.Bounded(model, input_shape=(2,))
    loss = lipcert.losses.CLL(eps=eps, slack=slack, lam=1e-6, sides="one")
    optimizer = torch.optim.Adam(bounded.parameters(), lr=1e-2)
    for _ in range(200):
        logits, lip = bounded(data.x)
        optimizer.zero_grad()
        (loss(logits, data.y, lip).mean() + loss.penalty(lip)).backward()
        optimizer.step()
    return lipcert.certifier(model.eval(), input_shape=(2,))


# %% [markdown]
# One picture per training. Black is the boundary between the classes; at the grey lines the radius is ε. A
# point is red if it is wrong or its radius is not above ε. The title gives the share of the others.

# %%
across, along = torch.meshgrid(torch.linspace(-1.4, 2.4, 160), torch.linspace(-0.9, 1.4, 96), indexing="xy")
grid = torch.stack([across.flatten(), along.flatten()], dim=1)


def draw(axes: plt.Axes, eps: float, slack: float) -> None:
    """Train, and show boundary, margin and points."""
    certify = train(eps, slack)
    everywhere, found = certify(grid), certify(data.x)
    side = (everywhere.radius * (1 - 2 * everywhere.prediction)).reshape(across.shape)
    good = (found.prediction == data.y) & found.at(eps)
    axes.scatter(*data.x.T, s=3, c=[CLASSES[y] if ok else WRONG for y, ok in zip(data.y, good, strict=True)])
    axes.contour(across, along, side, levels=[-eps, 0, eps], colors=["grey", "black", "grey"])
    axes.set(aspect="equal", xticks=[], yticks=[], title=f"ε {eps}, slack {slack}: {good.float().mean():.0%}")


# %% [markdown]
# ## ε: how far
# A small ε is easily reached, and leaves room unused. At 0.15 the margin fills the gap. At 0.3 it cannot
# fit: the training gives points up, and the boundary becomes coarse.

# %% alt="Four trainings with growing ε; the margin widens, and with 0.3 many points are red"
figure, axes = plt.subplots(2, 2, figsize=(7, 4.9), layout="constrained")
for place, eps in zip(axes.flat, (0.05, 0.1, 0.15, 0.3), strict=True):
    draw(place, eps, slack=0.01)
plt.show()

# %% [markdown]
# ## Slack: how strictly
# The last picture shows what a point costs by its distance from the boundary. With little slack the cost
# rises steeply below ε. With much slack it is nearly flat, so that single points hardly matter.

# %% alt="Three trainings with less and less slack, and the cost of a point by its distance for each slack"
figure, axes = plt.subplots(2, 2, figsize=(7, 4.9), layout="constrained")
distance = torch.linspace(-0.1, 0.4, 100)
slacks = {0.3: ORANGE, 0.1: GREEN, 0.001: BLUE}
for place, (slack, colour) in zip(axes.flat, slacks.items(), strict=False):
    draw(place, 0.15, slack)
    scale = lipcert.losses.calibrated_scale(0.15, slack)
    cost = torch.nn.functional.softplus((0.15 - distance) / scale)
    axes[1, 1].plot(distance, cost, color=colour, label=f"slack {slack}")
axes[1, 1].set(xlabel="distance from the boundary", ylabel="cost", ylim=(0, 6))
axes[1, 1].legend(frameon=False)
plt.show()

# %% [markdown]
# These moons have no outliers, so little slack is best. Real data have some, and more slack can give them
# up for a better boundary elsewhere. Compare a few values on data that are kept for it.
