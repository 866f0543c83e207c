"""
A certified path of C
=====================

``margin_path`` fits twenty values of C on adult, each from the solution of the previous one, and certifies each fit.
``MaxMarginClassifierCV`` runs a path in every fold to choose C; since all fits are solved to the same tolerance, their
scores differ because of C and not because of the solver.
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
# Upper panel: weights by C; the six largest have a colour. Lower panel: bounds on the objective. For large C the
# weights are constant, and the objective is proportional to C.

print(f"{path.seconds.sum():.2f} s for {len(path)} certified classifiers")
PathDisplay.from_path(path)
plt.show()

# %%
# Choice of C on 4,000 rows: nine values in five folds, with the mean accuracy and its standard deviation.

sample = np.random.default_rng(0).choice(X.shape[0], 4000, replace=False)
clf = MaxMarginClassifierCV(np.logspace(-3, 1, 9), cv=5, loss="hinge", random_state=0).fit(
    X[sample], y[sample]
)
print(
    f"C = {clf.C_:.3g}, accuracy {clf.best_score_:.4f}, "
    f"largest gap of {clf.scores_.size} fits {clf.gaps_.max():.1e}"
)

fig, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
mean, spread = clf.scores_[:, 0].mean(axis=0), clf.scores_[:, 0].std(axis=0)
ax.semilogx(clf.Cs_, mean, "o-", color="#0072B2", label="mean of 5 folds")
ax.fill_between(
    clf.Cs_, mean - spread, mean + spread, color="#0072B2", alpha=0.2, label="± standard deviation"
)
ax.axvline(clf.C_, color="black", linestyle="--", label="chosen C")
ax.set(xlabel="C", ylabel="accuracy")
ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.15, 0.05))
plt.show()
