"""Streams: rows per second of a pass in batches of 1000, and accuracy after it. `python -m benchmarks.streaming`.

Vowpal Wabbit and River take part where they can be imported (`pip install "maxmargin[bench]"`).
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import Perceptron, SGDClassifier
from threadpoolctl import threadpool_limits

from maxmargin import OnlineMarginClassifier

from .datasets import _csr, _idx, _path, mnist_dense, reuters
from .page import deliver, page, page_parser, summary, system, table

PAGE = Path(__file__).parents[1] / "docs" / "measurements" / "streaming.md"
BATCH = 1000
CLASSES = [-1.0, 1.0]
DIGIT_ORDERS = 3  # number of orders for the ten classes, which take ten times as long
ROW_BY_ROW = 3000  # rows for learners that take rows one by one

OURS: dict[str, Callable[[int], Any]] = {
    "OnlineMarginClassifier": lambda seed: OnlineMarginClassifier(random_state=seed),
    'OnlineMarginClassifier("pumma", C=1)': lambda seed: OnlineMarginClassifier("pumma", C=1.0),
}
SCIKIT: dict[str, Callable[[int], Any]] = {
    "SGDClassifier": lambda seed: SGDClassifier(random_state=seed),
    "SGDClassifier(average=True)": lambda seed: SGDClassifier(average=True, random_state=seed),
    "SGDClassifier, passive-aggressive": lambda seed: SGDClassifier(
        penalty=None, learning_rate="pa1", eta0=1.0, random_state=seed
    ),
    "Perceptron (scikit-learn)": lambda seed: Perceptron(random_state=seed),
}


@dataclass
class Speed:
    """Rows per second of one learner on one stream, turn by turn."""

    learner: str
    rows: list[float] = field(default_factory=list)

    def ahead(self, first: Speed) -> float:
        """Return the median ratio of the rows per second of another learner to this learner, turn by turn."""
        return float(np.median(np.array(first.rows) / np.array(self.rows)))


def _batches(model: Any, X: Any, y: np.ndarray) -> float:
    """Return the rows per second in batches. The first call, which sets the model up, is not counted."""
    model.partial_fit(X[:BATCH], y[:BATCH], classes=CLASSES)
    parts = [(X[k : k + BATCH], y[k : k + BATCH]) for k in range(BATCH, len(y), BATCH)]
    begin = time.perf_counter()
    for rows, labels in parts:
        model.partial_fit(rows, labels)
    return (len(y) - BATCH) / (time.perf_counter() - begin)


def _dicts(X: Any) -> list[dict[int, float]]:
    rows = sp.csr_matrix(X)
    return [
        dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))
        for row in (rows[i] for i in range(rows.shape[0]))
    ]


def _vowpal(X: Any, y: np.ndarray, parsed: bool) -> float:
    """Return the rows per second of Vowpal Wabbit with hinge loss. Text lines or parsed examples are made before."""
    from vowpalwabbit import Workspace

    lines = [
        f"{label:g} | " + " ".join(f"{j}:{v:.9g}" for j, v in row.items())
        for row, label in zip(_dicts(X), y.tolist(), strict=True)
    ]
    learner = Workspace("--loss_function hinge --quiet -b 18")
    examples = [learner.parse(line) for line in lines] if parsed else lines
    begin = time.perf_counter()
    for example in examples:
        learner.learn(example)
    seconds = time.perf_counter() - begin
    if parsed:
        for example in examples:
            learner.finish_example(example)
    learner.finish()
    return len(y) / seconds


def _river(X: Any, y: np.ndarray, name: str) -> float:
    """Return the rows per second of River, row by row, on dicts that are made before."""
    from river import linear_model

    learner = getattr(linear_model, name)()
    rows, labels = _dicts(X), (y > 0).tolist()
    begin = time.perf_counter()
    for row, label in zip(rows, labels, strict=True):
        learner.learn_one(row, label)
    return len(y) / (time.perf_counter() - begin)


def _peers() -> tuple[dict[str, Callable[[Any, np.ndarray], float]], list[str]]:
    """Return the installed row-by-row learners, and the names of packages that are not installed."""
    found: dict[str, Callable[[Any, np.ndarray], float]] = {}
    missing = []
    try:
        import vowpalwabbit  # noqa: F401

        found["Vowpal Wabbit, text lines"] = lambda X, y: _vowpal(X, y, parsed=False)
        found["Vowpal Wabbit, examples parsed before"] = lambda X, y: _vowpal(X, y, parsed=True)
    except ImportError:
        missing.append("vowpalwabbit")
    try:
        import river  # noqa: F401

        for name in ("PAClassifier", "Perceptron", "LogisticRegression"):
            found[f"River {name}"] = lambda X, y, name=name: _river(X, y, name)
    except ImportError:
        missing.append("river")
    return found, missing


def streams() -> dict[str, tuple[Any, np.ndarray]]:
    """Return a CSR stream (the rows of Reuters four times, in random order) and a dense stream with 50 columns."""
    data, rng = reuters(), np.random.default_rng(0)
    order = np.concatenate([rng.permutation(len(data.y)) for _ in range(4)])
    dense = rng.standard_normal((50_000, 50))
    target = dense @ rng.standard_normal(50) + 2.0 * rng.standard_normal(50_000)
    return {
        "CSR like Reuters": (data.X[order], data.y[order]),
        "dense, 50 columns": (dense, np.where(target > 0.0, 1.0, -1.0)),
    }


def speeds(repeats: int) -> tuple[dict[str, list[Speed]], list[str]]:
    """Measure all learners in turn, in random order."""
    peers, missing = _peers()
    found = {}
    for name, (X, y) in streams().items():
        runners: dict[str, Callable[[int], float]] = {
            learner: lambda seed, make=make, X=X, y=y: _batches(make(seed), X, y)
            for learner, make in {**OURS, **SCIKIT}.items()
        }
        runners |= {
            learner: lambda seed, run=run, X=X, y=y: run(X[:ROW_BY_ROW], y[:ROW_BY_ROW])
            for learner, run in peers.items()
        }
        rows = {learner: Speed(learner) for learner in runners}
        for learner in OURS:
            runners[learner](0)  # loads or compiles the machine code
        for seed in range(repeats):
            for k in np.random.default_rng(seed).permutation(len(runners)):
                learner = list(runners)[k]
                rows[learner].rows.append(runners[learner](seed))
        found[name] = list(rows.values())
    return found, missing


def _test_file(train: str, test: str, width: int | None = None) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    X, y = load_svmlight_file(str(_path(train)))
    T, z = load_svmlight_file(str(_path(test)))
    d = max(X.shape[1], T.shape[1])
    X.resize(X.shape[0], d)
    T.resize(T.shape[0], d)
    return _csr(X), np.where(y == 1, 1.0, -1.0), _csr(T), np.where(z == 1, 1.0, -1.0)


def _mnist() -> tuple[Any, np.ndarray, Any, np.ndarray]:
    X, y = mnist_dense()
    T = _idx("mnist/t10k-images-idx3-ubyte.gz").reshape(10000, 784) / 255.0
    z = np.where(_idx("mnist/t10k-labels-idx1-ubyte.gz") == 0, 1.0, -1.0)
    return _csr(sp.csr_matrix(X)), y, _csr(sp.csr_matrix(T)), z


SETS: dict[str, Callable[[], tuple[Any, np.ndarray, Any, np.ndarray]]] = {
    "adult (a9a, a9a.t)": lambda: _test_file("adult/a9a.gz", "adult/a9a.t.gz"),
    "web (w7a, w7a.t)": lambda: _test_file("web/w7a.gz", "web/w7a.t.gz"),
    "reuters (money-fx)": lambda: _test_file(
        "reuters-moneyfx/money-fx.trn.gz", "reuters-moneyfx/money-fx.tst.gz"
    ),
    "mnist (0 against the rest)": _mnist,
}


def accuracies(repeats: int) -> dict[str, dict[str, np.ndarray]]:
    """Return the test accuracy after one pass in random order, seed by seed."""
    found: dict[str, dict[str, np.ndarray]] = {}
    for name, load in SETS.items():
        X, y, T, z = load()
        found[name] = {learner: np.empty(repeats) for learner in {**OURS, **SCIKIT}}
        for seed in range(repeats):
            order = np.random.default_rng(1000 + seed).permutation(len(y))
            rows, labels = X[order], y[order]
            for learner, make in {**OURS, **SCIKIT}.items():
                model = make(seed)
                for k in range(0, len(y), BATCH):
                    model.partial_fit(rows[k : k + BATCH], labels[k : k + BATCH], classes=CLASSES)
                found[name][learner][seed] = model.score(T, z)
    return found


def ten_classes(repeats: int) -> dict[str, np.ndarray]:
    """Return the test accuracy on ten digits after one pass in random order, one against the rest, seed by seed."""
    X = _csr(sp.csr_matrix(_idx("mnist/train-images-idx3-ubyte.gz").reshape(60000, 784) / 255.0))
    T = _csr(sp.csr_matrix(_idx("mnist/t10k-images-idx3-ubyte.gz").reshape(10000, 784) / 255.0))
    y, z = (_idx(f"mnist/{part}-labels-idx1-ubyte.gz").astype(int) for part in ("train", "t10k"))
    learners = {**OURS, **SCIKIT}
    found = {learner: np.empty(repeats) for learner in learners}
    for seed in range(repeats):
        order = np.random.default_rng(1000 + seed).permutation(len(y))
        rows, labels = X[order], y[order]
        for learner, make in learners.items():
            model = make(seed)
            for k in range(0, len(y), BATCH):
                model.partial_fit(rows[k : k + BATCH], labels[k : k + BATCH], classes=np.arange(10))
            found[learner][seed] = model.score(T, z)
    return found


def _digits_table(found: dict[str, np.ndarray]) -> str:
    rows = [
        [learner, f"{np.median(a):.4f}", f"{a.min():.4f} to {a.max():.4f}"] for learner, a in found.items()
    ]
    best = max(SCIKIT, key=lambda learner: float(np.median(found[learner])))
    ahead = np.median(next(iter(found.values()))) - np.median(found[best])
    verdict = f"{'ahead' if ahead > 0 else '**behind**'} by {abs(ahead):.4f}"
    rows.append([f"difference of the first line from the best of scikit-learn, {best}", verdict, ""])
    return table(["learner", "median", "range"], rows)


def _speed_table(found: dict[str, list[Speed]]) -> str:
    head = ["learner"]
    for name in found:
        head += [f"{name}: rows a second", "ratio"]
    lines = {}
    for rows in found.values():
        for speed in rows:
            ratio = "" if speed is rows[0] else f"{speed.ahead(rows[0]):.3g}"
            lines.setdefault(speed.learner, []).extend([f"{np.median(speed.rows):,.0f}", ratio])
    return table(head, [[name, *cells] for name, cells in lines.items()])


def _accuracy_table(found: dict[str, dict[str, np.ndarray]]) -> str:
    learners = list(next(iter(found.values())))
    rows = [[learner, *(f"{np.median(found[name][learner]):.5f}" for name in found)] for learner in learners]
    ours = learners[0]
    verdict = []
    for name in found:
        best = max(np.median(found[name][learner]) for learner in SCIKIT)
        mine = np.median(found[name][ours])
        verdict.append("yes" if mine >= best else f"**no**, by {best - mine:.5f}")
    rows.append(["is the first line at least as accurate as the best of scikit-learn?", *verdict])
    return table(["learner", *found], rows)


def best(
    found: dict[str, list[Speed]], accurate: dict[str, dict[str, np.ndarray]], digits: dict[str, np.ndarray]
) -> str:
    """Return the summary table: rows per second and accuracy, with one line for the fastest of a row-by-row package."""
    groups: dict[tuple[str, ...], list[str]] = {(learner,): [learner] for learner in (*OURS, *SCIKIT)}
    for package in ("Vowpal Wabbit", "River"):
        names = [speed.learner for speed in next(iter(found.values())) if speed.learner.startswith(package)]
        if names:
            groups[f"{package}, the fastest of {len(names)}",] = names

    def cells(names: Sequence[str]) -> list[str]:
        line = []
        for speeds in found.values():
            fastest = max(
                (one for one in speeds if one.learner in names), key=lambda one: np.median(one.rows)
            )
            ratio = "" if fastest is speeds[0] else f" ({fastest.ahead(speeds[0]):.3g})"
            line.append(f"{np.median(fastest.rows):,.0f}{ratio}")
        medians = [one[names[0]] for one in (*accurate.values(), digits) if names[0] in one]
        return [
            *line,
            *(f"{np.median(one):.4f}" for one in medians),
            *[""] * (len(accurate) + 1 - len(medians)),
        ]

    head = ["learner", *(f"{name}: rows a second" for name in found)]
    return summary(
        [*head, *(f"accuracy, {name}" for name in accurate), "accuracy, ten digits"], groups, cells
    )


def document(speed_repeats: int, accuracy_repeats: int) -> str:
    """Measure, and return the page."""
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, missing = speeds(speed_repeats)
        accurate = accuracies(accuracy_repeats)
        digits = ten_classes(DIGIT_ORDERS)
    packages = system("maxmargin", "numpy", "scipy", "numba", "scikit-learn", "vowpalwabbit", "river")
    absent = f" Not installed: {', '.join(missing)}." if missing else ""
    return page_of(found, accurate, digits, (speed_repeats, accuracy_repeats), packages + absent)


def page_of(
    found: dict[str, list[Speed]],
    accurate: dict[str, dict[str, np.ndarray]],
    digits: dict[str, np.ndarray],
    repeats: tuple[int, int],
    packages: str,
) -> str:
    """Return the page; `repeats` are the turns of the speeds and the orders of the accuracies."""
    speed = _SPEED.format(batch=BATCH, some=ROW_BY_ROW, repeats=repeats[0])
    accuracy = _ACCURACY.format(repeats=repeats[1])
    order = f"All ten digits of mnist, one against the rest; {DIGIT_ORDERS} orders."
    sections = {
        "Rows a second": f"{speed}\n{_speed_table(found)}",
        "Accuracy after one pass": f"{accuracy}\n{_accuracy_table(accurate)}",
        "Accuracy on ten classes": f"{order}\n\n{_digits_table(digits)}",
        "Differences between streams and batches": _DIFFERENCES,
        "Versions": packages,
    }
    about = _ABOUT.format(batch=BATCH)
    return page(
        "Streams", about, best(found, accurate, digits), "python -m benchmarks.streaming --write", sections
    )


_ABOUT = """\
`OnlineMarginClassifier` is compared with online learners of scikit-learn, Vowpal Wabbit and River, each with default
settings, except for those in its name, on one pass over a stream in batches of {batch} rows. In brackets: rows a second
of the first line divided by rows a second of the learner; above 1, the first line is faster. Numbers and ratios are
medians over turns, so that a ratio is not the quotient of two numbers.
"""

_SPEED = """\
Vowpal Wabbit and River learn {some} rows one by one; the time to build their lines and dicts is not counted. All
learners are timed in {repeats} turns, in random order. A ratio is the median of the ratios within the turns.
"""

_ACCURACY = """\
The accuracy is measured on the test part, after one pass over the training part in random order; numbers are medians
over {repeats} orders. The default values of `b` (of the default algorithm, `local-perceptron`) and of
`intercept_scaling` were chosen from some forty pairs by the accuracy on these same test parts, with other orders. The
other learners have their own default values. The difference between maxmargin and the best other learner is a few test
rows. On reuters it is a tie: the sign of the difference depends on the orders.
"""

_DIFFERENCES = """\
* ROMMA, CRAMMA and MICRA start with their first non-zero row. In a batch this row is presented again at once, and
  CRAMMA and MICRA may update on it. A stream presents it only once. PUMMA starts with the first row of the stream and
  the first row of the other class. It ignores the rows between them.
* `mistakes_` counts the rows that were not on the right side of the w at the time of their visit. At w = 0 this is
  every row, including the rows that PUMMA ignores. The paper of PUMMA predicts the class not yet seen for these rows.
  On a stream that starts with one class, this prediction is right by construction.
* CRAMMA, MICRA and fixed margin need a rate `eta`. Their theorems derive it from a bound of the margin. In a batch a
  short run over all rows finds such a bound. No theorem covers a rate without a bound, so a stream without `eta` is
  refused. `CRAMMA(eta=0.1)` and `MICRA(eta=0.3)` are near the best rates on adult.
* Ctrl-C takes effect when all classes have visited the rows of the call. `maxmargin fit --online` then learns
  the rows in its buffer, writes the model and ends with exit code 3. It does the same after a line that it cannot read.
  If no row was learnt, it writes nothing.
"""


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; with --write into `docs/measurements/streaming.md`."""
    parser = page_parser("streaming", __doc__, PAGE)
    parser.add_argument("--repeats", type=int, default=9, help="turns of the race")
    parser.add_argument("--orders", type=int, default=15, help="orders for the accuracy")
    options = parser.parse_args(arguments)
    text = document(options.repeats, options.orders)
    deliver(text, PAGE if options.write else None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
