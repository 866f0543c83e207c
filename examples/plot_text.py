"""
Text: a path of C on Reuters
============================

The data are 7,770 news stories with 8,315 words. The label says whether a story is about money and foreign exchange. C
is chosen on a path, in which each fit starts from the solution of the one before. The certificates show that every
point of the path is solved to the tolerance.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
import real_data
from sklearn.metrics import f1_score

from maxmargin import MaxMarginClassifier

X, y = real_data.load("reuters")
X_test, y_test = real_data.load("reuters-test")
print(f"{X.shape[0]} rows, {X.nnz / X.shape[0]:.0f} of {X.shape[1]} words in each, {(y == 1).sum()} positive")

# %%
# With ``warm_start=True`` a fit starts from the dual variables of the last one.

path = np.logspace(-2, 2, 9)
clf = MaxMarginClassifier(loss="hinge", warm_start=True, random_state=0)
rows = []
clf.set_params(C=path[0]).fit(X[:3000], y[:3000])  # compiles the code if this machine has not yet
start = time.perf_counter()
for C in path:
    clf.set_params(C=C).fit(X, y)
    proof = clf.certificate_
    rows.append((C, proof.lower, proof.upper, proof.support.size, f1_score(y_test, clf.predict(X_test))))
print(f"the whole path: {time.perf_counter() - start:.2f} s")

# %%
# The left panel shows both bounds of the objective, divided by C. They coincide within the width of the line.

rows = np.array(rows)
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
left.fill_between(rows[:, 0], rows[:, 1] / rows[:, 0], rows[:, 2] / rows[:, 0], color="#1d4ed8", alpha=0.3)
left.loglog(rows[:, 0], rows[:, 2] / rows[:, 0], "o-", color="#1d4ed8")
left.set(xlabel="C", ylabel="objective / C", title="certified at every C")
right.semilogx(rows[:, 0], rows[:, 4], "o-", color="#c2410c", label="F1 on the test stories")
right.set(xlabel="C", ylabel="F1")
twin = right.twinx()
twin.semilogx(rows[:, 0], rows[:, 3], "s--", color="#94a3b8", label="rows with a dual variable")
twin.set_ylabel("rows with a dual variable")
right.set_title("F1 and number of support rows")
fig.legend(loc="outside lower center", ncols=2, frameon=False)
plt.show()

# %%
# The words have only numbers as names. The largest weights hold much of the sum of all weights:

best = rows[np.argmax(rows[:, 4]), 0]
clf = MaxMarginClassifier(best, loss="hinge", random_state=0).fit(X, y)
size = np.sort(np.abs(clf.coef_[0]))[::-1]
print(f"C = {best:g}: F1 {f1_score(y_test, clf.predict(X_test)):.3f}")
print(f"the 100 largest of {size.size} weights carry {size[:100].sum() / size.sum():.0%} of their sum")
