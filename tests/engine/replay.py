"""Run the engine on fixed data and print all results bit by bit: `python replay.py runs`.

Started by test_jit.py with NUMBA_DISABLE_JIT=1 and with bounds checks.
"""

from __future__ import annotations

import json
import sys
from functools import partial

import numpy as np
import scipy.sparse as sp

import maxmargin
import maxmargin.fit.exact
from maxmargin import MaxMarginClassifier, Problem
from maxmargin.algorithms import ALGORITHMS, Bias, Facts, Perceptron
from maxmargin.algorithms.online.dual_coordinate_descent import Descend
from maxmargin.algorithms.online.mpu import Unlearn
from maxmargin.algorithms.online.perceptron import LocalPerceptron
from maxmargin.data.rows import PackedRows, Patterns
from maxmargin.engine import sweep as sweeps
from maxmargin.engine.state import refresh
from maxmargin.engine.sweep import shuffled, strides
from maxmargin.estimators.online import Stream

# runs of code that other tests compile as well
FEW = ("perceptron, hard, csr", "dcd, dyadic, dense", "dcd, real, dense", "orders")
HARD = Problem("hinge", np.inf, intercept="none")
FREE = Problem("hinge", np.inf, intercept="free")
# rules that divide or take roots, with parameters of no simple ratio, to avoid ties
DIVIDING = {
    "alma": {"alpha": 0.37},
    "micra": {"beta": 1.3, "eta": 0.87, "epsilon": 0.4, "zeta": 0.3},
    "cramma": {"beta": 1.3, "eta": 0.211},
    "fixed-margin": {"beta": 0.123, "eta": 0.211},
    "romma": {},
    "aggressive-romma": {"delta": 0.17, "halving": False},
    "pumma": {"delta": 0.17, "halving": False},
}


STREAMING = {**DIVIDING, "perceptron": {"b": 0.37}, "local-perceptron": {"b": 0.37}}


def learn():
    """Return the rule of the Perceptron with threshold 50, independently of the name of its record."""
    return Perceptron(b=50.0 / 64.0).plan(Facts(HARD, 64.0, 0.1)).rule


def bits(a) -> str:
    return np.ascontiguousarray(a).tobytes().hex()


