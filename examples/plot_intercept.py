"""
Free and regularised intercepts
===============================

``LinearSVC`` and liblinear regularise the intercept like a weight. The solution then depends on the origin of the data.
With a free intercept it does not.
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
# The same number is added to every feature. This does not change the information in the data.

shifts = np.array([0.0, 1.0, 3.0, 10.0, 30.0, 100.0])
models = {
    "free intercept": MaxMarginClassifier(C=0.01, random_state=0),
    "augmented intercept": MaxMarginClassifier(C=0.01, intercept="augmented", random_state=0),
    "LinearSVC": LinearSVC(C=0.01, dual=False),
}
fig, ax = plt.subplots(layout="constrained")
for (name, model), style in zip(models.items(), ("o-", "s--", "^:")):
    accuracy = [cross_val_score(model, X + shift, y, cv=5).mean() for shift in shifts]
    ax.plot(np.maximum(shifts, 0.3), accuracy, style, label=name)
    print(f"{name:20}", np.round(accuracy, 4))
ax.set(xscale="log", xlabel="added to every feature (0.3 stands for 0)", ylabel="accuracy, 5 folds")
ax.set_title("breast cancer, C = 0.01")
ax.legend(frameon=False)
plt.show()

# %%
# A constant feature with a large value approximates a free intercept, and makes the problem harder for the solver. Here
# the intercept is exactly free: the dual variables of both classes have the same sum, as the certificate shows.

clf = MaxMarginClassifier(C=0.01, random_state=0).fit(X + 100.0, y)
alpha, rows = clf.certificate_.dual, clf.certificate_.support
print(
    f"the sums of the dual variables differ by {abs(alpha[y[rows] == 1].sum() - alpha[y[rows] == 0].sum()):.1g}"
)
