"""
The hard margin, or a proof that there is none
==============================================

``C=inf`` computes the hard margin: the hyperplane with the largest distance from both classes. If the classes are
separable, the certificate is an interval that contains the largest margin; if they are not, a few rows with rational
weights prove it.
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
# Setosa and versicolor, with sepal length and petal length, are separable. The rows of the certificate lie on the two
# margin lines. The distance between weighted means of the rows on either line, halved, is an upper bound on the margin.

X_apart, y_apart = pair(0, 1, [0, 2])
clf = MaxMarginClassifier(C=float("inf"), random_state=0).fit(X_apart, y_apart)
verify(clf, X_apart, y_apart)
print(clf.certificate_)

# %%
# Versicolor and virginica, with petal length and petal width, are not separable. The smallest proof is a pair of equal
# rows with different labels.

X_mixed, y_mixed = pair(1, 2, [2, 3])
mixed = MaxMarginClassifier(C=float("inf"), random_state=0).fit(X_mixed, y_mixed)
print(mixed.status_.value)
print(mixed.verdict_)

# %%
# The loop removes such pairs and fits the remaining rows, until a proof has more than two rows.

while mixed.verdict_.support.size == 2:
    print("removed:", X_mixed[mixed.verdict_.support[0]])
    X_mixed, y_mixed = (np.delete(part, mixed.verdict_.support, axis=0) for part in (X_mixed, y_mixed))
    mixed = MaxMarginClassifier(C=float("inf"), random_state=0).fit(X_mixed, y_mixed)
print(mixed.verdict_)
mixed.verdict_.verify(X_mixed, y_mixed)

# %%
# The remaining rows are not separable either: a weighted mean of versicolor rows (here a single row) equals a weighted
# mean of virginica rows. The weights are fractions, and the equation holds exactly.

for row, weight in zip(mixed.verdict_.support, mixed.verdict_.weights):
    print(f"{y_mixed[row]:10} {X_mixed[row]}, weight about {float(weight):.6f}")

fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
draw(left, X_apart, y_apart)
(a, c), b = clf.coef_[0], clf.intercept_[0]
ends = np.array(left.get_xlim())
for level, style in ((-1, "--"), (0, "-"), (1, "--")):
    # value of the decision function on the margin lines
    value = clf.certificate_.upper * np.hypot(a, c)
    left.plot(ends, (level * value - b - a * ends) / c, style, color="#0f172a", lw=1.2)
left.scatter(*X_apart[clf.certificate_.support].T, s=110, facecolors="none", edgecolors="#0f172a")
left.set(
    xlabel="sepal length",
    ylabel="petal length",
    title=f"separable: largest margin {clf.certificate_.upper:.4f}",
)
left.legend(frameon=False)

draw(right, X_mixed, y_mixed)
alpha = mixed.verdict_.alpha
for name in np.unique(y_mixed):
    rows = mixed.verdict_.support[y_mixed[mixed.verdict_.support] == name]
    closed = np.vstack([X_mixed[rows], X_mixed[rows[:1]]])
    right.plot(*closed.T, color="#0f172a", lw=1.2)
    share = alpha[y_mixed[mixed.verdict_.support] == name]
    mean = share @ X_mixed[rows] / share.sum()
right.plot(*mean, "*", ms=16, color="#0f172a", label="weighted mean")
right.set(xlabel="petal length", ylabel="petal width", title="not separable: equal weighted means")
right.legend(frameon=False)
plt.show()
