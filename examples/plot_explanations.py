"""
Support rows and rows that may be mislabelled
=============================================

A certificate implies statements about single rows. Some rows have no influence on the optimum. Some may be mislabelled.
For many rows, the certificate gives the label that a classifier fitted without this row would predict, without fitting
that classifier.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from maxmargin import MaxMarginClassifier, support_report

data = load_breast_cancer()
X, y = scale(data.data), data.target_names[data.target]
clf = MaxMarginClassifier(0.1, loss="hinge").fit(X, y)
report = support_report(clf, X, y)
print(report)

# %%
# The labels of five rows are exchanged. These rows come first in the list of suspects.

rng = np.random.default_rng(0)
wrong = rng.choice(len(y), 5, replace=False)
changed = y.copy()
changed[wrong] = np.where(y[wrong] == "benign", "malignant", "benign")
suspects = (
    support_report(MaxMarginClassifier(0.1, loss="hinge").fit(X, changed), X, changed).parts[0].suspects
)
print("exchanged:", sorted(wrong.tolist()))
print("suspects: ", suspects[:8].tolist())

# %%
# A looser certificate decides fewer rows; its statements are correct at every tolerance.

tols = np.logspace(-6, -1, 11)
told = []
for tol in tols:
    rough = MaxMarginClassifier(0.1, loss="hinge", tol=tol, algorithm="mpu", random_state=0).fit(X, y)
    found = support_report(rough, X, y)
    told.append((rough.certificate_.gap, found.parts[0].optimum.weightless.mean(), *found.leave_one_out))
gap, weightless, least, most = np.array(told).T

fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
axes[0].semilogx(gap, weightless, "o-", color="#0072B2")
axes[0].set(xlabel="certified gap", ylabel="share of rows", title="rows that can never have a weight")
axes[1].fill_between(gap, least, most, step=None, color="#D55E00", alpha=0.3)
axes[1].set(xscale="log", xlabel="certified gap", ylabel="rows", title="errors of leave-one-out lie in here")
plt.show()
