"""Run the comparison and print it; with --write, measure all parts and write `docs/measurements/benchmarks.md`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from . import report
from .breakdown import breakdown
from .datasets import DATASETS
from .measure import Comparison, compare
from .memory import peaks
from .startup import compilations, imports

PAGE = Path(__file__).parents[1] / "docs" / "measurements" / "benchmarks.md"
PARTS = ("times", "profile", "compile", "memory", "startup")


def main(arguments: list[str] | None = None) -> int:
    """Run the parts that the command line names; return the exit code."""
    options = _parser().parse_args(arguments)
    parts = PARTS if options.write else options.parts
    results: list[Comparison] = []
    profiles: list[str] = []
    for name in options.sets if {"times", "profile"} & set(parts) else ():
        data = DATASETS[name]()
        for C in options.C:
            result = compare(data, C, options.algorithms, options.repeats, options.limit, say=_say)
            results.append(result)
            for row in result.ours:
                _say(f"  {row.solver}: {row.median:.4g} s, ratio {np.median(result.ratios(row)):.2f}")
            if "profile" in parts and not (options.write and result.met(result.ours[0])):
                text = report.profile(result, *breakdown(data, C, options.algorithms[0]))
                profiles.append(text)
                print(text, end="\n\n", flush=True)
    if results:
        print(report.times(results), report.peers(results), sep="\n\n", end="\n\n", flush=True)
    compiled = compilations() if "compile" in parts else []
    if compiled:
        print(report.compilation(compiled), end="\n\n", flush=True)
    memory = peaks() if "memory" in parts else []
    if memory:
        print(report.memory(memory), end="\n\n", flush=True)
    started = imports() if "startup" in parts else {}
    if started:
        print(report.startup(started), flush=True)
    if options.write:
        command = " ".join(["python -m benchmarks", *(sys.argv[1:] if arguments is None else arguments)])
        PAGE.write_text(
            report.document(command, options.repeats, results, profiles, compiled, memory, started)
        )
        print(f"written: {PAGE}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--sets", type=_names, default=list(DATASETS), help="comma separated; default all")
    parser.add_argument("--C", type=_numbers, default=[1.0, 0.1], help="comma separated; default 1,0.1")
    parser.add_argument("--algorithms", type=lambda text: text.split(","), default=["auto", "dcd", "mpu"])
    parser.add_argument("--repeats", type=int, default=7, help="number of seeds")
    parser.add_argument(
        "--limit", type=float, default=120.0, help="seconds of one fit after which a peer is dropped"
    )
    parser.add_argument(
        "--parts", type=lambda text: text.split(","), default=["times"],
        help=f"comma separated, of {', '.join(PARTS)}; default times",
    )  # fmt: skip
    parser.add_argument(
        "--write", action="store_true", help="measure all parts and write docs/measurements/benchmarks.md"
    )
    return parser


def _names(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in DATASETS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no data set {', '.join(unknown)}; there are {', '.join(DATASETS)}")
    return names


def _numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
