"""
A stream: every row once
========================

The rows of adult arrive in small batches, and none is stored. The labels of each batch are predicted before the batch
is learnt, so that the accuracy is that on new rows. ``bounds_`` holds bounds on the objective for all rows so far,
although these are not stored.
"""

import matplotlib.pyplot as plt
import numpy as np
import real_data
from sklearn.linear_model import SGDClassifier

from maxmargin import OnlineMarginClassifier

X, y = real_data.load("adult")
order = np.random.default_rng(0).permutation(len(y))
X, y = X[order], y[order]
batches = [slice(first, first + 200) for first in range(0, len(y), 200)]

# %%
# ``trail`` selects the weights that predict: the mean of all weights, a vote among those that lasted longest, or the
# last weight. scikit-learn's ``SGDClassifier`` with an average is shown for comparison.

learners = {
    "mean weight (default)": OnlineMarginClassifier(),
    "vote": OnlineMarginClassifier(trail="vote"),
    "last weight": OnlineMarginClassifier(trail="last"),
    "SGDClassifier(average=True)": SGDClassifier(average=True, random_state=0),
}
right = {name: [] for name in learners}
for name, learner in learners.items():
    for k, batch in enumerate(batches):
        if k:
            right[name].append((learner.predict(X[batch]) == y[batch]).sum())
        learner.partial_fit(X[batch], y[batch], classes=[-1, 1])
    print(
        f"{name:28} {sum(right[name]) / (len(y) - 200):.4f} of the rows were predicted correctly before learning"
    )

fig, ax = plt.subplots(layout="constrained")
seen = np.cumsum([min(batch.stop, len(y)) - batch.start for batch in batches[1:]])
for name, counts in right.items():
    ax.semilogx(seen, 1 - np.cumsum(counts) / seen, label=name)
ax.set(xlabel="rows", ylabel="share of mistakes so far", ylim=(0.14, 0.26), title="adult, one pass")
ax.legend(frameon=False)
plt.show()

# %%
# Bounds for a soft margin, from the sums over the classes alone:

soft = OnlineMarginClassifier("pumma", C=1.0)
for batch in batches:
    soft.partial_fit(X[batch], y[batch], classes=[-1, 1])
lower, upper = (np.ravel(bound)[0] for bound in (soft.bounds_.lower, soft.bounds_.upper))
print(f"the best objective on all {soft.n_seen_} rows is at least {lower:.5g}, at most {upper:.5g}")
