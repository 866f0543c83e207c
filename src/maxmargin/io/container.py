"""The container of model files: arrays and a JSON record in the safetensors format, with a checksum."""

from __future__ import annotations

import hashlib
import json
import math
import os
from fractions import Fraction
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors import numpy as safetensors

from ..numerics.files import Fault

VERSION = 1


class ModelFileError(ValueError):
    """A model file that cannot be read, or a model that cannot be written; the message says why."""


def pack(arrays: dict[str, np.ndarray], model: dict[str, Any]) -> bytes:
    """Return the content of a file."""
    contiguous = {name: np.ascontiguousarray(a) for name, a in arrays.items()}
    record = {"format": VERSION, "sha256": _digest(_canonical(model), contiguous), "model": model}
    return safetensors.save(contiguous, {"maxmargin": _canonical(record)})


def unpack(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the record of a model and its arrays; raise Fault where the file is damaged, or no model file."""
    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise Fault(
            f"this is not a model file of maxmargin, or it is damaged ({error}); copy it again."
        ) from None
    text = metadata.get("maxmargin")
    if text is None:
        raise Fault("this is not a model file of maxmargin; name one that `save` wrote.")
    record = json.loads(text)
    if record["format"] > VERSION:
        raise Fault(f"the file has format {record['format']}, above {VERSION}; install a newer maxmargin.")
    model = _canonical(record["model"])
    if record["sha256"] != _digest(model, arrays):
        raise Fault("the file was altered after it was saved; its checksum does not match; copy it again.")
    return json.loads(model, object_hook=_decode_nonfinite), arrays


def _canonical(record: dict[str, Any]) -> str:
    """Return the text of a record that the checksum is about."""
    return json.dumps(record, allow_nan=False, separators=(",", ":"))


def _digest(model: str, arrays: dict[str, np.ndarray]) -> str:
    """Return the SHA-256 of the model's text, and of the names, types, shapes and entries of all arrays."""
    digest = hashlib.sha256(model.encode())
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype.str} {arrays[name].shape}".encode())
        digest.update(arrays[name].tobytes())
    return digest.hexdigest()


# numbers that JSON does not know are written as {"float": "inf"}


def plain(value: Any) -> Any:
    """Return numbers, strings, booleans and None, alone or in lists and dicts, as JSON has them.

    Fractions are text, which holds all their digits.

    Raises
    ------
    ModelFileError
        If something else is among them.
    """
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ModelFileError(
        f"a model file can hold numbers and strings, and no code; {value!r} is neither: use a kernel by name, or "
        'kernel="precomputed" with the matrix that the function makes.'
    )


def _decode_nonfinite(value: dict[str, Any]) -> Any:
    """Return the number of an object such as {"float": "inf"}; other objects as they are."""
    return float(value["float"]) if value.keys() == {"float"} else value
