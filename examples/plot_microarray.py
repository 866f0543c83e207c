"""
Micro-arrays: hard margins of 62 rows and 2,000 features
========================================================

With more features than rows, usually many hyperplanes separate the classes; the hard margin selects one, and the norm p
determines how many features it uses. All 2,000 genes have a weight for p = 2 and only 30 for p = ∞, while leave-one-out
cross-validation classifies 53 and 55 of the 62 rows correctly.
"""

import matplotlib.pyplot as plt
import numpy as np
import real_data
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from maxmargin import MaxMarginClassifier

X, y = real_data.load("colon")
print(f"{X.shape[0]} rows (tissues), {(y == -1).sum()} of them tumours; {X.shape[1]} features (genes)")

# %%
# Features are logarithms of intensities, scaled to unit variance. Each hard margin is certified to 1 %.

prepare = make_pipeline(FunctionTransformer(np.log1p), StandardScaler())
Z = prepare.fit_transform(X)
models = {}
for p in (2, 4, np.inf):
    models[p] = MaxMarginClassifier(C=float("inf"), p=p, tol=1e-2, random_state=0).fit(Z, y)
    certificate, size = models[p].certificate_, np.abs(models[p].coef_[0])
    print(
        f"p = {p}: {models[p].status_.value}, margin {certificate.lower:.5g} to {certificate.upper:.5g}, "
        f"{(size > 1e-6 * size.max()).sum()} genes with a weight"
    )

# %%
# Leave-one-out cross-validation with 62 fits:

for p in (2, np.inf):
    model = make_pipeline(prepare, MaxMarginClassifier(C=float("inf"), p=p, tol=1e-2, random_state=0))
    right = cross_val_predict(model, X, y, cv=LeaveOneOut()) == y
    print(f"p = {p}: {right.sum()} of {len(y)} rows are classified correctly")

# %%
# Absolute weights of the genes, largest first, as shares of their sum.

fig, ax = plt.subplots(layout="constrained")
for p, model in models.items():
    size = np.sort(np.abs(model.coef_[0]))[::-1]
    ax.loglog(np.arange(1, size.size + 1), np.maximum(size / size.sum(), 1e-7), label=f"p = {p}", lw=2)
ax.set(
    xlabel="rank of the gene",
    ylabel="share of the sum of weights",
    ylim=(1e-6, 1),
    title="colon, hard margin",
)
ax.legend(frameon=False)
plt.show()
