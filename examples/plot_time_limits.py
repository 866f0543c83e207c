"""
Callbacks and time limits
=========================

A fit can be ended by a time limit, by a callback, or by Ctrl-C. In each case the result is the best model so far, with
the bounds that have been proved.
"""

import matplotlib.pyplot as plt
import real_data

from maxmargin import MaxMarginClassifier
from maxmargin.plots import BoundsDisplay

X, y = real_data.load("adult")
X_test, y_test = real_data.load("adult-test")

# %%
# Dual coordinate descent is slow on adult with a large C. The gap is smaller with more time. (The first fit, of a few
# rows, compiles the code if this machine has not yet.)

C = 10.0
MaxMarginClassifier(C, loss="hinge", algorithm="dcd", max_iter=3, random_state=0).fit(X[:3000], y[:3000])
for max_time in (0.05, 0.3, 1.0):
    clf = MaxMarginClassifier(C, loss="hinge", algorithm="dcd", max_time=max_time, random_state=0).fit(X, y)
    print(
        f"{max_time:5} s: {clf.status_.value}, gap {clf.certificate_.gap:.3g}, "
        f"test accuracy {clf.score(X_test, y_test):.4f}"
    )

# %%
# A callback gets a ``Report`` after every round, and ends the fit by returning a true value. This one ends the fit when
# the upper bound hardly decreases any more.

seen = []


def patient(report):
    """Stop if the upper bound decreased by less than 1 % in three rounds."""
    seen.append(report.upper)
    return len(seen) > 3 and seen[-4] - seen[-1] < 1e-2 * seen[-1]


clf = MaxMarginClassifier(C, loss="hinge", algorithm="dcd", callback=patient, random_state=0).fit(X, y)
print(clf.status_.value, f"after {clf.n_iter_} rounds, gap {clf.certificate_.gap:.2g}")
print("the last report:", clf.history_[-1])

# %%
# ``algorithm="auto"`` changes to the proximal-point method if that is estimated to be faster. The reports state the
# reason. The plot shows the bounds of both fits.

auto = MaxMarginClassifier(C, loss="hinge", tol=1e-4, random_state=0).fit(X, y)
fig, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
BoundsDisplay.from_estimator(clf, ax=axes[0], name="dcd, stopped")
BoundsDisplay.from_estimator(auto, ax=axes[1], name="auto")
plt.show()
for stage in dict.fromkeys((report.stage, report.reason) for report in auto.history_):
    print(*stage, sep=": ")
