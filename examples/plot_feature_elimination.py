"""
Feature elimination on gene expressions
=======================================

``MarginRFE`` fits a classifier, ranks the features by their weights, removes the last ones, and fits again. A subset of
the features never has a larger margin than the whole set. The certificates show the decrease with every removal.
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
# With ``cv`` every fold has its own elimination, which does not use the fold's test rows. (One or two genes do not
# separate the rows of any fold: there is no hard margin, and no score.)

selector = MarginRFE("auto", p=2, C=float("inf"), step=0.5, cv=4, tol=1e-2, random_state=0).fit(Z, y)
for size, accuracy in zip(selector.cv_results_["n_features"], selector.cv_results_["mean_test_score"]):
    print(f"{size:5d} genes: {accuracy:.3f}")
print(selector.reason_)

# %%
# Accuracy on the test rows, and the certified margin of each set of features.

EliminationDisplay.from_estimator(selector)
plt.show()

# %%
# The columns of the genes that were kept:

print(selector.order_[: selector.n_features_][:20])
