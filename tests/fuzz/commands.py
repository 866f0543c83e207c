"""The command line on mutants of every format: an exit code, and never a traceback."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from unittest.mock import patch

from every_target import COLUMNAR, DATA, MODELS, target_of
from mutants import mutated
from targets import FileTarget, require
from typer.testing import CliRunner

from maxmargin.cli import display
from maxmargin.cli.app import app

# {0} is the mutant, {1} a model file or data that are whole
ON_DATA = ("fit {0} -o {2} --max-time 0.3", "separate {0} --max-time 0.3", "predict {1} {0}", "check {1} {0}")
ON_MODELS = ("predict {0} {1}", "export {0} -o {2} --to liblinear", "check {0} {1}")
ON_TEXTS = ("import {0} -o {2}",)
EXIT_CODES = (0, 2, 3)


@dataclass(frozen=True)
class Commands:
    """Commands on mutants of the files of other targets, one of whose originals is a whole model, or whole data."""

    formats: Sequence[FileTarget]
    name: str = "commands"
    seconds: float = 60.0

    def trial(self, rng: Random, folder: Path) -> str:
        """Run a command on a mutant."""
        by_name = {one.name: one for one in self.formats}
        chosen = rng.choice(self.formats)
        path, result = folder / f"input{chosen.suffix}", folder / "result.safetensors"
        content = mutated(rng.choice(chosen.originals), rng, chosen.words, chosen.originals)
        path.write_bytes(chosen.finish(content))
        whole = by_name["svmlight" if chosen.suffix == ".safetensors" else "model"]
        other = folder / f"whole{whole.suffix}"
        other.write_bytes(whole.originals[0])
        kinds = {".safetensors": ON_MODELS, ".txt": ON_TEXTS}
        command = rng.choice(kinds.get(chosen.suffix, ON_DATA)).format(path, other, result)
        (folder / "input.txt").write_text(f"maxmargin {command}\n")
        with warnings.catch_warnings(), patch.object(display, "INTERVAL", 1e6):
            warnings.simplefilter("default")
            done = CliRunner().invoke(app, command.split())
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        require(done.exit_code in EXIT_CODES, f"exit code {done.exit_code}: {command}")
        require("Traceback" not in done.output, f"{command}: {done.output}")
        return f"exit code {done.exit_code}"


def commands() -> Commands:
    """Return the target of commands on files of all formats."""
    return Commands([target_of(name) for name in (*DATA, *COLUMNAR, *MODELS)])


TARGETS = {"commands": commands}
