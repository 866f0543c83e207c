"""
Text: a path of C on Reuters
============================

The example fits nine values of C on 7,770 news stories with 8,315 words, each from the dual variables of the previous
fit (``warm_start=True``). Every fit is certified, so that the differences in F1 come from C; the best F1, 0.747, is at
C = 1.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
import real_data
from sklearn.metrics import f1_score

from maxmargin import MaxMarginClassifier

X, y = real_data.load("reuters")
X_test, y_test = real_data.load("reuters-test")
print(f"{X.shape[0]} rows with {X.nnz / X.shape[0]:.0f} of {X.shape[1]} words on average")
print(f"{(y == 1).sum()} rows are about money and foreign exchange (label 1)")

# %%
# One classifier with ``warm_start=True`` is fitted again for every C.

path = np.logspace(-2, 2, 9)
clf = MaxMarginClassifier(loss="hinge", warm_start=True, random_state=0)
rows = []
clf.set_params(C=path[0]).fit(X[:3000], y[:3000])  # compiles the code at the machine's first fit
start = time.perf_counter()
for C in path:
    clf.set_params(C=C).fit(X, y)
    certificate = clf.certificate_
    rows.append(
        (
            C,
            certificate.lower,
            certificate.upper,
            certificate.support.size,
            f1_score(y_test, clf.predict(X_test)),
        )
    )
print(f"nine fits: {time.perf_counter() - start:.2f} s")

# %%
# Left: both bounds on the objective, divided by C; they coincide within the width of the line. Right: F1 on the test
# rows and the number of support vectors.

rows = np.array(rows)
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
left.fill_between(rows[:, 0], rows[:, 1] / rows[:, 0], rows[:, 2] / rows[:, 0], color="#1d4ed8", alpha=0.3)
left.loglog(rows[:, 0], rows[:, 2] / rows[:, 0], "o-", color="#1d4ed8")
left.set(xlabel="C", ylabel="objective / C", title="bounds on the objective")
right.semilogx(rows[:, 0], rows[:, 4], "o-", color="#c2410c", label="F1 on the test rows")
right.set(xlabel="C", ylabel="F1")
twin = right.twinx()
twin.semilogx(rows[:, 0], rows[:, 3], "s--", color="#94a3b8", label="support vectors")
twin.set_ylabel("support vectors")
right.set_title("F1 and support vectors")
fig.legend(loc="outside lower center", ncols=2, frameon=False)
plt.show()

# %%
# The weights at the best C: 1 % of the words have 14 % of the sum of absolute weights.

best = rows[np.argmax(rows[:, 4]), 0]
clf = MaxMarginClassifier(best, loss="hinge", random_state=0).fit(X, y)
size = np.sort(np.abs(clf.coef_[0]))[::-1]
print(f"C = {best:g}: F1 {f1_score(y_test, clf.predict(X_test)):.3f}")
print(
    f"the 100 largest of {size.size} weights have {size[:100].sum() / size.sum():.0%} of the sum of absolute weights"
)
