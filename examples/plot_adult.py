"""
Adult: the problem of LinearSVC, with a certificate
===================================================

The data are 32,561 people with 123 binary features. The label says whether a person earns more than 50,000 dollars a
year. ``LinearSVC`` returns weights. ``MaxMarginClassifier`` returns weights and an interval that contains the best
possible objective. With this interval the error of both classifiers can be computed.
"""

import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
import real_data
from sklearn.svm import LinearSVC

from maxmargin import MaxMarginClassifier, verify

X, y = real_data.load("adult")
X_test, y_test = real_data.load("adult-test")

# %%
# The loss is the hinge with C = 1. The intercept is not regularised, and the gap is certified to 0.1 %. (The first fit
# on a machine compiles the code. A fit of a few rows does this before time is measured.)

clf = MaxMarginClassifier(C=1.0, loss="hinge", tol=1e-3, random_state=0)
clf.fit(X[:3000], y[:3000])
start = time.perf_counter()
clf.fit(X, y)
print(f"{clf.status_.value} in {time.perf_counter() - start:.2f} s")
print(clf.certificate_)
print(f"test accuracy {clf.score(X_test, y_test):.4f}")

# %%
# ``verify`` recomputes the certificate from the data, with code that the solver does not use:

print(f"recomputed: the gap is {verify(clf, X, y).gap:.2g}")

# %%
# A lower bound of the objective shows how far other solvers are from the optimum. ``LinearSVC`` regularises its
# intercept. Its error is therefore measured on that problem, with a certificate of that problem.

own = MaxMarginClassifier(C=1.0, loss="hinge", intercept="augmented", tol=1e-5, random_state=0).fit(X, y)
least = own.certificate_.lower


def objective(model):
    """Return half the squared norm of the weights and the intercept, plus the losses."""
    losses = np.maximum(0.0, 1.0 - y * model.decision_function(X))
    return 0.5 * (np.sum(model.coef_**2) + np.sum(model.intercept_**2)) + losses.sum()


passes, seconds, excess = (1, 3, 10, 30, 100, 300), [], []
for max_iter in passes:
    theirs = LinearSVC(C=1.0, loss="hinge", max_iter=max_iter, random_state=0)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "Liblinear failed to converge"
            theirs.fit(X, y)
        times.append(time.perf_counter() - start)
    seconds.append(min(times))
    excess.append(objective(theirs) / least - 1.0)

fig, ax = plt.subplots(layout="constrained")
ax.loglog(seconds, excess, "o-", color="#c2410c", label="LinearSVC: true excess")
for count, x, height in zip(passes, seconds, excess):
    ax.annotate(f"{count}", (x, height), (4, 5), textcoords="offset points", fontsize=8)
history = [report for report in own.history_ if np.isfinite(report.gap) and report.gap > 0]
ax.loglog(
    [report.seconds for report in history],
    [report.gap for report in history],
    "s-",
    color="#1d4ed8",
    label="MaxMarginClassifier: proved gap",
)
ax.set(xlabel="seconds", ylabel="objective above the best, relative", title="adult, hinge, C = 1")
ax.xaxis.set_minor_formatter("")
ax.legend(frameon=False)
plt.show()

# %%
# The numbers beside LinearSVC's points are its ``max_iter``. Its excess is computed from the lower bound that
# ``MaxMarginClassifier`` proves.
