"""
Calibration: probabilities from decision values
===============================================

``CalibratedClassifierCV`` turns the decision values of a classifier into probabilities, by cross-validation; the
example compares its two methods on adult. Both give the same Brier score here, so that either replaces the parameter
``probability`` of ``SVC``, which maxmargin does not have.
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
# ``"sigmoid"`` fits a logistic function of the decision value (Platt scaling). ``"isotonic"`` fits an increasing step
# function.

fig, ax = plt.subplots(figsize=(5.5, 5), layout="constrained")
for method in ("sigmoid", "isotonic"):
    calibrated = CalibratedClassifierCV(base, method=method, cv=3).fit(X, y)
    probability = calibrated.predict_proba(X_test)[:, 1]
    print(f"{method:9} Brier score {brier_score_loss(y_test, probability):.4f}")
    CalibrationDisplay.from_predictions(y_test, probability, n_bins=12, name=method, ax=ax)
ax.set_title(f"adult, {len(y_test):,} test rows")
plt.show()

# %%
# Each of the three fits of the cross-validation is certified:

for fold in calibrated.calibrated_classifiers_:
    print(fold.estimator.status_.value, f"gap {fold.estimator.certificate_.gap:.1g}")
