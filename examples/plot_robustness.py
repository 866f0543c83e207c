"""
Robustness: certified radii of rows
===================================

``certified_radius`` is the distance of a row to the decision surface in the norm p of the classifier, rounded down: no
smaller change of the row changes its label. The example computes the radii of all test rows for p = 2 and p = ∞, and an
attack that changes a label with 1.001 radii, so that the radius cannot be larger.
"""

import matplotlib.pyplot as plt
import numpy as np
import real_data

from maxmargin import MaxMarginClassifier

X, y = real_data.load("mnist")
X_test, y_test = real_data.load("mnist-test")
rows, tests = np.flatnonzero(np.isin(y, (4, 9)))[:1500], np.isin(y_test, (4, 9))
X, y, X_test, y_test = X[rows], y[rows], X_test[tests], y_test[tests]

# %%
# Fours and nines of MNIST, with grey values from 0 to 1. For p = 2 the radius limits the Euclidean norm of the change;
# for p = ∞ it limits the change of every grey value.

euclid = MaxMarginClassifier(0.01, loss="hinge", p=2, tol=1e-2, random_state=0).fit(X, y)
cube = MaxMarginClassifier(0.1, loss="hinge", p=np.inf, norm_power=1, tol=1e-2, random_state=0).fit(X, y)

# %%
# The share of the test rows whose label is correct and cannot change, by the size of the change.

fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
fig.suptitle("fours and nines, test rows")
for ax, model in zip(axes, (euclid, cube)):
    radii = np.sort(model.certified_radius(X_test)[model.predict(X_test) == y_test])
    ax.step(
        radii, np.arange(radii.size, 0, -1) / y_test.size
    )  # beyond the k-th radius, k rows fewer stay right
    ax.set(title=f"p = {model.p}", xlabel="size of the change", ylabel="share of rows that stay correct")
plt.show()

# %%
# The shortest attack moves a row along the direction that the weights determine. The label changes at 1.001 radii, and
# does not change at 0.999 radii.


def attacked(model, x, share):
    """Return x moved towards the decision surface by `share` certified radii."""
    w, radius = model.coef_[0], model.certified_radius(x[None])[0]
    step = w / np.linalg.norm(w) if model.p == 2 else np.sign(w)
    return x - share * radius * np.sign(model.decision_function(x[None])[0]) * step


x = X_test[np.flatnonzero(euclid.predict(X_test) == y_test)[0]]
fig, axes = plt.subplots(1, 3, figsize=(8, 3.1), layout="constrained")
for ax, (model, share, words) in zip(
    axes, ((euclid, 0.0, "original"), (euclid, 1.001, "attack, p = 2"), (cube, 1.001, "attack, p = ∞"))
):
    moved = attacked(model, x, share)
    ax.imshow(moved.reshape(28, 28), cmap="gray_r")
    ax.set(xticks=[], yticks=[], title=f"{words}: predicted {model.predict(moved[None])[0]}")
for model in (euclid, cube):
    labels = [int(model.predict(attacked(model, x, share)[None])[0]) for share in (0.0, 0.999, 1.001)]
    print(f"p = {model.p}: radius {model.certified_radius(x[None])[0]:.4f}; predictions {labels}")
plt.show()
