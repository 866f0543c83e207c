"""Fit and certify a real data set, check the certificate, and draw the bounds against time: demo.png."""

from __future__ import annotations

import time

import matplotlib as mpl
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from maxmargin import MaxMarginClassifier, verify
from maxmargin.plots import BoundsDisplay

mpl.use("agg")
data = load_breast_cancer()
names = data.target_names[data.target]
X, X_test, y, y_test = train_test_split(data.data, names, random_state=0, stratify=names)
scaler = StandardScaler().fit(X)
X, X_test = scaler.transform(X), scaler.transform(X_test)
print(f"Breast cancer (Wisconsin, diagnostic): {X.shape[1]} standardised measurements of cell nuclei,")
print(f"malignant or benign; {len(y)} patients for training, {len(y_test)} for testing.\n")

MaxMarginClassifier(random_state=0).fit(X, y)  # compiles, so that the times below are those of the algorithm
begin = time.perf_counter()
model = MaxMarginClassifier(random_state=0).fit(X, y)
seconds = time.perf_counter() - begin

print("   round    seconds     lower bound     upper bound        gap")
for report in model.history_:
    bounds = f"{report.lower:15.9g} {report.upper:15.9g} {report.gap:10.2g}"
    print(f"{report.round:8d} {report.seconds:10.4f} {bounds}  {report.stage}")
print(f"\n{model.status_.value} in {seconds:.2g} s; the tolerance is a gap of {model.tol:g}.")
print(model.certificate_)
verify(model, X, y)  # raises an error if a bound does not hold
print("\nverified: recomputed from the data, both bounds hold.")
print(f"test accuracy: {model.score(X_test, y_test):.4f}")
BoundsDisplay.from_estimator(model).figure_.savefig("demo.png", dpi=100)
print("picture: demo.png")
