"""
Algorithms side by side
=======================

``compare`` runs algorithms on the same problem, data and seed. Since each of them is judged by bounds from
the data, the pictures show what they reached, not what they believed of themselves.
"""

import matplotlib.pyplot as plt
import real_data

from maxmargin import IMA, PUMMA, compare

X, y = real_data.load("sonar")

# %%
# The hard margin of sonar, 104 echoes of rocks and mines: it is small, and so a hard problem for whatever
# counts mistakes. The Perceptron with margin promises a third of the largest directional margin with
# ``b=1``; it has more.

algorithms = ["dcd", "mpu", PUMMA(delta=0.1), "perceptron", IMA(alpha=0.2)]
hard = compare(X, y, algorithms, C=float("inf"), tol=0.02, max_time=3, random_state=0)
print(hard.table())
hard.plot()
plt.show()

# %%
# And a soft margin, where all have less to do. Algorithms that do not solve the problem are listed, with
# what they do solve.

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
