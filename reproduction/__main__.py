"""`python -m reproduction`: every published table beside ours; with --write also `reproduction/README.md`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import mpu_table1

PAGE = Path(__file__).parent / "README.md"


def main(arguments: list[str] | None = None) -> int:
    """0 if everything is reproduced, else 1."""
    parser = argparse.ArgumentParser(prog="python -m reproduction", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write reproduction/README.md")
    options = parser.parse_args(arguments)
    folder = mpu_table1.data_folder()
    if not folder.is_dir():
        parser.error(f"{folder} is not there: set MAXMARGIN_DATA to the folder of the data sets")
    found = list(mpu_table1.cells(folder))
    text = mpu_table1.table(found)
    print(text)
    if options.write:
        PAGE.write_text(_PAGE.format(table=text))
        print(f"written: {PAGE}")
    return 0 if all(cell.reproduced for cell in found) else 1


_PAGE = """\
# Published numbers, reproduced

Written by `python -m reproduction --write`; `tests/test_reproduction.py` holds the same numbers as tests.

## The margin Perceptron with unlearning, Table 1

C. Panagiotakopoulos, P. Tsampouka, "The margin perceptron with unlearning", ICML 2010. Hinge loss, C = 1,
no intercept; J is the primal objective `1/2 |w|^2 + sum max(0, 1 - y_i w.x_i)`. The paper gives one number
for each algorithm. Here every J is an upper bound of the optimum that stands beside a lower bound, both
recomputed from the data by `verify` with compensated sums.

{table}

Every algorithm runs at the paper's tolerance, 1e-4, here a certified gap; where that ends above the printed
value, it runs again at half the tolerance or less, and *tol* says at which. *gap* is (J - lower bound) /
lower bound; *rounds* are full looks at the data, *passes* presentations over rows, active sets included.
The optimal objectives, by an independent solver, are 11433.81 and 6604.89. Rows come in random order (seed
0), the paper's order is not known, so digits beyond the accuracy asked for are not expected to agree. The
table's rows for the cutting plane and Pegasos, and its data sets that are not at hand, are left out.
"""


if __name__ == "__main__":
    sys.exit(main())
