"""Dual coordinate descent on partitioned rows; rows whose dual variables are likely to change are kept in memory.

For soft margins at p = 2 of sparse rows with many columns. After the dual cached loops of StreamSVM: memory holds a
block of rows that was just read, and the rows of earlier blocks whose dual variables are most likely to change. All
rows in memory are swept a few times, and after each sweep the rows whose dual variables changed, until these hardly
change. Then the next block is read. Every row that
is read is also scored at the w that was frozen when the pass began. At the end of the pass the objective of this w, and
the dual objective of the dual variables of the same moment, are therefore known exactly: each pass gives a lower and an
upper bound without a read of its own.

A free intercept is the weight of a constant coordinate with a proximal term. Its centre moves after every block by the
method of multipliers, in proportion to sum alpha_i y_i. For the bound the heavier class is scaled down.

References
----------
S. Matsushima, S. V. N. Vishwanathan, A. J. Smola, "Linear support vector machines via dual cached loops", KDD 2012.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algorithms.online.dual_coordinate_descent import Descend
from ..certificates.row_pass import bound_of_dual
from ..data.rows import Patterns
from ..engine.sweep import objective_gap, repeat, score_rows, shuffled
from ..fit.best import Primal
from ..fit.schedules import ENTRIES_PER_CALL
from .blocks import ArrayPartitions, Rows, release_pages, signs_of
from .passes import Block, Sums
from .sample import MAX_IDLE

if TYPE_CHECKING:
    from .solve import PassFit, Proof

# Part of the memory for rows; the rest holds temporary arrays.
ROWS_SHARE = 0.8
# Vectors with an entry for each column: w frozen and current, in the engine, and sums of both classes.
VECTORS = 8
# What is done for each block that is read, with little and with more effort: the sweeps over the rows that moved, after
# each sweep over the rows in memory, at most; and the part of the rows in memory that is kept. The smaller rest is a
# block: more blocks make a pass.
#
# With little effort a pass is cheap; problems with a large C need more. Passes to 1e-4 with at most 5, 100 and 300
# sweeps over the rows that moved: adult at C = 100 (hinge) more than 25, 8, 5; web more than 25, 10, 8. With 0.8 of the
# rows in memory kept adult takes 8 in place of 11 passes (at most 100 sweeps), each of which takes 2.5 times as long.
# Text of 100,000 x 30,000 at C = 1 (hinge, 5 % of the rows in memory) takes 8 passes and 56 steps for each row with
# 1 sweep and 0.5 of the rows, 7 passes and 306 steps with 5 sweeps, and 0.8 of the rows after four passes.
EFFORTS = ((5, 0.5), (300, 0.8))


def rows_in_memory(memory: float, partitions: ArrayPartitions) -> int:
    """Return the number of rows that are in memory at a time, kept ones and a block, with so many bytes.

    3.5 copies of a row are in memory at the same time: kept rows and the block, each a half; both together, with
    indices of the engine; the rows that are kept next, another half; and what the allocator does not return. Peak
    memory of text of 5,000,000 x 1,000,000 with 512 MB: 830 MB with 3 copies. Number, label, weight, square, cap, dual
    variable, scores and orders of a row take 100 bytes.

    Raises
    ------
    ValueError
        If vectors with an entry for each column take the memory.
    """
    vectors, columns = VECTORS * 8.0 * partitions.shape[1], partitions.shape[1]
    available = ROWS_SHARE * memory - vectors
    if available <= 0.0:
        raise ValueError(
            f"memory is too small for {columns} columns, of which the fit keeps {VECTORS} vectors: give more than "
            f"{vectors / ROWS_SHARE / 1e6:.2g} MB."
        )
    return max(int(available / (3.5 * partitions.row_bytes + 100.0)), 2)


class LoopsRun:
    """The iteration of one binary problem.

    Parameters
    ----------
    fit : PassFit
        With `ArrayPartitions`.
    duals : ndarray of shape (3, n)
        Zeros: memory for alpha_i y_i of all rows, at present, when the pass began, and with the best lower bound.

    Attributes
    ----------
    capacity : int
        Rows that are in memory at a time.
    kept : Rows or None
        Those that stay in memory for the next block.
    u : ndarray of shape (size,)
        w, and the weight of the constant coordinate `rho` of the engine.
    balance : float
        sum alpha_i y_i.
    level : int
        The number of the present effort.
    idle : int
        Passes since the last progress.
    """

    def __init__(self, fit: PassFit, duals: np.ndarray) -> None:
        self.fit, self.problem, self.coordinates = fit, fit.problem, fit.coordinates
        self.partitions: Any = fit.whole.partitions
        self.rng = np.random.default_rng([fit.whole.seed, fit.k])
        self.capacity = rows_in_memory(fit.whole.memory, self.partitions)
        self.current, self.at_start, self.at_best = duals
        self.kept: Rows | None = None
        self.rho, self.u, self.balance = self.problem.rho, np.zeros(self.coordinates.size), 0.0
        self.level = self.idle = 0

    @property
    def most_kept(self) -> int:
        """The number of rows that are kept, at most."""
        return max(int(EFFORTS[self.level][1] * self.capacity), 1)

    def _choose_effort(self, last_gap: float) -> None:
        """Raise the effort if too many passes were left at the rate at which this pass reduced the gap."""
        gap, tol = self.fit.best.gap, self.fit.stopping.tol
        if gap <= tol or last_gap == np.inf:  # the first pass has no gap
            return
        rate = np.log(last_gap / gap)
        # with fewer than four time is spent where few passes are enough; with more, a large C takes more passes
        if np.log(gap / tol) > 4.0 * rate:
            self.level = 1

    @property
    def z(self) -> np.ndarray:
        """The present point, in the coordinates of the problem."""
        found = self.u.copy()
        if self.problem.free:
            found[-1] *= self.rho
        return found

    def advance(self) -> bool:
        """Make a pass, and update the bounds as of its beginning (`_prove`); return False if it was stopped."""
        z, balance, sums, gap = self.z, self.balance, None, self.fit.best.gap
        self.at_start[:] = self.current
        for block in self.partitions.mixed_blocks(
            max(self.capacity - self.most_kept, 1), self.rng, self.fit.check
        ):
            part = self._score(block, z)
            sums = part if sums is None else sums.merge(part)
            self._descend(block)
            release_pages(self.current)
            if self.fit.check():
                return False
        if sums is None or sums.data.rows < self.partitions.shape[0]:
            return False
        self.fit.check_rows(sums)
        self._finish()
        self._prove(sums, z)
        self._choose_effort(gap)
        # w and sum alpha_i y_i without the rounding errors of all steps before this pass
        assert sums.dual is not None
        v, sum_now = sums.dual.v.sum(axis=0), float(sums.dual.total[1] - sums.dual.total[0])
        v = np.append(v, self.problem.rho * sum_now) if self.problem.rho else v
        self.u[: v.size] += v - z[: v.size]
        self.balance += sum_now - balance
        return True

    def _score(self, block: Rows, z: np.ndarray) -> Sums:
        """Return the sums of a block, for z and for the dual variables at the beginning of the pass."""
        scored, y = Block(self.coordinates, block), signs_of(block, self.fit.positive)
        dual = scored.dual_sums(y, np.abs(self.at_start[block.numbers]))
        return scored.bound_sums(y, z, scored.margins(y, z))._replace(dual=dual)

    def _descend(self, block: Rows) -> None:
        """Sweep a block and the kept rows; keep those of the smallest `_LoadedRows.distances`."""
        rows = block
        if self.kept is not None:
            fresh = np.isin(block.numbers, self.kept.numbers, assume_unique=True, invert=True)
            rows = self.kept.merge(block.some(np.flatnonzero(fresh)))
        loaded = _LoadedRows(self, rows)
        for _ in range(3):
            loaded.sweep()
        self.kept = rows
        if rows.size > self.most_kept:
            places = np.argpartition(loaded.distances(), self.most_kept - 1)[: self.most_kept]
            self.kept = rows.some(np.sort(places))
        loaded.store()
        self._move_centre()

    def _move_centre(self) -> None:
        """Move the centre of the proximal term of a free intercept: a step of the method of multipliers.

        The intercept is b = rho u_b, its proximal term 1/2 (u_b - c)^2, and u_b = c + rho sum alpha_i y_i at the
        optimum over w and b: the new centre is this u_b.
        """
        if self.problem.free:
            self.u[-1] += self.rho * self.balance

    def _finish(self) -> None:
        """Sweep the kept rows until the gap on them is a tenth of its first value, at most 50 times."""
        if self.kept is None:
            return
        loaded, first = _LoadedRows(self, self.kept), np.inf
        for k in range(50):
            gap = loaded.sweep()
            first = gap if k == 0 else first
            loaded.store()
            self._move_centre()
            loaded.h.space.vector.w[:] = self.u
            if gap <= 0.1 * first or self.fit.check():
                return

    def _prove(self, sums: Sums, z: np.ndarray) -> None:
        """Update the bounds by those of the point z and the dual variables at the beginning of the pass."""
        best = self.fit.best
        before = best.lower, best.upper
        assert sums.dual is not None
        primal, objective = Primal(*self.coordinates.point(z)), self.coordinates.bound(sums, z).bound
        found, factors = bound_of_dual(self.problem, sums.dual, scaled=True)
        proof = partial(_proof, self.at_start, factors)
        best.keep(primal, objective, proof, found.bound)
        if best.alpha is proof:
            self.at_start, self.at_best = self.at_best, self.at_start
        self.idle = self.idle + 1 if before == (best.lower, best.upper) else 0


def _proof(signed: np.ndarray, factors: np.ndarray) -> Proof:
    """Return the dual variables of rows alpha_i y_i, multiplied by the factors of both classes."""
    support = np.flatnonzero(signed)
    signed = np.asarray(signed[support])
    dual = np.abs(signed) * factors[(signed > 0.0).astype(int)]
    return support[dual > 0.0], dual[dual > 0.0], None


class _LoadedRows:
    """Rows in the engine's storage, with the dual variables and the w of a run.

    Attributes
    ----------
    y : ndarray of shape (k,)
        Labels -1.0 and 1.0.
    h : engine.state.Weight
        With w, the dual variables and their caps.
    scores : ndarray of shape (k,)
        y_i (w.x_i + b) at the last visit of each row.
    moved : ndarray of shape (k,)
        Memory for the places of the rows that a sweep moves.
    rows_per_call : int
        Rows of a sweep between two calls of `interrupted`.
    """

    def __init__(self, run: LoopsRun, rows: Rows) -> None:
        patterns, weights = Patterns(rows.X), np.where(rows.codes >= 0, rows.weights, 0.0)
        if run.problem.free and not run.rho:
            square = 0.1 * float(patterns.square.mean())  # as in `fit.runs`
            run.rho = square**0.5 if square > 0.0 else 1.0
        self.run, self.rows, self.side_by_side = run, rows, patterns.side_by_side
        self.rule, self.y = Descend(1.0), signs_of(rows, run.fit.positive)
        self.h = patterns.engine_state(run.problem, self.y, weights, 1.0, run.rho)
        self.h.alpha[:] = np.abs(run.current[rows.numbers])
        self.h.space.vector.w[:] = run.u
        self.scores, self.moved = np.empty(rows.size), np.empty(rows.size, np.uint32)
        self.rows_per_call = max(int(ENTRIES_PER_CALL * rows.size / max(patterns.entries, 1)), 1)

    def sweep(self) -> float:
        """Sweep all rows in random order, then the rows that moved, until the gap on these is a tenth of that on all.

        Return the gap on all rows, by their scores.

        A row moves where its dual variable changes.
        """
        order = shuffled(self.rows.size, self.run.rng, self.side_by_side)
        moved, gap = self._present(order)
        rest = gap
        for _ in range(EFFORTS[self.run.level][0]):
            if not moved.size or rest <= 0.1 * gap:
                break
            moved, rest = self._present(moved)
        return gap

    def _present(self, order: np.ndarray) -> tuple[np.ndarray, float]:
        """Sweep some rows, given by their places; return the places of the rows that moved, and the gap on these rows.

        Once the fit is stopped, the remaining rows are left out.
        """
        moved, gap = [order[:0]], 0.0
        for first in range(0, order.size, self.rows_per_call):
            if self.run.fit.check():
                break
            part = order[first : first + self.rows_per_call]
            steps = repeat(self.rule, self.h, part, self.scores, self.moved, 1)[0]
            gap += objective_gap(self.h, part, self.scores, 1.0)
            moved.append(self.moved[:steps].copy())
            self.run.fit.run.steps += steps
        return np.concatenate(moved), gap

    def distances(self) -> np.ndarray:
        """Return how far each dual variable is from changing: shape (n,).

        A dual variable at its bound leaves it once the score has changed by this number. For others it is minus the
        gradient's absolute value: of these, the ones that are farthest from their optimum come first.
        """
        h = self.h
        score_rows(h, np.arange(self.rows.size, dtype=np.uint32), self.scores)
        beyond, alpha = self.scores - 1.0, h.alpha
        inside = np.where(alpha <= 0.0, beyond, np.where(alpha >= h.cap, -beyond, 0.0))
        # rows without a weight keep a dual variable of 0
        return np.where(h.cap > 0.0, np.where(inside > 0.0, inside, -np.abs(beyond)), np.inf)

    def store(self) -> None:
        """Pass w and the dual variables on to the run."""
        run, numbers, signed = self.run, self.rows.numbers, self.h.alpha * self.y
        run.balance += float((signed - run.current[numbers]).sum())
        run.current[numbers] = signed
        run.u[:] = self.h.space.vector.w


def loops_passes(fit: PassFit) -> Iterator[None]:
    """Make passes of dual cached loops until no bound gets better."""
    whole = fit.whole
    duals = fit.opened.enter_context(dual_arrays(whole.partitions.shape[0], whole.memory, whole.folder))
    run = LoopsRun(fit, duals)
    while run.idle < MAX_IDLE:
        if not run.advance():
            if not fit.history:  # w of the blocks before the fit was stopped
                fit.best.primal = Primal(*fit.coordinates.point(run.z))
            return
        yield


@contextmanager
def dual_arrays(n: int, memory: float, folder: Any = None) -> Iterator[np.ndarray]:
    """Yield a zero array of shape (3, n): in memory, or in a temporary file, which is deleted afterwards.

    Parameters
    ----------
    n : int
        Rows.
    memory : float
        Bytes that the fit may use; the file is used where the array takes more than a tenth.
    folder : str or path-like, default=None
        The folder of the file, which is created; None for the folder of temporary files of the system.

    Raises
    ------
    OSError
        If the disk is full: the file is written as a whole.
    """
    if 24.0 * n <= 0.1 * memory:
        yield np.zeros((3, n))
        return
    if folder is not None:
        Path(folder).mkdir(parents=True, exist_ok=True)
    with TemporaryFile(dir=folder) as file:
        for first in range(0, 24 * n, 1 << 23):  # some bytes at a time
            file.write(bytes(min(1 << 23, 24 * n - first)))
        file.flush()
        yield np.asarray(np.memmap(file, np.float64, "r+", shape=(3, n)))
