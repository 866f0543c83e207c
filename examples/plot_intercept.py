"""
Free and regularised intercepts
===============================

``LinearSVC`` and liblinear regularise the intercept like a weight, so that the solution depends on the origin of the
data; the example adds a constant to all features and measures the accuracy. With a free intercept, the default of
maxmargin, the accuracy stays the same; with a regularised one it drops from 0.98 to 0.90.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from maxmargin import MaxMarginClassifier

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)

# %%
# The constant that is added to every feature varies from 0 to 100. It does not change the information in the data.

shifts = np.array([0.0, 1.0, 3.0, 10.0, 30.0, 100.0])
models = {
    "free intercept": MaxMarginClassifier(C=0.01, random_state=0),
    "augmented intercept": MaxMarginClassifier(C=0.01, intercept_scaling=1.0, random_state=0),
    "LinearSVC": LinearSVC(C=0.01, dual=False),
}
fig, ax = plt.subplots(layout="constrained")
for (name, model), style in zip(models.items(), ("o-", "s--", "^:")):
    accuracy = [cross_val_score(model, X + shift, y, cv=5).mean() for shift in shifts]
    ax.plot(shifts, accuracy, style, label=name)
    print(f"{name:20}", np.round(accuracy, 4))
ax.set_xscale("symlog", linthresh=1.0)
ax.set(xlim=(-0.1, 150), xlabel="constant added to every feature", ylabel="mean accuracy in 5 folds")
ax.set_title("breast cancer, C = 0.01")
ax.legend(frameon=False)
plt.show()

# %%
# In liblinear, a constant feature with a large value (``intercept_scaling``) approximates a free intercept, but makes
# the problem harder for the solver. maxmargin solves the problem with a free intercept: the dual variables of both
# classes have the same sum.

clf = MaxMarginClassifier(C=0.01, random_state=0).fit(X + 100.0, y)
alpha, rows = clf.certificate_.dual, clf.certificate_.support
print(
    f"the sums of the dual variables differ by {abs(alpha[y[rows] == 1].sum() - alpha[y[rows] == 0].sum()):.1g}"
)
