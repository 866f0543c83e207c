"""The command line on mutants of every format: an exit code, and never a traceback."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from command import run
from every_target import COLUMNAR, DATA, target_of
from mutants import mutated
from targets import FileTarget, require

# {0} is the mutant, {1} a model file or data that are whole
ON_DATA = ("fit {0} -o {2} --max-time 0.3", "separate {0} --max-time 0.3", "predict {1} {0}", "check {1} {0}")
ON_MODELS = ("predict {0} {1}", "export {0} -o {2} --to liblinear", "check {0} {1}")
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
        commands = ON_MODELS if chosen.suffix == ".safetensors" else ON_DATA
        command = rng.choice(commands).format(path, other, result)
        (folder / "input.txt").write_text(f"maxmargin {command}\n")
        done = run(command)  # raises what no sentence says
        require(done.exit_code in EXIT_CODES, f"exit code {done.exit_code}: {command}")
        return f"exit code {done.exit_code}"


def commands() -> Commands:
    """Return the target of commands on files of all formats."""
    return Commands([target_of(name) for name in (*DATA, *COLUMNAR, "model")])


TARGETS = {"commands": commands}
