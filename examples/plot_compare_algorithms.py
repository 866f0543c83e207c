"""
Algorithms side by side
=======================

``compare`` runs several algorithms on the same problem, data and seed. The plots show bounds that are computed from the
data for every algorithm, and not the algorithms' own estimates.
"""

import matplotlib.pyplot as plt
import real_data

from maxmargin import IMA, PUMMA, compare

X, y = real_data.load("sonar")

# %%
# The hard margin of sonar, 104 echoes of rocks and mines. The margin is small, so that algorithms that update on
# mistakes need many updates. The Perceptron with margin guarantees a third of the largest directional margin with
# ``b=1``; here it reaches more.

algorithms = ["dcd", "mpu", PUMMA(delta=0.1), "perceptron", IMA(alpha=0.2)]
hard = compare(X, y, algorithms, C=float("inf"), tol=0.02, max_time=3, random_state=0)
print(hard.table())
hard.plot()
plt.show()

# %%
# A soft margin needs fewer updates. The table lists algorithms that cannot solve this problem, with the problems that
# they solve.

soft = compare(
    X,
    y,
    ["dcd", "mpu", "pegasos", "cutting-plane", "pumma"],
    C=10.0,
    loss="hinge",
    max_time=2,
    random_state=0,
)
print(soft.table())
soft.plot()
plt.show()
