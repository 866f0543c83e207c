"""The state of a partitioned fit between two passes, in a file from which the same fit goes on."""

from __future__ import annotations

import json
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...certificates.certificate import CHECKSUM_TOLERANCE
from ...data.partitions import Gathered
from ...numerics.files import written_whole
from ...numerics.sums import Plain

FORMAT = "maxmargin checkpoint 2"
ARRAY = "array"  # the only key of the records that stand for arrays in the header


class CheckpointError(ValueError):
    """Error of a checkpoint that cannot be used."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The state of a fit.

    States are dictionaries and lists of numbers, text, None and arrays.

    Attributes
    ----------
    key : dict
        The problem, the sizes of the data, the classes and the method: a checkpoint with another key is refused.
    passes : int
        Passes over the data so far.
    numbers : ndarray of int64 of shape (k,)
        Rows that were in memory.
    checksum : float
        `checksum` of their entries.
    fit : dict
        The state of the whole fit.
    problems : list of dict
        The state of each binary problem.
    """

    key: dict[str, Any]
    passes: int
    numbers: np.ndarray
    checksum: float
    fit: dict[str, Any]
    problems: list[dict[str, Any]]

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the checkpoint; an old file stays until the new one is complete."""
        arrays: dict[str, np.ndarray] = {}
        header = json.dumps(_without_arrays(vars(self) | {"format": FORMAT}, "", arrays))
        with written_whole(path) as file:
            np.savez(file, header=np.array(header), **arrays)  # pyright: ignore[reportArgumentType]

    def check_rows(self, path: str | os.PathLike[str], rows: Gathered) -> None:
        """Raise CheckpointError if the rows with these numbers now have other entries."""
        if abs(checksum(rows) - self.checksum) > CHECKSUM_TOLERANCE * abs(self.checksum):
            raise CheckpointError(f"{path} is the checkpoint of other data; name another file, or delete it.")


def checksum(rows: Gathered) -> float:
    """Return sum_i (x_i.v)^2 with v_j = sin(j): rows with other entries have another sum."""
    return Plain.total(Plain.scores(rows.X, np.sin(np.arange(1.0, rows.X.shape[1] + 1.0))) ** 2)


def _without_arrays(value: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """Return a state in which records stand for its arrays, which are added to `arrays`."""
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return {ARRAY: name}
    if isinstance(value, dict):
        return {key: _without_arrays(one, f"{name}.{key}", arrays) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_arrays(one, f"{name}.{k}", arrays) for k, one in enumerate(value)]
    return value.item() if isinstance(value, np.generic) else value


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
            header = json.loads(
                str(file["header"]),
                object_hook=lambda record: file[record[ARRAY]] if record.keys() == {ARRAY} else record,
            )
        if header.pop("format") != FORMAT:
            raise ValueError(path)
        found = Checkpoint(**header)
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
