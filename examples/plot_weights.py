"""
Weights: 245,057 rows, a fifth of them distinct
===============================================

A row with weight k is equivalent to k copies of the row: the problem and the certificate are the same. A table with
many equal rows can therefore be fitted as its distinct rows, with their counts as weights.
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
print(f"{len(y):,} pixels, {len(y_few):,} distinct ones; the most frequent one occurs {counts.max()} times")

# %%
# Fits of both tables, with squared losses:

clf = MaxMarginClassifier(C=1e-3, tol=1e-8, random_state=0)
clf.fit(X_few[:5000], y_few[:5000])  # compiles the code if this machine has not yet
models = {}
for name, data in (("all rows", (X, y, None)), ("distinct rows with counts", (X_few, y_few, counts))):
    start = time.perf_counter()
    models[name] = MaxMarginClassifier(C=1e-3, tol=1e-8, random_state=0).fit(*data)
    seconds = time.perf_counter() - start
    print(f"{name:26} {models[name].status_.value} in {seconds:.2f} s, {models[name].coef_[0].round(7)}")

# %%
# The intervals overlap, because both contain the same optimum. ``verify`` needs the weights of the fit.

for name, model in models.items():
    print(f"{name:26} [{model.certificate_.lower:.9g}, {model.certificate_.upper:.9g}]")
verify(models["distinct rows with counts"], X_few, y_few, sample_weight=counts)

# %%
# Weights may be any numbers that are not negative. Here the weight of the skin pixels is varied.

fig, ax = plt.subplots(layout="constrained")
factors = np.logspace(-1, 1.5, 9)
for name in ("no skin", "skin"):
    shares = []
    for factor in factors:
        weights = counts * np.where(y_few == "skin", factor, 1.0)
        model = MaxMarginClassifier(C=1e-3, random_state=0).fit(X_few, y_few, sample_weight=weights)
        of_class = y_few == name
        shares.append(np.average(model.predict(X_few[of_class]) == name, weights=counts[of_class]))
    ax.semilogx(factors, shares, "o-", label=f"{name}: share predicted correctly")
ax.set(xlabel="weight of skin", ylabel="share", title="skin and what is not")
ax.legend(frameon=False)
plt.show()
