"""
Digits: a kernel classifier and its support vectors
===================================================

``KernelMaxMarginClassifier`` has the parameter names of ``SVC``; the example certifies its ten decision functions (one
digit against the rest) and compares it with ``SVC``. With one problem for each pair of classes, as in ``SVC``, both
predict the same labels, and their dual coefficients differ by at most 1e-05.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from maxmargin import KernelMaxMarginClassifier, verify

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0)

clf = KernelMaxMarginClassifier(C=5.0, kernel="rbf", gamma="scale", tol=1e-3).fit(X_train, y_train)
print(clf.certificate_)
print(
    f"test accuracy {clf.score(X_test, y_test):.4f}, {clf.support_.size} of {len(y_train)} rows are support vectors"
)

# %%
# ``verify`` recomputes all bounds from the images, in float64:

print(f"largest recomputed gap {verify(clf, X_train, y_train).gap:.2g}")

# %%
# ``multi_class="ovo"`` solves one problem for each pair of classes, as ``SVC`` does.

ovo = KernelMaxMarginClassifier(C=5.0, multi_class="ovo", tol=1e-6).fit(X_train, y_train)
svc = SVC(C=5.0, tol=1e-6).fit(X_train, y_train)
print("equal predictions:", (ovo.predict(X_test) == svc.predict(X_test)).all())
print(f"largest difference of a dual coefficient {np.abs(ovo.dual_coef_ - svc.dual_coef_).max():.1g}")

# %%
# The rows with the largest dual variables are the hardest rows to separate from the other digits.

fig, axes = plt.subplots(3, 10, figsize=(9, 3.2), layout="constrained")
for k, digit in enumerate(clf.classes_):
    certificate = clf.certificate_[k]
    is_digit = y_train[certificate.support] == digit
    order = np.argsort(certificate.dual[is_digit])[::-1]
    hardest = certificate.support[is_digit][order[:3]]
    for ax, row in zip(axes[:, k], hardest):
        ax.imshow(X_train[row].reshape(8, 8), cmap="gray_r")
        ax.set(xticks=[], yticks=[])
    axes[0, k].set_title(str(digit))
fig.suptitle("three images of each digit with the largest dual variables")
plt.show()
