"""
Digits: a kernel classifier and its support vectors
===================================================

``KernelMaxMarginClassifier`` has the parameter names of ``SVC``. In addition, each of the ten decision functions has
certified bounds in the kernel's feature space, which account for the rounding of every kernel value.
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
print(f"test accuracy {clf.score(X_test, y_test):.4f}, {clf.support_.size} of {len(y_train)} images in use")

# %%
# ``verify`` recomputes the certificate from the images, in float64:

print(f"largest gap after verification {verify(clf, X_train, y_train).gap:.2g}")

# %%
# ``SVC`` solves one problem for each pair of classes. With ``multi_class="ovo"`` both have the same solution.

ovo = KernelMaxMarginClassifier(C=5.0, multi_class="ovo", tol=1e-6).fit(X_train, y_train)
svc = SVC(C=5.0, tol=1e-6).fit(X_train, y_train)
print("the same predictions:", (ovo.predict(X_test) == svc.predict(X_test)).all())
print(f"largest difference of a dual coefficient {np.abs(ovo.dual_coef_ - svc.dual_coef_).max():.1g}")

# %%
# The images with the largest dual variables are the hardest ones to separate from the other digits.

fig, axes = plt.subplots(3, 10, figsize=(9, 3.2), layout="constrained")
for k, digit in enumerate(clf.classes_):
    proof = clf.certificate_[k]
    mine = y_train[proof.support] == digit
    hardest = proof.support[mine][np.argsort(proof.dual[mine])[::-1][:3]]
    for ax, row in zip(axes[:, k], hardest):
        ax.imshow(X_train[row].reshape(8, 8), cmap="gray_r")
        ax.set(xticks=[], yticks=[])
    axes[0, k].set_title(str(digit))
fig.suptitle("the three images of each digit with the largest dual weights")
plt.show()
