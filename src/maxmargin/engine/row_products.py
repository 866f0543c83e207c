"""Dense rows times a vector, and combined: of so few columns that BLAS has no time to be fast, or rows in cache."""

from __future__ import annotations

from .jit import compiled

# columns, of which four rows at a time are faster: always, and of rows that are in cache
NARROW, SHORT = 8, 100


@compiled()
def scores(rows, z, out):
    """z times all rows, which memory brings fastest one by one."""
    four_at_a_time(rows, z, out, rows.shape[0] if z.size <= NARROW else 0)


@compiled()
def scores_near(rows, z, out):
    """The same of rows that are in cache, or nearly."""
    four_at_a_time(rows, z, out, rows.shape[0] if z.size <= SHORT else 0)


@compiled(fastmath={"reassoc", "contract"})
def one_at_a_time(rows, z, out):
    """z times all rows."""
    for i in range(rows.shape[0]):
        row = rows[i]
        total = 0.0
        for j in range(z.size):
            total += row[j] * z[j]
        out[i] = total


@compiled(fastmath={"reassoc", "contract"})
def four_at_a_time(rows, z, out, count):
    """z times all rows, the first of which are so many that are taken together."""
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
    one_at_a_time(rows[whole:], z, out[whole:])


@compiled(fastmath={"reassoc", "contract"})
def combine(rows, c, some, out):
    """c times all rows; `some` is room for the places of those that are not 0."""
    out[:] = 0.0
    count = 0
    for i in range(c.size):
        some[count] = i
        count += c[i] != 0.0
    whole = count - count % 4
    for k in range(0, whole, 4):
        h, i, j, l = some[k], some[k + 1], some[k + 2], some[k + 3]
        p, q, r, s = c[h], c[i], c[j], c[l]
        a, b, d, e = rows[h], rows[i], rows[j], rows[l]
        for column in range(out.size):
            out[column] += (p * a[column] + q * b[column]) + (r * d[column] + s * e[column])
    for k in range(whole, count):
        i = some[k]
        row = rows[i]
        for column in range(out.size):
            out[column] += c[i] * row[column]


@compiled()
def add_combined(rows, c, some, part, sums):
    """sums += c times all rows, which are made in `part`: of few rows at a time, long sums keep their digits."""
    combine(rows, c, some, part)
    for j in range(sums.size):
        sums[j] += part[j]
