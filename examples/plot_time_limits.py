"""
Time limits and callbacks
=========================

``max_time`` ends a fit after a number of seconds, and a callback ends it by any other rule; the example does both with
dual coordinate descent on adult at C = 10, where this algorithm is slow. A fit that is ended early, also by Ctrl-C,
returns the best classifier so far with valid bounds.
"""

import matplotlib.pyplot as plt
import real_data

from maxmargin import MaxMarginClassifier
from maxmargin.plots import BoundsDisplay

X, y = real_data.load("adult")
X_test, y_test = real_data.load("adult-test")

# %%
# The gap is smaller with more time. (The first fit on a machine compiles the code; a fit of 3,000 rows does this before
# the measurement.)

C = 10.0
MaxMarginClassifier(C, loss="hinge", algorithm="dcd", max_iter=3, random_state=0).fit(X[:3000], y[:3000])
for max_time in (0.05, 0.3, 1.0):
    clf = MaxMarginClassifier(C, loss="hinge", algorithm="dcd", max_time=max_time, random_state=0).fit(X, y)
    print(
        f"{max_time:5} s: {clf.status_.value}, gap {clf.certificate_.gap:.3g}, "
        f"test accuracy {clf.score(X_test, y_test):.4f}"
    )

# %%
# A callback receives a ``Report`` after every round, and ends the fit by returning a true value. This callback ends the
# fit when the upper bound decreases by less than 1 % in three rounds.

seen = []


def stop_when_slow(report):
    """Stop if the upper bound decreased by less than 1 % in three rounds."""
    seen.append(report.upper)
    return len(seen) > 3 and seen[-4] - seen[-1] < 1e-2 * seen[-1]


clf = MaxMarginClassifier(C, loss="hinge", algorithm="dcd", callback=stop_when_slow, random_state=0).fit(X, y)
print(clf.status_.value, f"after {clf.n_iter_} rounds, gap {clf.certificate_.gap:.2g}")
print("the last report:", clf.history_[-1])

# %%
# ``algorithm="auto"`` changes from dual coordinate descent to the proximal-point method when it estimates that this is
# faster. The figure shows the bounds of both fits; the output, the stages of the second fit and their reasons.

auto = MaxMarginClassifier(C, loss="hinge", tol=1e-4, random_state=0).fit(X, y)
fig, axes = plt.subplots(2, 1, figsize=(8, 8.5), layout="constrained")
BoundsDisplay.from_estimator(clf, ax=axes[0], name="dcd, ended by the callback")
BoundsDisplay.from_estimator(auto, ax=axes[1], name="auto")
plt.show()
for stage in dict.fromkeys((report.stage, report.reason) for report in auto.history_):
    print(*stage, sep=": ")
