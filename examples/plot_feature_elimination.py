"""
Feature elimination: which genes?
=================================

``MarginRFE`` trains, ranks features by their weights, deletes the last of them, and trains again. No set of
features has a larger margin than a set that contains it: the certificates say what every deletion costs.
"""

import matplotlib.pyplot as plt
import numpy as np
import real_data
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from maxmargin import MarginRFE
from maxmargin.plots import EliminationDisplay

X, y = real_data.load("dlbcl")
Z = make_pipeline(FunctionTransformer(lambda X: np.log(np.maximum(X, 20.0))), StandardScaler()).fit_transform(
    X
)
Z = Z[:, Z.std(axis=0) > 0]
print(f"{Z.shape[0]} people with one of two lymphomas, {Z.shape[1]} genes")

# %%
# With ``cv`` every fold has an elimination of its own, and its test people have no say in it. (One or two
# genes do not separate the people of any fold: there is no hard margin, and no score.)

selector = MarginRFE("auto", p=2, C=float("inf"), step=0.5, cv=4, tol=1e-2, random_state=0).fit(Z, y)
for size, accuracy in zip(selector.cv_results_["n_features"], selector.cv_results_["mean_test_score"]):
    print(f"{size:5d} genes: {accuracy:.3f}")
print(selector.reason_)

# %%
# Accuracy where it was not fitted, and the certified margin of each set.

EliminationDisplay.from_estimator(selector)
plt.show()

# %%
# The genes that are left, by their column:

print(selector.order_[: selector.n_features_][:20])
