"""
Sample weights instead of repeated rows
=======================================

A row with sample weight k is the same as k copies of the row: the problem and its optimum are equal. The 245,057 rows
of skin have 51,444 distinct rows; fitting these with their counts as weights gives the same classifier in less time.
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
    f"{len(y):,} rows (colours of pixels), {len(y_few):,} distinct; the most frequent row occurs {counts.max()} times"
)

# %%
# Fits of both tables, with the squared hinge and a tolerance of 1e-8:

clf = MaxMarginClassifier(C=1e-3, tol=1e-8, random_state=0)
clf.fit(X_few[:5000], y_few[:5000])  # compiles the code at the machine's first fit
models = {}
for name, data in (("all rows", (X, y, None)), ("distinct rows with counts", (X_few, y_few, counts))):
    start = time.perf_counter()
    models[name] = MaxMarginClassifier(C=1e-3, tol=1e-8, random_state=0).fit(*data)
    seconds = time.perf_counter() - start
    print(f"{name:26} {models[name].status_.value} in {seconds:.2f} s, {models[name].coef_[0].round(7)}")

# %%
# Both intervals contain the same optimum. ``verify`` needs the sample weights of the fit.

for name, model in models.items():
    print(f"{name:26} [{model.certificate_.lower:.9g}, {model.certificate_.upper:.9g}]")
verify(models["distinct rows with counts"], X_few, y_few, sample_weight=counts)

# %%
# Weights are any numbers that are not negative. The counts of class skin are multiplied by 0.1 to 32 here.

fig, ax = plt.subplots(layout="constrained")
factors = np.logspace(-1, 1.5, 9)
for name in ("no skin", "skin"):
    recalls = []
    for factor in factors:
        weights = counts * np.where(y_few == "skin", factor, 1.0)
        model = MaxMarginClassifier(C=1e-3, random_state=0).fit(X_few, y_few, sample_weight=weights)
        of_class = y_few == name
        recalls.append(np.average(model.predict(X_few[of_class]) == name, weights=counts[of_class]))
    ax.semilogx(factors, recalls, "o-", label=f"class {name}")
ax.set(xlabel="factor of the weights of class skin", ylabel="recall", title="skin, C = 0.001")
ax.legend(frameon=False)
plt.show()
