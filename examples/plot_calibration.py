"""
Calibration: probabilities from margins
=======================================

A margin is not a probability. ``CalibratedClassifierCV`` computes probabilities from margins by cross-validation.
maxmargin has no parameter ``probability`` as ``SVC`` had. That parameter caused five more fits, whose probabilities
could disagree with ``predict``.
"""

import matplotlib.pyplot as plt
import real_data
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.metrics import brier_score_loss

from maxmargin import MaxMarginClassifier

X, y = real_data.load("adult")
X_test, y_test = real_data.load("adult-test")
base = MaxMarginClassifier(C=0.1, random_state=0)

# %%
# There are two methods: a sigmoid of the score (Platt), and any increasing function of it (isotonic).

fig, ax = plt.subplots(figsize=(5.5, 5), layout="constrained")
for method in ("sigmoid", "isotonic"):
    calibrated = CalibratedClassifierCV(base, method=method, cv=3).fit(X, y)
    chance = calibrated.predict_proba(X_test)[:, 1]
    print(f"{method:9} Brier score {brier_score_loss(y_test, chance):.4f}")
    CalibrationDisplay.from_predictions(y_test, chance, n_bins=12, name=method, ax=ax)
ax.set_title("adult, 16,281 people that were not fitted")
plt.show()

# %%
# Every fit of the cross-validation has a certificate:

for fold in calibrated.calibrated_classifiers_:
    print(fold.estimator.status_.value, f"{fold.estimator.certificate_.gap:.1g}")
