"""Scores and linear combinations of dense rows, faster than BLAS for few columns."""

from __future__ import annotations

from .jit import compiled

# Columns up to which four scores at a time take less time than one, of rows in main memory, which is read fastest in
# order. Beyond, single rows are as fast. Chosen on the data sets of benchmarks.before_after.
MAX_COLUMNS = 8


@compiled()
def scores(rows, z, out):
    """Set `out` to the scores rows @ z, for rows that are in main memory."""
    four_at_a_time(rows, z, out, rows.shape[0] if z.size <= MAX_COLUMNS else 0)


@compiled(fastmath={"reassoc", "contract"})
def four_at_a_time(rows, z, out, count):
    """Set `out` to the scores rows @ z: of the first `count` rows four at a time, of all other rows one by one.

    Four rows share each load of an entry of z.
    """
    whole = count - count % 4
    for i in range(0, whole, 4):
        a, b, c, d = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
        p = q = r = s = 0.0
        for j in range(z.size):
            p += a[j] * z[j]
            q += b[j] * z[j]
            r += c[j] * z[j]
            s += d[j] * z[j]
        out[i], out[i + 1], out[i + 2], out[i + 3] = p, q, r, s
    for i in range(whole, rows.shape[0]):
        row = rows[i]
        total = 0.0
        for j in range(z.size):
            total += row[j] * z[j]
        out[i] = total


@compiled(fastmath={"reassoc", "contract"})
def combine(rows, c, places, out):
    """Set `out` to sum c_i rows_i, four rows at a time; rows with c_i = 0 are skipped.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    c : ndarray of shape (n,)
    places : ndarray of int of shape (n,) or longer
        Workspace: the places of the entries of c that are not 0.
    out : ndarray of shape (d,)
    """
    out[:] = 0.0
    count = 0
    for i in range(c.size):
        places[count] = i  # without a branch: overwritten by the next row where c_i is 0
        count += c[i] != 0.0
    whole = count - count % 4
    # four rows share each load and store of an entry of `out`
    for k in range(0, whole, 4):
        h, i, j, l = places[k], places[k + 1], places[k + 2], places[k + 3]
        p, q, r, s = c[h], c[i], c[j], c[l]
        a, b, d, e = rows[h], rows[i], rows[j], rows[l]
        for column in range(out.size):
            out[column] += (p * a[column] + q * b[column]) + (r * d[column] + s * e[column])
    for k in range(whole, count):
        i = places[k]
        row = rows[i]
        for column in range(out.size):
            out[column] += c[i] * row[column]


@compiled()
def add_combined(rows, c, places, part, sums):
    """Add sum c_i rows_i to `sums`; `part`, of the same shape, and `places` (see `combine`) are workspace.

    Calls for one block of rows at a time make sums of partial sums, which have a smaller rounding error.
    """
    combine(rows, c, places, part)
    for j in range(sums.size):
        sums[j] += part[j]
