"""Run the tests of the unpacked sdist on the wheel of dist/, in a new environment.

Usage: python tools/test_dist.py [argument of pytest ...]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

DIST = Path(__file__).resolve().parents[1] / "dist"
CHECK = """
import sys
from importlib.metadata import version
from pathlib import Path

import maxmargin

home = Path(maxmargin.__file__).parent
assert home.is_relative_to(sys.argv[1]), home
assert (home / "py.typed").is_file(), "the wheel has no py.typed"
print(f"maxmargin {version('maxmargin')} of {home}")
"""


def main(arguments: list[str]) -> int:
    """Install the wheel, unpack the sdist and run its tests; return the exit code of pytest."""
    wheels, archives = list(DIST.glob("maxmargin-*.whl")), list(DIST.glob("maxmargin-*.tar.gz"))
    if len(wheels) != 1 or len(archives) != 1:
        raise SystemExit("dist/ must hold one wheel and one sdist: delete it and run `python tasks.py dist`")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as work:
        venv = Path(work) / "venv"
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        python = str(venv / ("Scripts" if os.name == "nt" else "bin") / "python")
        with tarfile.open(archives[0]) as archive:
            archive.extractall(work, filter="data")
        (home,) = (path for path in Path(work).iterdir() if path.name.startswith("maxmargin-"))
        # only the installed package may be imported
        shutil.rmtree(home / "src")

        def run(*words: str) -> int:
            return subprocess.run([python, *words], cwd=home, env=environment, check=False).returncode

        install = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        return (
            run(*install, f"{wheels[0]}[test]")
            or run("-c", CHECK, str(venv))
            or run("-m", "maxmargin", "--version")
            or run("-m", "pytest", "-m", "not slow", *arguments)
        )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
