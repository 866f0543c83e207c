"""
Support vectors and rows that may be mislabelled
================================================

``support_report`` derives statements about single rows from a certificate: rows without influence on the optimum, rows
that may be mislabelled, and bounds on the number of leave-one-out errors without further fits. The statements are
correct at every tolerance; on adult they are useful from a gap of about 0.0001 downwards.
"""

import matplotlib.pyplot as plt
import numpy as np
import real_data
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from maxmargin import MaxMarginClassifier, support_report

data = load_breast_cancer()
X, y = scale(data.data), data.target_names[data.target]
clf = MaxMarginClassifier(0.1, loss="hinge").fit(X, y)
report = support_report(clf, X, y)
print(report)

# %%
# The labels of five rows are changed. These rows come first in the list of suspects.

rng = np.random.default_rng(0)
wrong = rng.choice(len(y), 5, replace=False)
changed = y.copy()
changed[wrong] = np.where(y[wrong] == "benign", "malignant", "benign")
suspects = (
    support_report(MaxMarginClassifier(0.1, loss="hinge").fit(X, changed), X, changed).parts[0].suspects
)
print("changed:  ", sorted(wrong.tolist()))
print("suspects: ", suspects[:8].tolist())

# %%
# The same statements from certificates of different gaps, on 5,000 rows of adult. (Data as small as above are solved
# exactly at every tolerance.)

X, y = real_data.load("adult")
X, y = X[:5000], y[:5000]
rows = []
for tol in np.logspace(-6, -1, 11):
    clf = MaxMarginClassifier(0.1, loss="hinge", tol=tol, algorithm="dcd", random_state=0).fit(X, y)
    report = support_report(clf, X, y)
    rows.append((clf.certificate_.gap, report.parts[0].optimum.weightless.mean(), *report.leave_one_out))
    print("gap {:.1e}: {:.1%} of the rows have no dual variable; {} to {} errors".format(*rows[-1]))
gap, weightless, fewest, most = np.array(rows).T

fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
axes[0].semilogx(gap, weightless, "o-", color="#0072B2")
axes[0].set(
    xlabel="certified gap", ylabel="share of the rows", title="rows without a dual variable at any optimum"
)
axes[1].fill_between(gap, fewest, most, color="#D55E00", alpha=0.3)
axes[1].set(xscale="log", xlabel="certified gap", ylabel="rows", title="bounds on the leave-one-out errors")
plt.show()
