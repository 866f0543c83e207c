"""All targets by their names; each is made when it is asked for: some need the solvers, and files of fitted models."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from targets import Target

CHECKER = Path(__file__).resolve().parents[2] / "checker" / "check.py"
DATA = ("svmlight", "svmlight-gzip", "csv", "no-header", "npz", "npz-array", "npy")
COLUMNAR = ("parquet", "arrow") if find_spec("pyarrow") is not None else ()
MODELS = ("model", "liblinear", "libsvm")
PROOFS = ("certificate",) if CHECKER.exists() else ()
# Modules whose table TARGETS has the function that makes the target of a name.
MODULES = {
    **dict.fromkeys((*DATA, *COLUMNAR), "data_files"),
    **dict.fromkeys(MODELS, "model_files"),
    **dict.fromkeys(PROOFS, "proofs"),
    "fits": "fits",
    "commands": "commands",
}


def target_of(name: str) -> Target:
    """Return a target."""
    return import_module(MODULES[name]).TARGETS[name]()
