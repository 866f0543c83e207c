"""
Micro-arrays: 2,000 genes, 62 people
====================================

With more genes than people, every labelling usually has many separators. The largest margin selects one of them. The
norm of the margin determines the number of genes with a weight: p = 2 uses all genes, p = ∞ only a few.
"""

import matplotlib.pyplot as plt
import numpy as np
import real_data
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from maxmargin import MaxMarginClassifier

X, y = real_data.load("colon")
print(f"{X.shape[0]} people, {(y == -1).sum()} with a tumour; {X.shape[1]} genes")

# %%
# The logarithm of the intensities is taken, and every gene is scaled to the same variance. Each hard margin is
# certified in milliseconds.

prepare = make_pipeline(FunctionTransformer(np.log1p), StandardScaler())
Z = prepare.fit_transform(X)
models = {}
for p in (2, 4, np.inf):
    models[p] = MaxMarginClassifier(C=float("inf"), p=p, tol=1e-2, random_state=0).fit(Z, y)
    proof, size = models[p].certificate_, np.abs(models[p].coef_[0])
    print(
        f"p = {p}: {models[p].status_.value}, margin {proof.lower:.5g} to {proof.upper:.5g}, "
        f"{(size > 1e-6 * size.max()).sum()} genes"
    )

# %%
# Leave-one-out cross-validation, 62 fits:

for p in (2, np.inf):
    model = make_pipeline(prepare, MaxMarginClassifier(C=float("inf"), p=p, tol=1e-2, random_state=0))
    right = cross_val_predict(model, X, y, cv=LeaveOneOut()) == y
    print(f"p = {p}: {right.sum()} of {len(y)} people are classified correctly")

# %%
# The weights of the genes, largest first.

fig, ax = plt.subplots(layout="constrained")
for p, model in models.items():
    size = np.sort(np.abs(model.coef_[0]))[::-1]
    ax.loglog(np.arange(1, size.size + 1), np.maximum(size / size.sum(), 1e-7), label=f"p = {p}", lw=2)
ax.set(xlabel="gene", ylabel="share of the weight", ylim=(1e-6, 1), title="colon tumours, hard margin")
ax.legend(frameon=False)
plt.show()
