"""Run scikit-learn's tests of LinearSVC, SVC and SGDClassifier on the classes of maxmargin.sklearn.

Usage: python -m interop.scikit_learn_tests

The test files of the installed scikit-learn import the classes of maxmargin.sklearn. The outcomes are compared with
`differences.toml`. The run fails if a test fails that is not on the list, if a test on the list passes, or if less
than nine tenths pass of those that are not about the inside of scikit-learn's solvers.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import sklearn

from maxmargin.numerics.files import written_whole

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "reference" / "scikit_learn.md"
FILES = (
    "svm/tests/test_svm.py",
    "svm/tests/test_sparse.py",
    "linear_model/tests/test_sgd.py",
)
MAX_SECONDS = 600  # time limit of all tests
LEAST = 0.9  # share of the tests that are not about the inside of scikit-learn's solvers


@dataclass
class Difference:
    """Difference from scikit-learn: tests that fail for one reason.

    Attributes
    ----------
    reason : str
    tests : list of str
        ``module::test``, ``module::test[parameters]``, or a pattern with ``*``.
    says : str
        Regular expression that the message of each failure matches.
    inside : bool
        Whether the tests are about the inside of scikit-learn's solvers, or about other losses.
    met : list of str
        Tests that failed with this message.
    """

    reason: str
    tests: list[str]
    says: str = ""
    inside: bool = False
    met: list[str] = field(default_factory=list)

    def names(self, test: str) -> bool:
        """Return whether this test is on the list."""
        return any(self.matches(test, entry) for entry in self.tests)

    @staticmethod
    def matches(test: str, entry: str) -> bool:
        """Return whether an entry names this test, or matches it."""
        return entry in (test, test.partition("[")[0]) or fnmatchcase(test, entry.replace("[", "[[]"))


def outcomes() -> dict[str, dict[str, Any]]:
    """Run the tests, and return the outcome of every test that uses a class of maxmargin."""
    spec = find_spec("sklearn")
    assert spec is not None
    assert spec.origin is not None
    root = Path(spec.origin).parent
    missing = [name for name in FILES if not (root / name).is_file()]
    if missing:
        raise SystemExit(
            f"this scikit-learn was installed without its tests ({missing[0]}): install it from a wheel."
        )
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "outcomes.json"
        command = [sys.executable, "-m", "pytest", "-p", "interop.substitutes", f"--outcomes={found}"]
        command += ["-p", "no:cacheprovider", "-c", str(HERE / "pytest.ini"), f"--rootdir={root}"]
        command += [f"--confcutdir={root}", "-q", "--tb=no", "--no-summary", "--no-header"]
        command += [str(root / name) for name in FILES]
        done = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True, timeout=MAX_SECONDS)
        if not found.exists():
            raise SystemExit(f"pytest did not finish:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        every = json.loads(found.read_text())
    return {name: one for name, one in every.items() if one["ours"] or one["outcome"] == "failed"}


def differences() -> list[Difference]:
    """Return the list of differences; raise an error if it is for another version of scikit-learn."""
    listed = tomllib.loads((HERE / "differences.toml").read_text())
    version = ".".join(sklearn.__version__.split(".")[:2])
    if version != listed["scikit-learn"]:
        raise SystemExit(
            f"differences.toml lists tests of scikit-learn {listed['scikit-learn']}; the installed version is "
            f"{sklearn.__version__}: install the listed version, or update the list."
        )
    return [Difference(**one) for one in listed["difference"]]


def compared(found: dict[str, dict[str, Any]], expected: list[Difference]) -> list[str]:
    """Return one line for every unexpected outcome; add the expected failures to the differences."""
    wrong = []
    for test, one in sorted(found.items()):
        listed = [difference for difference in expected if difference.names(test)]
        if one["outcome"] != "failed":
            if listed and one["outcome"] == "passed":
                wrong.append(f"{test} passes, and is on the list: {listed[0].reason}")
            continue
        said = " ".join(one["said"].split())
        suited = [difference for difference in listed if re.search(difference.says, said)]
        if len(suited) == 1:
            suited[0].met.append(test)
        elif suited:
            wrong.append(f"{test} is on the list twice")
        else:
            known = "for another reason than the list says" if listed else "and is not on the list"
            wrong.append(f"{test} fails {known}: {said[:300]}")
    for difference in expected:
        for entry in difference.tests:
            if not any(difference.matches(test, entry) for test in difference.met):
                wrong.append(f"{entry} is on the list, and no such test failed: {difference.reason}")
    return wrong


def share_passed(found: dict[str, dict[str, Any]], expected: list[Difference]) -> float:
    """Return the share of passed tests among those that are not about the inside of scikit-learn's solvers."""
    run = sum(one["outcome"] != "skipped" for one in found.values())
    passed = sum(one["outcome"] == "passed" for one in found.values())
    return passed / max(1, run - sum(len(one.met) for one in expected if one.inside))


def page(found: dict[str, dict[str, Any]], expected: list[Difference]) -> str:
    """Return the tables of counts and reasons."""
    lines = [
        f"Of scikit-learn {sklearn.__version__}, by `make test-sklearn`:",
        "",
        "| file | tests that use classes of maxmargin | passed | differ | skipped |",
        "|---|---:|---:|---:|---:|",
    ]
    total = Counter()
    for file in FILES:
        of = [one["outcome"] for test, one in found.items() if test.startswith(f"{Path(file).stem}::")]
        count = Counter(of)
        total.update(count)
        lines.append(f"| `{file}` | {len(of)} | {count['passed']} | {count['failed']} | {count['skipped']} |")
    whole = sum(total.values())
    lines.append(f"| all | {whole} | {total['passed']} | {total['failed']} | {total['skipped']} |")
    share = share_passed(found, expected)
    lines += ["", f"Of the tests that are not about the inside of scikit-learn's solvers, {share:.0%} pass."]
    lines += ["", "| tests | inside | reason |", "|---:|---|---|"]
    often = sorted(
        (one for one in expected if len(one.met) >= 4), key=lambda one: (one.inside, -len(one.met))
    )
    lines += [f"| {len(one.met)} | {'yes' if one.inside else 'no'} | {one.reason} |" for one in often]
    rest = sum(len(one.met) for one in expected if one not in often)
    lines.append(f"| {rest} | | others, of less than four tests each: `interop/differences.toml` |")
    return "\n".join(lines)


def write_part(name: str, text: str) -> None:
    """Replace what stands between two comments of the page."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    head, _, rest = PAGE.read_text().partition(begin)
    _, _, tail = rest.partition(end)
    with written_whole(PAGE) as file:
        file.write(f"{head}{begin}\n\n{text}\n\n{end}{tail}".encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--write", action="store_true", help="update docs/reference/scikit_learn.md")
    options = parser.parse_args()
    expected = differences()
    found = outcomes()
    wrong = compared(found, expected)
    count = Counter(one["outcome"] for one in found.values())
    print(
        f"{len(found)} tests use classes of maxmargin: {count['passed']} passed, {count['skipped']} skipped, ",
        end="",
    )
    print(f"{sum(len(one.met) for one in expected)} differ as expected, {len(wrong)} unexpected outcomes.")
    share = share_passed(found, expected)
    print(f"{share:.1%} pass of those that are not about the inside of scikit-learn's solvers.")
    for line in wrong:
        print(f"- {line}")
    if wrong or share < LEAST:
        raise SystemExit(1)
    if options.write:
        write_part("tests", page(found, expected))


if __name__ == "__main__":
    main()
