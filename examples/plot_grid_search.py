"""
Grid search over norms, losses and algorithms
=============================================

All settings are parameters of a scikit-learn estimator, so that ``GridSearchCV`` searches over the norm p, the loss, C
and the algorithm. On heart, the best value of C depends on the norm and the loss, the best accuracies hardly do.
"""

import matplotlib.pyplot as plt
import numpy as np
import real_data
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import MaxMarginClassifier
from maxmargin.algorithms import MPU, PUMMA

X, y = real_data.load("heart")
folds = StratifiedKFold(5, shuffle=True, random_state=0)
pipe = make_pipeline(StandardScaler(), MaxMarginClassifier(random_state=0))

# %%
# Three norms, two losses and seven values of C, in five folds:

grid = {
    "maxmarginclassifier__p": [1, 2, np.inf],
    "maxmarginclassifier__loss": ["hinge", "squared_hinge"],
    "maxmarginclassifier__C": np.logspace(-4, 2, 7).tolist(),
}
search = GridSearchCV(pipe, grid, cv=folds, n_jobs=1).fit(X, y)
print(search.best_params_, f"{search.best_score_:.4f}")
print(search.best_estimator_[-1].certificate_)

# %%
# Mean accuracy by C, for each norm and loss.

fig, axes = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
results = search.cv_results_
for ax, loss in zip(axes, grid["maxmarginclassifier__loss"]):
    for p in grid["maxmarginclassifier__p"]:
        rows = (results["param_maxmarginclassifier__p"] == p) & (
            results["param_maxmarginclassifier__loss"] == loss
        )
        ax.semilogx(grid["maxmarginclassifier__C"], results["mean_test_score"][rows], "o-", label=f"p = {p}")
    ax.set(xlabel="C", title=f"loss: {loss}")
axes[0].set_ylabel("mean accuracy in 5 folds")
axes[0].legend(frameon=False)
plt.show()

# %%
# An algorithm object, with its own parameters, is a value of the parameter ``algorithm``. The algorithms solve the same
# problem with different guarantees: ``PUMMA(delta=0.3)`` ends farther from the optimum.

rules = {
    "maxmarginclassifier__algorithm": ["auto", MPU(schedule="two-level"), PUMMA(delta=0.3), PUMMA(delta=0.03)]
}
found = GridSearchCV(pipe.set_params(maxmarginclassifier__C=0.01), rules, cv=folds).fit(X, y).cv_results_
for rule, accuracy in zip(found["param_maxmarginclassifier__algorithm"], found["mean_test_score"]):
    print(f"{accuracy:.4f}  {rule}")
