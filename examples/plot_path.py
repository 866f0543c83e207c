"""
A certified path, and the choice of C
=====================================

A path fits twenty values of C on the income data of adult. Each fit starts from the solution of the one before, and
each has its own certificate.
"""

import matplotlib.pyplot as plt
import numpy as np
import real_data

from maxmargin import MaxMarginClassifierCV, margin_path
from maxmargin.plots import PathDisplay

X, y = real_data.load("adult")
Cs = np.logspace(-3, 3, 20)
path = margin_path(X, y, Cs, loss="hinge", random_state=0)
print(path)

# %%
# All fits together take about as long as a few separate fits. For large C the dual variables grow in proportion to C,
# and w hardly changes.

print(f"{path.seconds.sum():.2f} s for {len(path)} certified classifiers")
PathDisplay.from_path(path).plot()
plt.show()

# %%
# C is chosen by a path in every fold. Every fit is certified, so that the scores differ only because of C.

some = np.random.default_rng(0).choice(X.shape[0], 4000, replace=False)
clf = MaxMarginClassifierCV(np.logspace(-3, 1, 9), cv=5, loss="hinge", random_state=0).fit(X[some], y[some])
print(
    f"C = {clf.C_:.3g}, accuracy {clf.best_score_:.4f}, "
    f"largest gap of {clf.scores_.size} fits {clf.gaps_.max():.1e}"
)

fig, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
mean, spread = clf.scores_[:, 0].mean(axis=0), clf.scores_[:, 0].std(axis=0)
ax.semilogx(clf.Cs_, mean, "o-", color="#0072B2")
ax.fill_between(clf.Cs_, mean - spread, mean + spread, color="#0072B2", alpha=0.2)
ax.axvline(clf.C_, color="black", linestyle="--")
ax.set(xlabel="C", ylabel="accuracy, 5 folds")
plt.show()
