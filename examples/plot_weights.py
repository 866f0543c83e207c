"""
Weights: 245,057 rows, a fifth of them different
================================================

A row of weight k is k copies of it, exactly: the same problem, the same certificate. So a table with many
equal rows can be fitted as its distinct rows with counts, and the answer is the answer to the whole.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
import real_data

from maxmargin import MaxMarginClassifier, verify

X, y = real_data.load("skin")
rows = np.column_stack([X, y == "skin"])
distinct, counts = np.unique(rows, axis=0, return_counts=True)
X_few, y_few = distinct[:, :3], np.where(distinct[:, 3] == 1, "skin", "no skin")
print(
    f"{len(y):,} pixels, {len(y_few):,} different ones; the most frequent stands there {counts.max()} times"
)

# %%
# Both ways, with squared losses:

clf = MaxMarginClassifier(C=1e-3, tol=1e-8, random_state=0)
clf.fit(X_few[:5000], y_few[:5000])  # compiles, where this machine has not yet
models = {}
for name, data in (("all rows", (X, y, None)), ("distinct rows with counts", (X_few, y_few, counts))):
    start = time.perf_counter()
    models[name] = MaxMarginClassifier(C=1e-3, tol=1e-8, random_state=0).fit(*data)
    seconds = time.perf_counter() - start
    print(f"{name:26} {models[name].status_.value} in {seconds:.2f} s, {models[name].coef_[0].round(7)}")

# %%
# The certificates overlap: each is about the same best objective. ``verify`` wants the weights that were used.

for name, model in models.items():
    print(f"{name:26} [{model.certificate_.lower:.9g}, {model.certificate_.upper:.9g}]")
verify(models["distinct rows with counts"], X_few, y_few, sample_weight=counts)

# %%
# Weights may be any numbers. Here those of the pixels that are skin grow; the surface follows.

fig, ax = plt.subplots(layout="constrained")
factors = np.logspace(-1, 1.5, 9)
for name in ("no skin", "skin"):
    shares = []
    for factor in factors:
        weights = counts * np.where(y_few == "skin", factor, 1.0)
        model = MaxMarginClassifier(C=1e-3, random_state=0).fit(X_few, y_few, sample_weight=weights)
        of_class = y_few == name
        shares.append(np.average(model.predict(X_few[of_class]) == name, weights=counts[of_class]))
    ax.semilogx(factors, shares, "o-", label=f"{name}: share that is found")
ax.set(xlabel="weight of skin", ylabel="share", title="skin and what is not")
ax.legend(frameon=False)
plt.show()
