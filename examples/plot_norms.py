"""
Norms: the influence of p on the weights
========================================

The example separates threes from eights (MNIST, 784 grey values) with p = 1, 2 and ∞, where p is the norm in which
distances are measured. With p = 1 most weights have nearly the same absolute value, with p = 2 weights vary smoothly,
and with p = ∞ most weights are zero.
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
# The regulariser is the dual norm of the weights: the largest absolute weight for p = 1, the Euclidean norm for p = 2,
# the sum of absolute weights for p = ∞. ``norm_power=1`` uses the norm itself instead of half its square, so that p = 1
# and p = ∞ are linear programs. Useful values of C depend on the norm.

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
# Blue weights favour a three, red weights an eight. Pixels that are zero in all rows have the weight zero.

fig, axes = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained")
for ax, (p, model) in zip(axes, models.items()):
    weights = model.coef_[0].reshape(28, 28)
    largest = np.abs(weights).max()
    ax.imshow(weights, cmap="RdBu_r", vmin=-largest, vmax=largest)
    ax.set(xticks=[], yticks=[], title=f"p = {p}")
plt.show()

# %%
# Each certificate bounds the objective with the norm of its classifier.

for model in models.values():
    print(model.certificate_)
