"""Run the tasks of the repository: `python tasks.py test`. The Makefile calls the same tasks.

Nothing is needed but Python >= 3.11: every task first makes the environment that it runs in, `.venv`. Arguments after
the name of a task are passed to its last command: `python tasks.py test -x`.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
# The extras of pyproject.toml that an environment has, by the name of the largest one.
EXTRAS = {
    "plot": ("plot",),
    "test": ("plot", "test"),
    "dev": ("plot", "test", "dev"),
    "bench": ("plot", "test", "dev", "bench"),
    "spark": ("plot", "test", "spark"),
    "docs": ("plot", "docs"),
}
# Two processes with two threads of linear algebra each take two to ten times as long on two cores, so that tests of
# threads run by themselves.
ONE_THREAD = "OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1"
PYTEST = "python -m pytest"
PARALLEL = f"{PYTEST} -n 2 --dist worksteal"
THREADS = "tests/numerics/test_threads.py"
# Tests that meet most of an installed package.
DIST_TESTS = "tests/project/test_package.py tests/io tests/estimators/test_scikit_learn.py tests/cli"
BUILD = "python -m build --outdir dist"
BENCHMARKS = ("summary", "linear", "kernel", "norm", "hardset", "scale")

# Name: one line of help, the extra it needs, its commands. `NAME=value` before a command sets an environment variable.
TASKS: dict[str, tuple[str, str, Sequence[str]]] = {
    "demo": ("fit and certify a real data set", "plot", ["python examples/demo.py"]),
    "test": (
        "the fast tests",
        "test",
        [
            f"NUMBA_DISABLE_JIT=1 {PARALLEL} -m 'interpreted and not slow' tests",
            f"{ONE_THREAD} {PARALLEL} -m 'not slow and not interpreted' --ignore {THREADS} tests",
            f"{PYTEST} -m 'not slow' {THREADS}",
        ],
    ),
    "test-slow": (
        "the slow tests, and more examples of others (about ten minutes)",
        "test",
        [f"MAXMARGIN_THOROUGH=1 {ONE_THREAD} {PARALLEL} -m 'slow or thorough or interpreted' tests"],
    ),
    "test-interpreted": (
        "engine and algorithms without compilation",
        "test",
        [f"NUMBA_DISABLE_JIT=1 {PYTEST} -m 'not slow' tests/engine/test_engine.py tests/algorithms"],
    ),
    "test-peers": (
        "tests beside packages that need a C++ compiler to install",
        "bench",
        [f"{PYTEST} tests/peers"],
    ),
    "test-spark": (
        "tests of Spark, which is 400 MB and needs Java",
        "spark",
        [f"{PYTEST} tests/estimators/test_spark.py"],
    ),
    "faults": (
        "five hundred kills of commands, full disks, and fits at the same time (ten minutes)",
        "test",
        [f"MAXMARGIN_KILLS=100 MAXMARGIN_THOROUGH=1 {ONE_THREAD} {PYTEST} tests/faults"],
    ),
    "test-sklearn": (
        "scikit-learn's own tests on our classes; rewrites its part of docs",
        "test",
        ["python -m interop.scikit_learn_tests --write"],
    ),
    "mutations": (
        "faults put into the code one by one: the fast tests must fail",
        "test",
        ["python tests/mutations/run.py"],
    ),
    "fuzz": (
        "mutants of files of every format, and random problems (ten minutes; more with --seconds)",
        "test",
        ["python tests/fuzz/fuzzing.py"],
    ),
    "lint": (
        "ruff, pyright, import-linter",
        "dev",
        ["ruff format --check .", "ruff check .", "pyright", "lint-imports"],
    ),
    "format": ("corrections that ruff can make", "dev", ["ruff format .", "ruff check --fix ."]),
    "bench": (
        "benchmarks beside other packages; rewrites the page of results (hours)",
        "bench",
        [f"python -m benchmarks.{name} --write" for name in BENCHMARKS],
    ),
    "bench-benchopt": (
        "the same problem with benchopt, on small data",
        "bench",
        [
            "benchopt run benchmarks/benchopt -n 5 -r 1 -d Simulated -d 'Breast cancer' -o '*[C=1.0]' --no-plot"
        ],
    ),
    "reproduce": (
        "published values beside ours; rewrites reproduction/README.md",
        "test",
        ["python -m reproduction --write"],
    ),
    "reproduce-all": (
        "the same with rows of 25 million updates and more (half an hour)",
        "test",
        ["python -m reproduction --all --write"],
    ),
    "baselines": (
        "redraw the pictures that tests compare with; look at each",
        "test",
        ["python -W error tests/support/baselines.py"],
    ),
    "docs": (
        "the documentation, in docs/_build/html",
        "docs",
        ["python -m sphinx -W --keep-going -b html docs docs/_build/html"],
    ),
    "dist": ("wheel and sdist, in dist/", "dev", [BUILD]),
    "test-dist": (
        "the wheel, installed by itself, against the tests of the unpacked sdist",
        "dev",
        [BUILD, f"python tools/test_dist.py {DIST_TESTS}"],
    ),
    "clean": ("delete the environment and everything that tasks wrote", "", []),
}
WRITTEN = (
    ".venv", ".pytest_cache", ".ruff_cache", ".hypothesis", "dist",
    "docs/_build", "docs/algorithm", "docs/api", "docs/gallery",
)  # fmt: skip


def prepare(extra: str) -> None:
    """Install the package with an extra in `.venv`, unless that was done since pyproject.toml changed.

    Modules are compiled to bytecode at their first import: most modules of the installed packages are never imported.
    """
    settings, stamp = ROOT / "pyproject.toml", VENV / f".ready-{extra}"
    if stamp.exists() and stamp.stat().st_mtime >= settings.stat().st_mtime:
        return
    if not any(BIN.glob("python*")):
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    install = [
        str(BIN / "python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-compile",
    ]
    subprocess.run([*install, "-e", f".[{','.join(EXTRAS[extra])}]"], check=True, cwd=ROOT)
    for name in EXTRAS[extra]:
        (VENV / f".ready-{name}").touch()


def run(command: str, arguments: Sequence[str]) -> int:
    """Run one command with a program of the environment; return its exit code."""
    words = shlex.split(command)
    variables = {"PATH": os.pathsep.join([str(BIN), os.environ.get("PATH", "")])}
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        variables[name] = value
    words[0] = shutil.which(words[0], path=str(BIN)) or words[0]
    return subprocess.run([*words, *arguments], cwd=ROOT, env=os.environ | variables, check=False).returncode


def main(arguments: Sequence[str]) -> int:
    """Run the named task, or list the tasks; return the exit code of the first command that fails."""
    if not arguments or arguments[0] not in TASKS:
        print(__doc__)
        for name, (text, _, _) in TASKS.items():
            print(f"  {name:18}{text}")
        return 2 if arguments else 0
    if arguments[0] == "clean":
        for folder in WRITTEN:
            shutil.rmtree(ROOT / folder, ignore_errors=True)
        return 0
    _, extra, commands = TASKS[arguments[0]]
    prepare(extra)
    for i, command in enumerate(commands):
        code = run(command, arguments[1:] if i == len(commands) - 1 else ())
        if code:
            return code
    return 0


if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036  the file may have been started by an older Python
        raise SystemExit(
            "maxmargin needs Python >= 3.11: python3.12 tasks.py test, or make PYTHON=python3.12 test"
        )
    raise SystemExit(main(sys.argv[1:]))
