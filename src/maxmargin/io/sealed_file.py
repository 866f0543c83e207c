"""The container of model files: arrays and a JSON record in the safetensors format, sealed against changes."""

from __future__ import annotations

import hashlib
import json
import math
import re
from fractions import Fraction
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors import numpy as safetensors

from ..numerics.fault import Fault, faults_of

FORMAT = 1  # raised when older versions of maxmargin could not read the file
_OPENING = b'{"__metadata__":{"maxmargin":"'  # of the header, which the eight bytes of its length precede
_CUT_SHORT = "the file is cut short; save or copy it again."
_NO_SEAL = "0" * 64  # in the place of the seal while it is computed
_SEAL = re.compile(rb'\\"seal\\":\\"([0-9a-f]{64})\\"')  # JSON text within JSON: quotes are escaped


class ModelFileError(ValueError):
    """A model file that cannot be read, or a model that cannot be written; the message says why."""


def pack(arrays: dict[str, np.ndarray], model: dict[str, Any]) -> list[bytes | memoryview]:
    """Return the parts of a file, one after the other; the seal is the SHA-256 of all, with zeros in its own place."""
    record = {"format": FORMAT, "seal": _NO_SEAL, "model": model}
    text = json.dumps(record, allow_nan=False, separators=(",", ":"))
    contiguous = {name: np.ascontiguousarray(a) for name, a in arrays.items()}
    content = safetensors.save(contiguous, {"maxmargin": text})
    place = _SEAL.search(content)
    assert place is not None
    start, view = place.start(1), memoryview(content)
    return [view[:start], _digest(content, start).encode(), view[start + 64 :]]


def unpack(path: Any, content: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the record of a model and its arrays from the bytes of a file.

    Raises
    ------
    ModelFileError
        If the file is cut short, altered, of a newer version, or no model file; `path` is for the message.
    """
    with faults_of(path, ModelFileError):
        return _checked(content)


def _checked(content: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the record and the arrays of a file; raise Fault where its length, format or seal is wrong."""
    if not content:
        raise Fault("the file is empty.")
    end = 8 + int.from_bytes(content[:8], "little")
    if not content[8:].startswith(_OPENING):
        raise Fault("this is not a model file of maxmargin, or it is damaged; name one that `save` wrote.")
    if len(content) < end:
        raise Fault(_CUT_SHORT)
    try:
        header = json.loads(content[8:end])
        record = json.loads(header.pop("__metadata__")["maxmargin"], object_hook=_number)
        number = int(record["format"])
        size = max(array["data_offsets"][1] for array in header.values())
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
        raise Fault("the file was altered: its header is damaged; save or copy it again.") from None
    if number > FORMAT:
        raise Fault(f"the file has format {number}, above {FORMAT}; install a newer maxmargin.")
    if len(content) < end + size:
        raise Fault(_CUT_SHORT)
    seal = _SEAL.search(content, 0, end)
    if seal is None or seal[1].decode() != _digest(content, seal.start(1)):
        raise Fault("the file was altered after it was saved; its checksum does not match; copy it again.")
    try:
        arrays = safetensors.load(content)
        return record["model"], {name: np.require(a, requirements="W") for name, a in arrays.items()}
    except (KeyError, SafetensorError) as error:
        raise Fault(f"this is not a complete model ({error!r}); save it again.") from None


def _digest(content: bytes, seal: int) -> str:
    """Return the SHA-256 of a file with zeros instead of the 64 characters that begin at `seal`."""
    view = memoryview(content)
    digest = hashlib.sha256(view[:seal])
    digest.update(_NO_SEAL.encode())
    digest.update(view[seal + 64 :])
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
    if callable(value):
        raise ModelFileError(
            f"a model file cannot hold code, and the kernel is the function {value!r}: use a kernel by name, or "
            'kernel="precomputed" with the matrix that the function makes.'
        )
    raise ModelFileError(f"a model file can hold numbers and strings; {value!r} is neither.")


def _number(value: dict[str, Any]) -> Any:
    return float(value["float"]) if value.keys() == {"float"} else value
