"""Non-negative least squares by active sets, on working sets of rows.

References
----------
C. L. Lawson, R. J. Hanson, "Solving Least Squares Problems", Prentice-Hall 1974, chapter 23.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np
from scipy.linalg import qr_delete, solve_triangular  # pyright: ignore[reportAttributeAccessIssue]
from scipy.optimize import nnls

from ..numerics.stop_check import require_time
from ..numerics.sums import EPS, SMALLEST_FLOAT

# Entries, n m, and operations, n m min(n, m), up to which `nnls` solves the problem: a tenth of the time of the
# iteration below on 200 x 30 numbers (2 ms), 0.1 to 0.5 of it on 300 x 300, 600 x 150 and 500 x 450, the same on
# 1,500 x 150 and 3,000 x 65. It takes about 3e-9 (n m)^1.5 seconds, 0.4 at these limits, and cannot be stopped.
MAX_ENTRIES, MAX_UNSTOPPED = 2.5e5, 1e7
# Steps of `scipy.optimize.nnls`, as multiples of the number of rows, after which the iteration has failed.
MAX_STEPS = 3
# A working set has one row for so many unknowns. With larger ones more rows join that have to leave again, with smaller
# ones all rows are priced more often: 2,000 x 1,200 took 8.7 s with 16, 12.7 s with 4.
SHARE = 16
# Working sets that may leave the residual as long as it is: rows of a huge length shorten it by less than its rounding.
MAX_IDLE = 10
# A row joins the support if its distance from the span of the support exceeds so many rounding errors of its length.
INDEPENDENT = 100.0


class Support:
    """The rows with positive weights, as a factorisation A'_S = QR, and the least-squares weights on them."""

    def __init__(self, A: np.ndarray, b: np.ndarray) -> None:
        most = min(A.shape)  # a support is independent
        self.A, self.b, self.rows, self.z = A, b, np.empty(0, dtype=np.int64), np.empty(0)
        # beyond the support R is the identity, and Q'b is zero: equations of one size, which are not copied
        self.Q, self.R = np.zeros((b.size, most), order="F"), np.eye(most, order="F")
        self.Qb = np.zeros(most)
        self.residual = b

    def join(self, i: int) -> bool:
        """Add row i, and remove rows whose weights would become negative; return False if nothing has changed.

        Row i stays outside if it depends on the support, or if its own weight would not be positive.
        """
        k, a = self.rows.size, self.A[i]
        if k == self.Qb.size:
            return False
        Q, coefficients, rest = self.Q[:, :k], np.zeros(k), a
        for _ in range(2):  # Gram-Schmidt, twice for orthogonality to rounding
            along = Q.T @ rest
            coefficients, rest = coefficients + along, rest - Q @ along
        length = float(np.linalg.norm(rest))
        if not length > INDEPENDENT * EPS * float(np.linalg.norm(a)):
            return False
        q = rest / length
        self.Q[:, k], self.R[:k, k], self.R[k, k], self.Qb[k] = q, coefficients, length, q @ self.residual
        new = self._solution(k + 1)
        if not new[k] > 0.0:
            self._clear(k)
            return False
        self.rows, self.z = np.append(self.rows, i), np.append(self.z, 0.0)
        while not (new > 0.0).all():
            # to the first weight that becomes zero on the way to the solution
            falls = new <= 0.0
            # zero, not NaN, where both are zero
            shares = np.where(falls, self.z, np.inf) / np.maximum(self.z - new, SMALLEST_FLOAT)
            out = int(shares.argmin())
            self.z = self.z + shares[out] * (new - self.z)
            self._leave(out)
            new = self._solution(self.rows.size)
        self.z = new
        if self.rows.size == k + 1:
            self.residual = self.residual - self.Qb[k] * q
        else:
            self._project()
        return True

    def _solution(self, k: int) -> np.ndarray:
        """Return the least-squares weights, of any sign, of the first k columns of the factorisation."""
        return solve_triangular(self.R, self.Qb, check_finite=False)[:k]

    def _leave(self, out: int) -> None:
        """Remove a row of the support, by its place in it."""
        k = self.rows.size
        self.rows, self.z = np.delete(self.rows, out), np.maximum(np.delete(self.z, out), 0.0)
        Q, R = qr_delete(self.Q[:, :k], self.R[:k, :k], out, which="col", check_finite=False)
        self.Q[:, : k - 1], self.R[: k - 1, : k - 1] = Q[:, : k - 1], R[: k - 1]
        self.Qb[: k - 1] = self.Q[:, : k - 1].T @ self.b
        self._clear(k - 1)

    def _clear(self, k: int) -> None:
        """Remove column k, the last one, of the factorisation."""
        self.R[:, k], self.R[k, k], self.Qb[k] = 0.0, 1.0, 0.0

    def _project(self) -> None:
        """Compute the residual anew; twice, so that it is orthogonal to the support up to its own rounding."""
        Q, self.residual = self.Q[:, : self.rows.size], self.b
        for _ in range(2):
            self.residual = self.residual - Q @ (Q.T @ self.residual)


def nonnegative_least_squares(
    A: np.ndarray, b: np.ndarray, interrupted: Callable[[], bool]
) -> tuple[np.ndarray, np.ndarray] | None:
    """Minimise |A'z - b| over z >= 0; return z and b - A'z, or None after too many steps.

    All rows a_i of A, of shape (n, m), are priced by a_i.(b - A'z), which is at most zero at the optimum. The rows
    of the largest prices are the working set, from which rows join the support until none has a positive price.
    OutOfTime is raised if the stop check, made in each step, is true. SciPy solves small problems.
    """
    if A.size <= MAX_ENTRIES or float(A.size) * min(A.shape) <= MAX_UNSTOPPED:
        with suppress(RuntimeError):  # too many steps
            z, _ = nnls(A.T, b)
            return z, b - z @ A
    support, steps, idle = Support(A, b), 0, 0
    refused = np.zeros(len(A), dtype=bool)  # by the present support
    errors = b.size * EPS * np.linalg.norm(A, axis=1)
    zero, least = b.size * EPS * float(np.linalg.norm(b)), np.inf
    while True:
        size = float(np.linalg.norm(support.residual))
        prices = np.where(refused, 0.0, A @ support.residual - errors * size)
        prices[support.rows] = 0.0
        working = np.argsort(-prices, kind="stable")[: 1 + b.size // SHARE]
        working = working[prices[working] > 0.0]
        idle, least = (0, size) if size < least else (idle + 1, least)
        if not working.size or size <= zero or idle > MAX_IDLE:
            z = np.zeros(len(A))
            z[support.rows] = support.z
            return z, support.residual
        B = A[working]
        while True:
            require_time(interrupted)
            prices = B @ support.residual - errors[working] * float(np.linalg.norm(support.residual))
            prices[refused[working] | np.isin(working, support.rows)] = 0.0
            best = int(prices.argmax())
            if not prices[best] > 0.0:
                break
            if steps == MAX_STEPS * len(A):
                return None
            steps += 1
            if support.join(int(working[best])):
                refused[:] = False
            else:
                refused[working[best]] = True
