"""Six comparisons with scikit-learn at the same accuracy: the table of the README.

`python -m benchmarks.summary [--write]`. Times are those of one thread. A peer counts at the loosest tolerance with
which its true excess over the optimum is at most 1e-3; the judge of `measure.py` and `kernel.py` computes it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator

import numpy as np
from sklearn.linear_model import SGDClassifier
from threadpoolctl import threadpool_limits

from maxmargin import OnlineMarginClassifier

from . import kernel, scale
from .datasets import DATASETS, ROOT, kernel_sets, unequal
from .linear import PEER
from .measure import Problem, compare
from .norm import l1
from .results import Row, between, extent, table

TOL = 1e-3
LIMIT = 20.0  # seconds of a peer


def rows() -> Iterator[tuple[str, Row]]:
    """Yield the six comparisons."""
    text, adult, columns = DATASETS["pcmac"](), DATASETS["adult"](), unequal(20_000, 20)
    sparse = Problem(*text, 1.0, "squared_hinge", np.inf, 1)
    yield "text, 1,943 x 3,289, hinge", next(compare(Problem(*text), PEER, TOL, LIMIT))
    yield "the same text, sparse weights", next(compare(sparse, {'LinearSVC(penalty="l1")': l1}, TOL, LIMIT))
    yield "adult, 32,561 x 123, hinge", next(compare(Problem(*adult), PEER, TOL, LIMIT))
    yield "columns of unequal scale, 20,000 x 20, hinge", next(compare(Problem(*columns), PEER, TOL, LIMIT))
    yield "digits, 7,291 x 256, Gaussian kernel", next(kernel.compare(kernel_sets()["usps-ovo"]()))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200_000, 50))
    y = np.where(X @ rng.standard_normal(50) + 2.0 * rng.standard_normal(200_000) > 0.0, 1, -1)
    learners = {"ours": OnlineMarginClassifier, "theirs": SGDClassifier}
    turns = {
        side: [len(y) / scale.one_pass(make(), X, y, [-1, 1]) for _ in range(5)]
        for side, make in learners.items()
    }
    found = {side: float(np.median(seconds[1:])) for side, seconds in turns.items()}
    yield "one pass over 200,000 x 50", found | {"peer": "SGDClassifier", "reached": "yes"}


def main(arguments: list[str]) -> int:
    """Print the table, and write it into the README with `--write`."""
    lines = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers warn when they end early; the true excess measures the same
        for name, row in rows():
            ratio = extent([row["ours"] / row["theirs"]])
            near = row.get("reached", "yes") == "yes"
            theirs = f"{'' if near else 'more than '}{row['theirs']:.3g} s"
            bold = f"**{ratio}**" if row["ours"] < row["theirs"] else ratio
            lines.append([name, f"`{row['peer']}`", theirs, f"{row['ours']:.3g} s", bold])
            print(*lines[-1], sep="   ", flush=True)
    if "--write" in arguments:
        between(
            ROOT / "README.md", "summary", table(["problem", "peer", "its time", "maxmargin", "ratio"], lines)
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
