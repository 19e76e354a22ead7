# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {name: python3, language: python, display_name: Python 3}
# ---

# %% [markdown]
# # A first certificate
# A classifier gives an answer. A *certified* classifier also gives a distance, the **radius**: no input
# closer than that gets another answer. The radius is proved, so no attack can find such an input.

# %%
import matplotlib.pyplot as plt
import torch

import lipcert
from lipcert.report.palette import CLASSES

# %% [markdown]
# The data are two moons: points in the plane, of two classes. lipcert brings a small network that was
# trained on them. The points below are new to it.

# %%
model = lipcert.load("moons-cll")
data = lipcert.data.load("moons", split="test", test=1000)

# %% [markdown]
# `certifier` reads the weights and proves **K**, the Lipschitz constant: when the input moves by a distance
# d, the gap between the two scores of the network changes by at most K · d. This takes a moment, and is
# done once.

# %%
certify = lipcert.certifier(model, input_shape=(2,))
print(f"K is at most {certify.k_f:.1f}")

# %% [markdown]
# A point with the gap g can therefore move by g / K before the classes change places. That is its radius.

# %%
points = data.x[[60, 180, 320, 430, 560, 690, 820, 940]]
certificate = certify(points)
for point, label, radius in zip(points, certificate.prediction, certificate.radius, strict=True):
    print(f"({point[0]:5.2f}, {point[1]:5.2f}) has class {data.classes[label]}, radius {radius:.3f}")

# %% [markdown]
# In the picture, the background shows the two classes. A disc has one colour throughout: that is the
# promise.

# %% alt="Two moons on a background in the colours of the classes, and eight discs of one colour each"
across, along = torch.meshgrid(torch.linspace(-1.4, 2.4, 300), torch.linspace(-0.9, 1.4, 180), indexing="xy")
grid = torch.stack([across.flatten(), along.flatten()], dim=1)
scores = certify.logits(grid)
figure, axes = plt.subplots(figsize=(7, 4.4), layout="constrained")
above = (scores[:, 1] > scores[:, 0]).reshape(across.shape)
axes.contourf(across, along, above, levels=[-0.5, 0.5, 1.5], colors=CLASSES, alpha=0.2)
axes.scatter(*data.x.T, s=3, c=[CLASSES[label] for label in data.y])
for point, radius in zip(points, certificate.radius, strict=True):
    axes.add_patch(plt.Circle(point.tolist(), float(radius), fill=False, linewidth=1.5))
axes.set(aspect="equal", xlabel="first coordinate", ylabel="second coordinate")
plt.show()

# %% [markdown]
# A proof needs no test, but a test costs little: 10,000 random points in every disc, none with another
# class.

# %%
direction = torch.nn.functional.normalize(torch.randn(10_000, 2, dtype=torch.float64), dim=1)
for point, label, radius in zip(points, certificate.prediction, certificate.radius, strict=True):
    inside = point + torch.rand(10_000, 1) ** 0.5 * radius * direction
    assert (certify.logits(inside).argmax(dim=1) == label).all()
print("no other class found")

# %% [markdown]
# One number sums up a classifier: the share of new points that are classified correctly *and* certified at
# a radius you choose. It is called certified accuracy.

# %%
for found in lipcert.certified_accuracy(certify(data.x), data.y, radii=[0.0, 0.05, 0.1, 0.15, 0.2]):
    print(f"radius {found.radius:.2f}: {100 * found.value:5.1f} % correct and certified")

# %% [markdown]
# The moons are 0.3 apart, so nobody can certify all points at more than 0.15. Here nearly all reach it.
