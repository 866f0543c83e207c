"""
Robustness: certified radii of rows
===================================

The label of a row can change only if the row moves at least by its distance to the decision surface, in the norm p of
the classifier. ``certified_radius`` is this distance, rounded downwards. A classifier that was fitted in one norm is
robust in that norm.
"""

import matplotlib.pyplot as plt
import numpy as np
import real_data

from maxmargin import MaxMarginClassifier
from maxmargin.plots import RobustnessDisplay

X, y = real_data.load("mnist")
X_test, y_test = real_data.load("mnist-test")
rows, tests = np.flatnonzero(np.isin(y, (4, 9)))[:1500], np.isin(y_test, (4, 9))
X, y, X_test, y_test = X[rows], y[rows], X_test[tests], y_test[tests]

# %%
# Fours and nines. For p = 2 an image may change by a vector of limited length. For p = ∞ every grey value, from 0 to 1,
# may change by a limited amount.

euclid = MaxMarginClassifier(0.01, loss="hinge", p=2, tol=1e-2, random_state=0).fit(X, y)
cube = MaxMarginClassifier(0.1, loss="hinge", p=np.inf, norm_power=1, tol=1e-2, random_state=0).fit(X, y)

# %%
# The share of the test images whose label is correct and cannot change within a radius:

fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
RobustnessDisplay.from_estimator(euclid, X_test, y_test, ax=axes[0])
RobustnessDisplay.from_estimator(cube, X_test, y_test, ax=axes[1])
plt.show()

# %%
# An attack moves the image on the shortest way to the surface, which is determined by the weights. The label changes if
# the image moves slightly farther than the radius, and does not change if it moves slightly less.


def attacked(model, x, share):
    """Return x, moved towards the surface on the shortest way by `share` certified radii."""
    w, radius = model.coef_[0], model.certified_radius(x[None])[0]
    step = w / np.linalg.norm(w) if model.p == 2 else np.sign(w)
    return x - share * radius * np.sign(model.decision_function(x[None])[0]) * step


x = X_test[np.flatnonzero(euclid.predict(X_test) == y_test)[0]]
fig, axes = plt.subplots(1, 3, figsize=(8, 3.1), layout="constrained")
for ax, (model, share, words) in zip(
    axes, ((euclid, 0.0, "as it was"), (euclid, 1.001, "p = 2"), (cube, 1.001, "p = ∞"))
):
    moved = attacked(model, x, share)
    ax.imshow(moved.reshape(28, 28), cmap="gray_r")
    ax.set(xticks=[], yticks=[], title=f"{words}: predicted {model.predict(moved[None])[0]}")
for model in (euclid, cube):
    same = [model.predict(attacked(model, x, share)[None])[0] for share in (0.0, 0.999, 1.001)]
    print(
        f"p = {model.p}: radius {model.certified_radius(x[None])[0]:.4f}; predictions {[int(label) for label in same]}"
    )
plt.show()
