"""
Adult: a certified fit, and the error of LinearSVC
==================================================

The example fits 32,561 rows of census data and certifies the result; the lower bound of a certificate then shows how
far ``LinearSVC`` is from its own optimum. A lower bound measures the error of any solver of the same problem, while the
warning of ``LinearSVC`` only says that it did not converge.
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
print(f"{X.shape[0]} rows, {X.shape[1]} binary features; the label is 1 for an income above 50,000 dollars")

# %%
# Hinge loss, C = 1, free intercept, tolerance 0.1 %. (The first fit on a machine compiles the code; a fit of 3,000 rows
# before the measurement keeps this out of the time.)

clf = MaxMarginClassifier(C=1.0, loss="hinge", tol=1e-3, random_state=0)
clf.fit(X[:3000], y[:3000])
start = time.perf_counter()
clf.fit(X, y)
print(f"{clf.status_.value} in {time.perf_counter() - start:.2f} s")
print(clf.certificate_)
print(f"test accuracy {clf.score(X_test, y_test):.4f}")

# %%
# ``verify`` recomputes both bounds from the data, with code that is independent of the solver.

print(f"recomputed gap {verify(clf, X, y).gap:.2g}")

# %%
# ``LinearSVC`` regularises its intercept, which is another problem. ``intercept_scaling=1.0`` selects this problem; its
# lower bound ``optimum`` is within 0.001 % of the optimum.

same_problem = MaxMarginClassifier(C=1.0, loss="hinge", intercept_scaling=1.0, tol=1e-5, random_state=0).fit(
    X, y
)
optimum = same_problem.certificate_.lower


def objective(model):
    """Return the objective of LinearSVC: half the squared norm of weights and intercept, plus the losses."""
    losses = np.maximum(0.0, 1.0 - y * model.decision_function(X))
    return 0.5 * (np.sum(model.coef_**2) + np.sum(model.intercept_**2)) + losses.sum()


passes, seconds, excess = (1, 3, 10, 30, 100, 300), [], []
for max_iter in passes:
    linear_svc = LinearSVC(C=1.0, loss="hinge", max_iter=max_iter, random_state=0)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "Liblinear failed to converge"
            linear_svc.fit(X, y)
        times.append(time.perf_counter() - start)
    seconds.append(min(times))
    excess.append(objective(linear_svc) / optimum - 1.0)
    print(f"LinearSVC, max_iter={max_iter:3}: {excess[-1]:.1e} above the lower bound")

fig, ax = plt.subplots(layout="constrained")
ax.loglog(seconds, excess, "o-", color="#c2410c", label="LinearSVC: (objective - lower bound) / lower bound")
for count, x, height in zip(passes, seconds, excess):
    ax.annotate(f"{count}", (x, height), (4, 5), textcoords="offset points", fontsize=8, clip_on=False)
history = [report for report in same_problem.history_ if np.isfinite(report.gap) and report.gap > 0]
ax.loglog(
    [report.seconds for report in history],
    [report.gap for report in history],
    "s-",
    color="#1d4ed8",
    label="MaxMarginClassifier: certified gap",
)
ax.set(xlabel="seconds", ylabel="relative error of the objective", title="adult, hinge, C = 1")
ax.margins(x=0.08)
ax.xaxis.set_minor_formatter("")
ax.legend(frameon=False)
plt.show()

# %%
# The numbers at the points of ``LinearSVC`` are the values of ``max_iter``. The points of ``MaxMarginClassifier`` are
# the rounds of one fit.
