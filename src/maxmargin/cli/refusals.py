"""Refusal of options that lose a file or change nothing, and messages in the words of the command line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from typing import Any

OUTPUTS = ("output", "csv", "picture", "checkpoint")  # options that name a file to write
KERNEL_OPTIONS = ("gamma", "degree", "coef0")
# patterns of sentences that name what only Python has, and what stands in place of it
WORDS = (
    (r"^algorithms(?= must )", "--algorithms"),
    (r"^checkpoint(?= is not used)", "--checkpoint"),
    (r"(?<=or give less )memory(?=\.$)", "--memory"),
    (r"\bp must be 2; got p=", "--p must be 2; got "),
    (r"; got \w+=(?=[^=]+$)", "; got "),
    (r"^y must hold two classes and holds 1: .*", "the labels are of one class: give a file with two"),
    (r"^y must hold two classes and holds (\d+): ask for .*", r"the labels are of \1 classes: give a file with two"),
    (r", or None(?=; got )", ""),
    (r' must be a dict, "balanced" or None(?=; got )', " must be balanced"),
    (r"'precomputed', |, or a function of two matrices(?=; got )|, or an object such as \w+\(\)(?=; got )", ""),
    (r"(?<=, no class of the model: )give y of the fit", "give the data of the fit"),
)  # fmt: skip


def dashed(name: str) -> str:
    """Return the option of a parameter as it is typed."""
    return f"--{name.replace('_', '-')}"


def output_files(given: dict[str, Any]) -> None:
    """Make the texts of the output files of a command paths; raise ValueError where one file would be lost.

    Parameters
    ----------
    given : dict
        The arguments of a command, which are changed: a path does not tell a file from a folder with a slash.

    Raises
    ------
    ValueError
        If a name is that of standard input or of a folder, or if two options name the same file.
    """
    texts = {name: str(given[name]) for name in OUTPUTS if given.get(name) is not None}
    for name, text in texts.items():
        if text == "-":
            raise ValueError(f"{dashed(name)} -: the sign - stands for standard input; name a file")
        if text.endswith(tuple(filter(None, (os.sep, os.altsep)))):
            raise ValueError(f"{text}: {dashed(name)} names a folder; name a file in it")
        if name != "checkpoint":
            given[name] = Path(text)
    for (one, path), (two, other) in combinations(texts.items(), 2):
        if os.path.realpath(path) == os.path.realpath(other):
            raise ValueError(
                f"{other}: {dashed(one)} and {dashed(two)} name the same file; use different files"
            )


def refuse_unused(typed: dict[str, Any], has_kernel: bool) -> None:
    """Raise ValueError where an option that is typed changes nothing beside the others.

    Parameters
    ----------
    typed : dict
        Options that the command line sets, with their values.
    has_kernel : bool
        Whether the command has an option ``--kernel``.
    """
    for name in ("intercept", "intercept_scaling"):
        if name in typed and typed.get("fit_intercept") is False:
            raise ValueError(f"{dashed(name)} does not apply with --no-intercept: leave one of them out")
    online = typed.get("online", False)
    if "intercept_scaling" in typed and typed.get("intercept") != "augmented" and not online:
        raise ValueError(
            "--intercept-scaling applies only with --intercept augmented: add it, or leave it out"
        )
    unused = [name for name in KERNEL_OPTIONS if name in typed]
    if not unused or not has_kernel or online:
        return
    kernel = typed.get("kernel")
    if kernel is None:
        raise ValueError(f"{dashed(unused[0])} applies only with --kernel: name a kernel, or leave it out")

    from ..kernels.names import KERNEL_PARAMS

    known = KERNEL_PARAMS.get(kernel, KERNEL_OPTIONS)  # unknown kernels are refused with the names of all
    unused = [name for name in unused if name not in known]
    if unused:
        raise ValueError(f"{dashed(unused[0])} is no parameter of --kernel {kernel}: leave it out")


def refuse_cache_dir(cache_dir: str | None) -> None:
    """Raise ValueError where ``--cache-dir`` is typed, and the rows are in memory."""
    if cache_dir is not None:
        raise ValueError("--cache-dir applies only with --memory, and the data fit in memory: leave it out")


def as_typed(message: str, parameters: Iterable[str]) -> str:
    """Return an error message of the library in the words of the command line.

    Parameters
    ----------
    message : str
    parameters : iterable of str
        Names of options, which are dashed where one begins the sentence.
    """
    message = " ".join(message.split())
    for pattern, words in WORDS:
        message = re.sub(pattern, words, message)
    message = re.sub(rf"^(?:{'|'.join(parameters)})(?= must be )", lambda name: dashed(name[0]), message)
    if "(counted from 0)" in message:
        from ..estimators.diagnosis import counted_from_one  # slow

        message = counted_from_one(message)
    return message