def run(rule, X, y, problem, unit=1.0, rho=0.0, passes=30, scale=None, holds=False):
    """Run full and packed sweeps; return steps and final values."""
    rng = np.random.default_rng(0)
    n = len(y)
    h = Patterns(X).engine_state(problem, y, np.ones(n), unit, rho, scale, holds)
    if hasattr(rule, "start"):
        sweeps.begin(rule, h, np.arange(n, dtype=np.uint32))
    scores, moved = np.empty(n), np.empty(n, np.uint32)
    line, seen, steps = np.arange(n, dtype=np.uint32), [], []
    room = PackedRows()
    for k in range(passes):
        order = (strides if k % 2 else shuffled)(n, rng)
        if k % 3 == 2:
            active, places = room.gather(h, order[: n // 2])
            made, _, _ = sweeps.repeat(rule, active, places, scores, moved, 1)
            steps.append(order[moved[:made]])
        else:
            made, _, _ = sweeps.repeat(rule, h, order, scores, moved, 1)
            steps.append(moved[:made].copy())
        seen.append(scores[: n // 2].copy())
    if scale is not None:
        refresh(h)
    sweeps.score_rows(h, line, scores)
    return {
        "w": bits(h.space.vector.w),
        "alpha": bits(h.alpha),
        "scores": bits(np.concatenate([*seen, scores])),
        "steps": np.concatenate(steps).tolist(),
        "values": [*h.space.vector.w.tolist(), *h.alpha.tolist(), *h.number.tolist()],
    }


def flow(rule, X, y):
    """A soft-margin stream in uneven batches: return the rows that made an update, and final values."""
    stream = Stream(rule, Problem("squared_hinge", 0.7, intercept="free"), X.shape[1], 0.5, 0.0)
    steps = []
    for turn in range(3):
        for k in range(len(y)):
            before = stream.updates
            stream.present(Patterns(X[k : k + 1]), y[k : k + 1], turn == 0)
            steps += [k] * (stream.updates - before)
    w, b = stream.weight()
    return {"steps": steps, "values": [*w.tolist(), b, *stream.bounds()[:1], stream.mistakes]}


def data():
    rng = np.random.default_rng(1)
    y = np.where(np.arange(40) % 3 == 0, 1.0, -1.0)
    whole = rng.integers(-3, 4, (40, 7)).astype(float)
    binary = (rng.random((40, 7)) < 0.5).astype(float)
    dyadic = np.zeros((10, 9))  # four entries of +-1 a row: |x|^2 = 4, and steps are short dyadic fractions
    for row in dyadic:
        row[rng.choice(9, 4, replace=False)] = rng.choice([-1.0, 1.0], 4)
    real = rng.normal(size=(40, 7))
    return y, whole, binary, dyadic, real


def everything(names: tuple[str, ...] = ()) -> dict:
    """Return the results of the named runs, or of all."""
    y, whole, binary, dyadic, real = data()
    soft = Problem("hinge", 0.5, intercept="none")
    squared = Problem("squared_hinge", 0.5, intercept="augmented")
    free = Problem("hinge", 0.5, intercept="free")
    unlearn, descend = Unlearn(512.0, 128.0), Descend(1.0)
    tasks: dict[str, partial] = {}
    for name, store in (("dense", np.asarray), ("csr", sp.csr_matrix)):
        tasks[f"perceptron, hard, {name}"] = partial(run, learn(), store(whole), y, HARD)
        tasks[f"perceptron, squared, {name}"] = partial(run, learn(), store(whole), y, squared, rho=1.0)
        local = LocalPerceptron(b=3.5).plan(Facts(HARD, 64.0, 0.1)).rule
        tasks[f"local-perceptron, hard, {name}"] = partial(run, local, store(whole), y, HARD)
        tasks[f"mpu, hard, {name}"] = partial(run, unlearn, store(whole), y, HARD, 512.0)
        tasks[f"mpu, hinge, {name}"] = partial(run, unlearn, store(whole), y, soft, 512.0)
        tasks[f"mpu, free, {name}"] = partial(run, unlearn, store(whole), y, free, 512.0, rho=1.0)
        tasks[f"dcd, dyadic, {name}"] = partial(run, descend, store(dyadic), y[:10], soft, passes=2)
        tasks[f"dcd, real, {name}"] = partial(run, descend, store(real), y, soft, passes=3)
    # rows of either storage in batches, those of the other one on a stream
    stores = (np.asarray, sp.csr_matrix)
    for k, (name, options) in enumerate(STREAMING.items()):
        tasks[f"{name}, dividing on a stream"] = partial(
            flow, ALGORITHMS[name](**options), stores[k % 2](whole), y
        )
    for k, (name, options) in enumerate(DIVIDING.items()):
        kind = ALGORITHMS[name]
        own = kind.bias is Bias.OWN
        rule = kind(**options).plan(Facts(HARD, 64.0, 0.1)).rule
        run_options = {"passes": 9, "scale": kind.scale, "holds": own}
        tasks[f"{name}, dividing"] = partial(
            run, rule, stores[1 - k % 2](whole), y, FREE if own else HARD, **run_options
        )
    tasks["perceptron, hard, binary"] = partial(run, learn(), sp.csr_matrix(binary), y, HARD)
    tasks["mpu, hinge, binary"] = partial(run, unlearn, sp.csr_matrix(binary), y, soft, 512.0)
    rng = np.random.default_rng(2)
    steps = np.concatenate([shuffled(100, rng), strides(100, rng)]).tolist()
    tasks["orders"] = partial(dict, steps=steps)
    return {name: task() for name, task in tasks.items() if not names or name in names}


def fits() -> dict:
    """Fit with every schedule without the exact step."""
    maxmargin.fit.exact.MAX_ROWS_TO_OPTIMUM = maxmargin.fit.exact.MAX_ROWS_TO_TOL = 0
    rng = np.random.default_rng(3)
    n = int(sys.argv[2])
    y = rng.integers(0, 2, n)
    X = np.rint(rng.normal(size=(n, 6)) + 0.4 * (2 * y - 1)[:, None]) * (rng.random((n, 6)) < 0.7)
    out = {}
    for name, rule in ALGORITHMS.items():
        if name in ("alma", "cramma", "micra", "fixed-margin", "romma", "aggressive-romma"):
            continue  # they access arrays only in methods that other rules use as well
        if rule.schedules == ("points",):
            continue  # no compiled code
        for schedule in rule.schedules:
            for store in (np.asarray, sp.csr_matrix):
                loss = "squared_hinge" if rule().refuses(Problem("hinge", 1.0)) else "hinge"
                model = MaxMarginClassifier(
                    0.1, loss=loss, algorithm=rule(schedule=schedule), max_iter=8, random_state=0
                ).fit(store(X), y)
                out[f"{name}, {schedule}, {store.__name__}"] = model.certificate_.gap
    for name, p in (("pumma", 3.0), ("alma", 7.0), ("ima", 1.0), ("ima", 1.5), ("ima", np.inf)):
        for store in (np.asarray, sp.csr_matrix):
            model = MaxMarginClassifier(0.1, p=p, algorithm=name, max_iter=4, random_state=0).fit(store(X), y)
            out[f"{name}, p = {p:g}, {store.__name__}"] = model.certificate_.gap
    return out


if __name__ == "__main__":
    action, *names = sys.argv[1:]
    print(json.dumps(fits() if action == "fits" else everything(tuple(names))))
