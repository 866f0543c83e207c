"""
Separability of ten data sets
=============================

``separate`` decides whether a hyperplane separates two classes; the example runs it on ten data sets. Every verdict has
a proof: a margin above zero, or at most d + 2 rows (d columns) with rational weights whose weighted sum is exactly
zero.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
import real_data
from sklearn.datasets import load_breast_cancer

from maxmargin import separate

sets = {
    name: real_data.load(name)
    for name in (
        "sonar",
        "heart",
        "german",
        "diabetes",
        "australian",
        "splice",
        "mushrooms",
        "colon",
        "arcene",
    )
}
sets["breast cancer"] = load_breast_cancer(return_X_y=True)

# %%
# ``tol=inf`` computes only the verdict; the default, 1 %, also narrows the interval of the largest margin.

lines = []
for name, (X, y) in sets.items():
    start = time.perf_counter()
    verdict = separate(X, y, tol=float("inf"))
    verdict.verify(X, y)
    seconds = time.perf_counter() - start
    lines.append((name, X.shape, verdict, seconds))
    result = (
        f"separable, margin at least {verdict.lo:.3g}"
        if verdict.separable
        else f"not separable: {verdict.support.size} rows prove it"
    )
    print(f"{name:14} {X.shape[0]:5} x {X.shape[1]:5}  {seconds:6.2f} s  {result}")

# %%
# Data with more columns than rows are usually separable, but mushrooms, with 8,124 rows and 112 columns, is separable
# too.

# offsets of names that would overlap
PLACES = {"diabetes": (-22, 10), "german": (-16, 10), "splice": (-12, 10), "australian": (-26, -18)}

fig, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
for name, (n, d), verdict, _ in lines:
    ax.loglog(
        d, n, "o" if verdict.separable else "X", ms=10, color="#1d4ed8" if verdict.separable else "#c2410c"
    )
    ax.annotate(name, (d, n), PLACES.get(name, (8, -3)), textcoords="offset points", fontsize=9)
ends = np.array([8.0, 12000.0])
ax.loglog(ends, ends, color="#94a3b8", lw=1, label="as many rows as columns")
ax.plot([], [], "o", color="#1d4ed8", label="separable")
ax.plot([], [], "X", color="#c2410c", label="not separable")
ax.set(xlim=(5, 40000), xlabel="columns", ylabel="rows", title="verdicts of separate")
ax.legend(frameon=False)
plt.show()

# %%
# The proof with the fewest rows: row, label and weight. The weights are fractions of large integers.

name, _, verdict, _ = min(
    (line for line in lines if not line[2].separable), key=lambda line: line[2].support.size
)
print(name)
for row, weight in zip(verdict.support, verdict.weights):
    text = str(weight)
    print(
        f"  row {row:4}, {sets[name][1][row]:2}: {text if len(text) < 60 else f'about {float(weight):.6f}'}"
    )
