"""
A stream: one pass over the rows
================================

``OnlineMarginClassifier`` learns adult in batches of 200 rows and stores none of them; each batch is predicted before
it is learnt, so that the accuracy is measured on new rows. ``bounds_`` contains bounds on the optimal objective for all
rows so far.
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
# Both predict with the mean of the weights over all steps.

learners = {
    "OnlineMarginClassifier()": OnlineMarginClassifier(),
    "SGDClassifier(average=True)": SGDClassifier(average=True, random_state=0),
}
correct = {name: [] for name in learners}
for name, learner in learners.items():
    for k, batch in enumerate(batches):
        if k:
            correct[name].append((learner.predict(X[batch]) == y[batch]).sum())
        learner.partial_fit(X[batch], y[batch], classes=[-1, 1])
    print(f"{name:28} accuracy before learning {sum(correct[name]) / (len(y) - 200):.4f}")

fig, ax = plt.subplots(layout="constrained")
seen = np.cumsum([min(batch.stop, len(y)) - batch.start for batch in batches[1:]])
for name, counts in correct.items():
    ax.semilogx(seen, 1 - np.cumsum(counts) / seen, label=name)
ax.set(xlabel="rows", ylabel="error rate so far", ylim=(0.14, 0.26), title="adult, one pass")
ax.legend(frameon=False)
plt.show()

# %%
# For a soft margin, ``bounds_`` needs only sums over the rows of each class. Its bounds are far apart, because no row
# is stored.

soft = OnlineMarginClassifier("pumma", C=1.0)
for batch in batches:
    soft.partial_fit(X[batch], y[batch], classes=[-1, 1])
lower, upper = (np.ravel(bound)[0] for bound in (soft.bounds_.lower, soft.bounds_.upper))
print(f"optimal objective on {soft.n_seen_} rows: at least {lower:.5g}, at most {upper:.5g}")
