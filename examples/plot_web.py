"""
Web pages: a rare class
=======================

The data are 24,692 pages with 300 binary features. Only 740 pages, one in thirty-three, belong to the positive class.
``class_weight`` changes the weight of this class in the objective. The gap is certified for all weights.
"""

import matplotlib.pyplot as plt
import real_data
from sklearn.metrics import PrecisionRecallDisplay, average_precision_score, precision_score, recall_score

from maxmargin import MaxMarginClassifier

X, y = real_data.load("web")
X_test, y_test = real_data.load("web-test")
print(f"{(y == 1).sum()} of {len(y)} rows are positive; {X.nnz / len(y):.1f} features a row")

# %%
# The same classifier with three weights of the rare class. With ``"balanced"`` both classes have the same total weight.

fig, ax = plt.subplots(layout="constrained")
for weight in (None, {1: 5.0}, "balanced"):
    clf = MaxMarginClassifier(C=0.1, loss="hinge", class_weight=weight, random_state=0).fit(X, y)
    scores, found = clf.decision_function(X_test), clf.predict(X_test)
    print(
        f"{weight!s:10} {clf.status_.value}, gap {clf.certificate_.gap:.1g}: "
        f"precision {precision_score(y_test, found):.3f}, recall {recall_score(y_test, found):.3f}, "
        f"average precision {average_precision_score(y_test, scores):.3f}"
    )
    PrecisionRecallDisplay.from_predictions(y_test, scores, name=f"class_weight={weight}", ax=ax)
    ax.plot(
        recall_score(y_test, found), precision_score(y_test, found), "o", color=ax.lines[-1].get_color(), ms=7
    )
ax.set_title("web pages: the dots are the classifiers' predictions")
plt.show()

# %%
# Many pages have no feature at all. Their rows are zero, and have a loss like all other rows:

empty = X.getnnz(axis=1) == 0
print(f"{empty.sum()} empty rows, {(y[empty] == 1).sum()} of them positive")
