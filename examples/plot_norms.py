"""
Norms: what p does to the weights
=================================

Threes against eights: 784 grey values, one weight each. Distance measured in the 1-norm bounds the largest
weight, so that all of them are used alike; in the 2-norm it bounds their squares; in the ∞-norm their sum,
and most of them vanish.
"""

import matplotlib.pyplot as plt
import numpy as np
import real_data

from maxmargin import MaxMarginClassifier

X, y = real_data.load("mnist")
X_test, y_test = real_data.load("mnist-test")
rows, tests = np.flatnonzero(np.isin(y, (3, 8)))[:1500], np.isin(y_test, (3, 8))
X, y, X_test, y_test = X[rows], y[rows], X_test[tests], y_test[tests]

# %%
# A value of C means another thing in every norm; these were chosen by accuracy, in factors of ten. With
# ``norm_power=1`` the norm itself is weighed against the losses, which makes the problems of p = 1 and p =
# ∞ linear programs.

models = {}
for p, C in ((1, 0.01), (2, 0.01), (np.inf, 0.1)):
    power = {} if p == 2 else {"norm_power": 1}
    models[p] = MaxMarginClassifier(C, loss="hinge", p=p, tol=1e-2, random_state=0, **power).fit(X, y)
    size = np.abs(models[p].coef_[0])
    print(
        f"p = {p}: {models[p].status_.value}, {(size > 1e-9 * size.max()).sum()} weights are not zero, "
        f"test accuracy {models[p].score(X_test, y_test):.4f}"
    )

# %%
# Blue speaks for a three, red for an eight.

fig, axes = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained")
for ax, (p, model) in zip(axes, models.items()):
    weights = model.coef_[0].reshape(28, 28)
    most = np.abs(weights).max()
    ax.imshow(weights, cmap="RdBu_r", vmin=-most, vmax=most)
    ax.set(xticks=[], yticks=[], title=f"p = {p}")
plt.show()

# %%
# All three answers are optimal, each for its own question: the certificate of each is in its own norm.

for model in models.values():
    print(model.certificate_)
