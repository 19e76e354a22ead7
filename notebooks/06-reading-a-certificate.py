# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {name: python3, language: python, display_name: Python 3}
# ---

# %% [markdown]
# # Reading a certificate
# A training ends with a file `certificate.json`. It states what was proved about the network, so that
# others can prove it again. This is the one of the bundled network `moons-cll`.

# %%
import math

import matplotlib.pyplot as plt

import lipcert
from lipcert.certificates.statement import read_certificate
from lipcert.certificates.verification import verify
from lipcert.models.model_files import model_file, read_card
from lipcert.report.palette import BLUE

weights = model_file("moons-cll")
statement = read_certificate(weights.parent / "certificate.json")

# %% [markdown]
# ## What it is about
# Weights and data are named by their SHA-256, a fingerprint. A network with other weights needs another
# certificate.

# %%
print("weights", statement.model_sha256[:16], "…")
for name, split in statement.splits.items():
    print(f"{name:7}", split.sha256[:16], f"… {split.samples:,} samples")

# %% [markdown]
# ## How far the scores can change
# Each layer has a Lipschitz constant: if its input moves by d, its output moves by at most that constant
# times d. Layers follow one another, so their constants multiply. The largest over the pairs of classes is
# `k_f`.

# %% alt="Bars: the proved constant of every layer, between 1 and 2.4"
figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
names = [f"{layer.path} {layer.kind}" for layer in statement.layers]
bars = axes.barh(names, [layer.upper for layer in statement.layers], color=BLUE)
axes.bar_label(bars, fmt="%.2f", padding=3)
axes.set(xlabel="proved constant", xlim=(0, 2.7))
axes.invert_yaxis()
plt.show()
product = math.prod(layer.upper for layer in statement.layers)
print(f"product {product:.2f}, k_features {statement.k_features:.2f}, k_f {statement.k_f:.2f}")

# %% [markdown]
# ## What was counted
# A sample counts at a radius if its class is correct and no input within that radius gets another class.
# The interval says what to expect of new samples from the same source, with a confidence of 95 %.

# %%
for name, split in statement.splits.items():
    for row in split.rows:
        low, high = row.interval
        counts = f"{row.count:6,} of {split.samples:6,} samples"
        print(f"{name} radius {row.radius:.2f}: {counts}, from {low:.2%} to {high:.2%} expected")

# %% [markdown]
# ## Trust, but verify
# `verify` proves all constants again from the weights, and counts again on the data. The command for it is
# `lipcert verify moons-cll`. Everything holds.

# %%
model, card = lipcert.load("moons-cll"), read_card(weights)
data = {"val": lipcert.data.load("moons", split="val")}
found = [check.holds for check in verify(statement, model, card, None, data)]
print(f"{found.count(True)} statements hold, {found.count(False)} do not")

# %% [markdown]
# A forger would like a smaller constant, because half the constant doubles every radius. This is found at
# once.

# %%
forged = statement.model_copy(update={"k_f": statement.k_f / 2})
for check in verify(forged, model, card, None, {}):
    if check.holds is False:
        print("does not hold:", check.statement)

# %% [markdown]
# So nobody has to trust the author of a certificate: weights and data are enough to check it.
