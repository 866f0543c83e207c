"""Which columns are far from 0 beside their spread, told row by row."""

from __future__ import annotations

from .jit import compiled


@compiled()
def far_off(X, share, columns, top, bottom):
    """The columns whose spread may be less than a share of their size, with their extremes. (How many.)

    Two entries are apart by twice the spread at most, and an entry is as large as the column but for that: most columns
    are told by their first rows, and the others looked at in no more.
    """
    for j in range(columns.size):
        columns[j], top[j], bottom[j] = j, X[0, j], X[0, j]
    left, times = columns.size, 0.5 / share - 1.0
    for i in range(1, X.shape[0]):
        row, count, left = X[i], left, 0
        for k in range(count):
            j = columns[k]
            high, low = max(top[k], row[j]), min(bottom[k], row[j])
            columns[left], top[left], bottom[left] = j, high, low
            left += (high - low) * times <= max(abs(high), abs(low))
    return left
