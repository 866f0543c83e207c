"""
Norms: the influence of p on the weights
========================================

Threes are separated from eights by 784 grey values, with one weight each. p is the norm in which distances are
measured. p = 1 penalises the largest weight, so that all weights have similar sizes. p = 2 penalises the sum of their
squares. p = ∞ penalises the sum of their absolute values, and most weights are zero.
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
# The scale of C depends on the norm. The values here were chosen by accuracy, in factors of ten. With ``norm_power=1``
# the objective contains the norm itself instead of its square, so that p = 1 and p = ∞ are linear programs.

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
# Blue weights favour a three, red weights an eight.

fig, axes = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained")
for ax, (p, model) in zip(axes, models.items()):
    weights = model.coef_[0].reshape(28, 28)
    most = np.abs(weights).max()
    ax.imshow(weights, cmap="RdBu_r", vmin=-most, vmax=most)
    ax.set(xticks=[], yticks=[], title=f"p = {p}")
plt.show()

# %%
# Each model is optimal in its own norm, and its certificate is about that norm.

for model in models.values():
    print(model.certificate_)
