"""
Algorithms side by side
=======================

``compare`` runs several algorithms on the same problem, with the same data and seed, and recomputes all bounds from the
data. On sonar, dual coordinate descent (``dcd``) and the margin Perceptron with unlearning (``mpu``) reach the smallest
gaps, and the soft margin needs far fewer updates than the hard margin.
"""

import matplotlib.pyplot as plt
import real_data

from maxmargin import compare
from maxmargin.algorithms import IMA, PUMMA

X, y = real_data.load("sonar")
print(f"{X.shape[0]} rows, {X.shape[1]} features")

# %%
# Hard margin of sonar. The margin is small, so that algorithms of the Perceptron family need many updates. Column
# ``margin`` is the margin of the result, ``at most`` the upper bound on the largest margin.

algorithms = ["dcd", "mpu", PUMMA(delta=0.1), "perceptron", IMA(alpha=0.2)]
hard = compare(X, y, algorithms, C=float("inf"), tol=0.02, max_time=3, random_state=0)
print(hard.table())
hard.plot()
plt.show()

# %%
# Soft margin, hinge loss, C = 10. Column ``at least`` is the lower bound on the objective. An algorithm that does not
# solve the problem is listed with the reason, as ``pumma`` here.

soft = compare(
    X,
    y,
    ["dcd", "mpu", "pegasos", "proximal-point", "pumma"],
    C=10.0,
    loss="hinge",
    max_time=2,
    random_state=0,
)
print(soft.table())
soft.plot()
plt.show()
