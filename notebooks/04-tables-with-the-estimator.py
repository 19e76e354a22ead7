# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {name: python3, language: python, display_name: Python 3}
# ---

# %% [markdown]
# # Tables with the estimator
# `CertifiedClassifier` works like every classifier of scikit-learn. It also says for each row how far the
# features may move, all together, before the class can change. That distance is its **radius**, and it is
# proved.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from lipcert import CertifiedClassifier
from lipcert.report.palette import BLUE, RED

# %% [markdown]
# The table has 569 tumours, 30 measurements of each, and the diagnosis. A quarter is kept for the test.

# %%
X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)

# %% [markdown]
# Two numbers steer the training. `eps` is the radius that every row shall get, in standard deviations of
# the features. `slack` says how many rows may fall short of it: more slack, fewer demands.

# %%
model = CertifiedClassifier(eps=0.25, slack=0.2, random_state=0).fit(X_train, y_train)
print(f"accuracy                      {model.score(X_test, y_test):.1%}")
print(f"correct and certified at 0.25 {model.certified_score(X_test, y_test):.1%}")

# %% [markdown]
# Each row has a radius of its own. A wrong answer has one, too: a radius speaks about the classifier, not
# about the truth. But wrong answers tend to have a small radius.

# %%
radius = model.certified_radius(X_test)
correct = model.predict(X_test) == y_test.to_numpy()
for row in range(4):
    print(f"row {row}: class {model.predict(X_test[row : row + 1])[0]}, radius {radius[row]:.2f}")
right, wrong = radius[correct], radius[~correct]
print(f"median radius: {np.median(right):.2f} if correct, {np.median(wrong):.2f} if wrong")

# %% alt="Histogram of the radii of the test rows; the few wrong rows have small radii"
figure, axes = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
axes.hist([right, wrong], bins=24, stacked=True, color=[BLUE, RED], label=["correct", "wrong"])
axes.set(xlabel="certified radius (standard deviations)", ylabel="rows of the test")
axes.legend(frameon=False)
plt.show()

# %% [markdown]
# So the radius helps to decide which answers to trust. Here, rows with a small radius go to a person
# instead.

# %%
for least in (0.0, 0.25, 0.5, 1.0):
    kept = radius > least
    answered = f"{kept.mean():6.1%} answered, {correct[kept].mean():6.1%} of these correct"
    print(f"radius above {least:4}: {answered}")

# %% [markdown]
# The estimator fits into pipelines, cross-validation and grid searches. A search for radii needs a score
# about radii: `scoring=lambda model, X, y: model.certified_score(X, y, eps=0.5)`.
