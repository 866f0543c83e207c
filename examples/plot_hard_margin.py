"""
The hard margin, or the proof that there is none
================================================

``C=inf`` is the hard margin: the hyperplane with the largest distance from both classes. If the classes are separable,
the certificate is an interval that contains this margin. If they are not, a few rows prove it, in rational numbers.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from maxmargin import MaxMarginClassifier, verify

X, y = load_iris(return_X_y=True)
names = ("setosa", "versicolor", "virginica")


def pair(first, second, columns):
    """Return the rows of two species with two of the measurements."""
    rows = (y == first) | (y == second)
    return X[rows][:, columns], np.where(y[rows] == second, names[second], names[first])


def draw(ax, X, y):
    for name, colour, marker in zip(np.unique(y), ("#1d4ed8", "#c2410c"), "o^"):
        ax.scatter(*X[y == name].T, c=colour, marker=marker, s=25, edgecolors="white", lw=0.5, label=name)


# %%
# Setosa and versicolor, by sepal length and petal length. The rows of the certificate lie on the two margin lines. The
# distance between a weighted mean of the rows on one line and a weighted mean of those on the other is an upper bound
# of the width between the lines.

X_apart, y_apart = pair(0, 1, [0, 2])
clf = MaxMarginClassifier(C=float("inf"), random_state=0).fit(X_apart, y_apart)
verify(clf, X_apart, y_apart)
print(clf.certificate_)

# %%
# Versicolor and virginica, by petal length and petal width, overlap. The smallest possible proof consists of two equal
# rows of different species.

X_mixed, y_mixed = pair(1, 2, [2, 3])
mixed = MaxMarginClassifier(C=float("inf"), random_state=0).fit(X_mixed, y_mixed)
print(mixed.status_.value)
print(mixed.verdict_)

# %%
# Such pairs are removed, and the rest is fitted again, until the proof has more than two rows.

while mixed.verdict_.support.size == 2:
    print("left out:", X_mixed[mixed.verdict_.support[0]])
    X_mixed, y_mixed = (np.delete(part, mixed.verdict_.support, axis=0) for part in (X_mixed, y_mixed))
    mixed = MaxMarginClassifier(C=float("inf"), random_state=0).fit(X_mixed, y_mixed)
print(mixed.verdict_)
mixed.verdict_.verify(X_mixed, y_mixed)

# %%
# The rest is not separable either: a weighted mean of some versicolor rows equals a weighted mean of virginica rows.

for row, weight in zip(mixed.verdict_.support, mixed.verdict_.weights):
    print(f"{float(weight):.6f} (a fraction) of {X_mixed[row]}, {y_mixed[row]}")

fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
draw(left, X_apart, y_apart)
(a, c), b = clf.coef_[0], clf.intercept_[0]
ends = np.array(left.get_xlim())
for level, style in ((-1, "--"), (0, "-"), (1, "--")):
    # the weights are scaled so that the decision function is -1 and 1 on the margin lines
    half = clf.certificate_.upper * np.hypot(a, c)
    left.plot(ends, (level * half - b - a * ends) / c, style, color="#0f172a", lw=1.2)
left.scatter(*X_apart[clf.certificate_.support].T, s=110, facecolors="none", edgecolors="#0f172a")
left.set(xlabel="sepal length", ylabel="petal length", title=f"largest margin {clf.certificate_.upper:.4f}")
left.legend(frameon=False)

draw(right, X_mixed, y_mixed)
alpha = mixed.verdict_.alpha
for name in np.unique(y_mixed):
    rows = mixed.verdict_.support[y_mixed[mixed.verdict_.support] == name]
    closed = np.vstack([X_mixed[rows], X_mixed[rows[:1]]])
    right.plot(*closed.T, color="#0f172a", lw=1.2)
    share = alpha[y_mixed[mixed.verdict_.support] == name]
    mean = share @ X_mixed[rows] / share.sum()
right.plot(*mean, "*", ms=16, color="#0f172a", label="the mean of both")
right.set(xlabel="petal length", ylabel="petal width", title="not separable, and why")
right.legend(frameon=False)
plt.show()
