"""The state of a partitioned fit between two passes, in a file from which the same fit goes on."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...certificates.bounds import Side
from ...certificates.certificate import Fingerprint, ImpliedDual
from ...numerics.files import written_whole
from ..report import Report
from .bounds import Proof
from .newton import NewtonRun
from .sums import Linearisation

FORMAT = "maxmargin checkpoint 1"
# attributes of `NewtonRun` that are stored as numbers, and as arrays
SCALARS = ("error", "upper", "idle", "last_objective", "last_move", "radius")
ARRAYS = ("z", "best", "metric_matrix")


class CheckpointError(ValueError):
    """Error of a checkpoint that cannot be used."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The state of a fit.

    Attributes
    ----------
    key : dict
        The problem, the sizes of the data, and the classes: a checkpoint with another key is refused.
    passes : int
    numbers, factors : ndarray of shape (k,)
        The rows of the sample, and how many rows each stands for.
    checksum : float
        A sum over the entries of the sample.
    runs : list of dict
        `state_of` each binary problem.
    """

    key: dict[str, Any]
    passes: int
    numbers: np.ndarray
    factors: np.ndarray
    checksum: float
    runs: list[dict[str, Any]]

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the checkpoint; an old file stays until the new one is complete."""
        arrays: dict[str, np.ndarray] = {"numbers": self.numbers, "factors": self.factors}
        records = []
        for k, run in enumerate(self.runs):
            records.append({name: value for name, value in run.items() if not isinstance(value, np.ndarray)})
            arrays |= {f"{k}.{name}": value for name, value in run.items() if isinstance(value, np.ndarray)}
        header = {"format": FORMAT, "key": self.key, "passes": self.passes, "checksum": self.checksum}
        text = json.dumps(header | {"runs": records})
        with written_whole(path) as file:
            np.savez(file, header=np.array(text), **arrays)  # pyright: ignore[reportArgumentType]


def read_checkpoint(path: str | os.PathLike[str], key: dict[str, Any]) -> Checkpoint | None:
    """Read a checkpoint; return None if there is no such file.

    Parameters
    ----------
    path : str or path-like
    key : dict
        That of the fit.

    Raises
    ------
    CheckpointError
        If the file is no checkpoint, or one of another fit.
    """
    if not Path(path).exists():
        return None
    try:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(str(arrays.pop("header")))
        if header["format"] != FORMAT:
            raise ValueError(header["format"])
        runs = [
            record | {name.partition(".")[2]: a for name, a in arrays.items() if name.startswith(f"{k}.")}
            for k, record in enumerate(header["runs"])
        ]
        found = Checkpoint(
            header["key"], header["passes"], arrays["numbers"], arrays["factors"], header["checksum"], runs
        )
    except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
        raise CheckpointError(
            f"{path} is not a complete checkpoint; name another file, or delete it if it was one."
        ) from None
    for name, value in json.loads(json.dumps(key)).items():
        if found.key.get(name) != value:
            raise CheckpointError(
                f"{path} is the checkpoint of another fit: {name} is {found.key.get(name)} there, {value} here; name "
                "another file, or delete it to begin anew."
            )
    return found


def state_of(run: NewtonRun, fingerprint: Fingerprint | None, history: list[Report]) -> dict[str, Any]:
    """Return the state of one binary problem as numbers, records and arrays."""
    state: dict[str, Any] = {name: getattr(run, name) for name in SCALARS + ARRAYS}
    state["fingerprint"] = None if fingerprint is None else asdict(fingerprint)
    state["history"] = [asdict(report) | {"label": None} for report in history]
    if run.last is not None:
        state |= {f"last_{name}": value for name, value in vars(run.last).items()}
    if run.proof is not None:
        state |= {f"proof_{name}": value for name, value in vars(run.proof.dual).items()}
        state |= {"proof_numbers": run.proof.numbers, "proof_alpha": run.proof.alpha}
        state["proof_side"] = list(run.proof.side)
    return state


def restore(run: NewtonRun, state: Mapping[str, Any], label: Any) -> tuple[Fingerprint | None, list[Report]]:
    """Set the state of one binary problem, and return the fingerprint of the data and the reports."""
    for name in SCALARS + ARRAYS:
        setattr(run, name, state[name])
    run.last = run.proof = None
    if "last_z" in state:
        run.last = Linearisation(*(state[f"last_{name}"] for name in ("z", "width", "numbers", "alpha")))
    if "proof_side" in state:
        points = ImpliedDual(*(state[f"proof_{name}"] for name in ImpliedDual.__dataclass_fields__))
        run.proof = Proof(Side(*state["proof_side"]), points, state["proof_numbers"], state["proof_alpha"])
    record = state["fingerprint"]
    history = [Report(**report | {"label": label}) for report in state["history"]]
    return None if record is None else Fingerprint(**record), history
