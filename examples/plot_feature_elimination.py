"""
Feature elimination on gene expressions
=======================================

``MarginRFE`` fits a hard margin, removes the features with the smallest weights, and repeats; the example removes genes
until one is left, although the largest margin decreases with every removal.
"""

import matplotlib.pyplot as plt
import numpy as np
import real_data
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from maxmargin import MarginRFE, MaxMarginClassifier

X, y = real_data.load("dlbcl")
Z = make_pipeline(FunctionTransformer(lambda X: np.log(np.maximum(X, 20.0))), StandardScaler()).fit_transform(
    X
)
Z = Z[:, Z.std(axis=0) > 0]
print(f"{Z.shape[0]} rows (patients with one of two lymphomas), {Z.shape[1]} features (genes)")

# %%
# For each number of genes, every fold eliminates without its test rows.

classifier = MaxMarginClassifier(C=float("inf"), tol=1e-2)
selector = MarginRFE(classifier, step=0.5, n_features_to_select=8)
selector.fit(Z, y)
sizes = [stage.n_features for stage in selector.path_]
accuracies = [
    cross_val_score(clone(selector).set_params(n_features_to_select=size), Z, y, cv=4).mean()
    for size in sizes
]
for size, accuracy in zip(sizes, accuracies):
    print(f"{size:5d} genes: {accuracy:.3f}")
print(selector.reason_)

# %%
# Left: accuracy on the test rows of the folds. Right: bounds on the largest
# margin of each set of genes.

fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
axes[0].semilogx(sizes, accuracies, "o-")
axes[1].semilogx(sizes, [stage.lower for stage in selector.path_], "o-", label="lower bound")
axes[1].semilogx(sizes, [stage.upper for stage in selector.path_], "o-", label="upper bound")
axes[1].legend()
for ax, quantity in zip(axes, ("accuracy in cross-validation", "largest margin")):
    ax.set(xlabel="number of genes", ylabel=quantity)
plt.show()

# %%
# Twenty of the columns that are kept, most important first:

print(selector.order_[: selector.n_features_][:20])
