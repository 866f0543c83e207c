"""Linear models as plain values, and as readable JSON."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from .. import __version__
from ..estimators.imported import ImportedLinearClassifier
from ..numerics.fault import Fault, faults_of
from ..numerics.files import written_whole
from .model_file import chosen, parameters_of
from .models import LinearModel
from .sealed_file import ModelFileError

FORMAT, VERSION = "maxmargin linear model", 1  # the latter is raised when older versions could not read it
_LARGEST = float(np.finfo(float).max)


def to_dict(model: Any) -> dict[str, Any]:
    """Return a linear classifier as plain values: numbers, strings, lists and dicts, which any JSON writer takes.

    Parameters
    ----------
    model : MaxMarginClassifier, OnlineMarginClassifier or ImportedLinearClassifier
        Fitted; or a KernelMaxMarginClassifier with the linear kernel. Of a `MaxMarginClassifierCV` the classifier that
        it has chosen.

    Returns
    -------
    dict
        ``format``, ``version``, ``model`` and ``parameters`` say what it is; ``classes``, ``n_features`` and
        ``features`` (names, or None) what it is about. ``decisions`` has for each class, or of two classes for the
        second, its ``intercept`` and its ``coef``: by the names of the features where there are any, else a list.
        ``bounds`` are those of the certificate. Numbers that JSON does not know are the strings "inf" and "-inf".

    Raises
    ------
    ModelFileError
        If the model is not linear, or holds what JSON cannot.
    """
    model = chosen(model)
    linear = LinearModel.of(model)
    names = [str(name) for name in getattr(model, "feature_names_in_", ())] or None
    labels, bounds = linear.labels.tolist(), _bounds(model)
    if not all(isinstance(label, bool | int | float | str) for label in labels):
        raise ModelFileError("classes in JSON must be numbers, booleans or strings; fit with such labels.")
    decisions = []
    for k, label in enumerate(labels if len(labels) > 2 else labels[1:]):
        coef: Any = linear.coef[k].tolist()
        if names is not None and len(set(names)) == len(names):
            coef = dict(zip(names, coef, strict=True))
        decision = {"class": label, "intercept": linear.intercept[k].item(), "coef": coef}
        decisions.append(decision if bounds is None else {**decision, "bounds": bounds[k]})
    return {
        "format": FORMAT,
        "version": VERSION,
        "writer": f"maxmargin {__version__}",
        "model": type(model).__name__,
        "parameters": {name: _readable(value) for name, value in parameters_of(model).items()},
        "classes": labels,
        "n_features": int(linear.coef.shape[1]),
        "features": names,
        "decisions": decisions,
    }


def from_dict(record: dict[str, Any]) -> ImportedLinearClassifier:
    """Return the classifier of a record that `to_dict` made; no code in it is run.

    Parameters
    ----------
    record : dict

    Returns
    -------
    ImportedLinearClassifier
        With exactly the weights of the model. It has no certificate: its `origin_` holds the bounds of the record, but
        the dual weights that prove them are only in the files of `save`.

    Raises
    ------
    ModelFileError
        If something is missing or is not what it should be; the message says what.
    """
    with faults_of("the record", ModelFileError):
        return _model(record)


def to_json(model: Any, path: str | os.PathLike[str]) -> None:
    """Write the record of `to_dict` to a file of JSON.

    Parameters
    ----------
    model : MaxMarginClassifier, OnlineMarginClassifier or ImportedLinearClassifier
        Fitted; or a KernelMaxMarginClassifier with the linear kernel. Of a `MaxMarginClassifierCV` the classifier that
        it has chosen.
    path : str or path-like
        The file appears whole or not at all.

    Raises
    ------
    ModelFileError
        If the model is not linear, or holds what JSON cannot.
    OSError
        If the file cannot be written.
    """
    text = json.dumps(to_dict(model), indent=1, allow_nan=False, ensure_ascii=False)
    with written_whole(path) as file:
        # lone surrogates become JSON escapes: UTF-8 has no form of them
        file.write(f"{text}\n".encode(errors="backslashreplace"))


def from_json(path: str | os.PathLike[str]) -> ImportedLinearClassifier:
    """Read a classifier that `to_json` wrote; see `from_dict`.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    ImportedLinearClassifier

    Raises
    ------
    ModelFileError
        If the file is cut short, no JSON, or no such model; the message says what is wrong.
    OSError
        If there is no such file, or it cannot be read.
    """
    with faults_of(path, ModelFileError):
        return _model(_parsed(Path(path).read_bytes()))


def _parsed(text: bytes) -> Any:
    """Return the value of a JSON text; raise Fault where it is none."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        message = f"this is not JSON, or it is cut short ({error.msg}); copy or write it again."
        raise Fault(message, error.lineno) from None
    except (UnicodeDecodeError, RecursionError):
        raise Fault("this is not JSON text in UTF-8; copy or write it again.") from None
    except ValueError:  # of Python, for whole numbers of thousands of digits
        raise Fault("a whole number is too long; a model has no such number.") from None


def _refuse(word: str) -> NoReturn:
    raise Fault(f"{word} is not a number in JSON.")


# from the model


def _readable(value: Any) -> Any:
    """Return a value with the numbers that JSON does not know as strings, at any depth."""
    if isinstance(value, dict):
        if value.keys() == {"float"}:
            return value["float"]
        return {name: _readable(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_readable(inner) for inner in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _bounds(model: Any) -> list[dict[str, Any]] | None:
    """Return the bounds on the best objective, or margin, of each decision; None where there are none."""
    if isinstance(model, ImportedLinearClassifier):
        return _readable(model.origin_.get("bounds"))
    if hasattr(model, "bounds_"):  # of a stream
        of = "margin" if math.isinf(model.C) else "objective"
        sides = zip(*(side.tolist() for side in model.bounds_), strict=True)
        return _readable([{"of": of, "lower": lower, "upper": upper} for lower, upper in sides])
    bounds = []
    for part in model.certificate_.certificates:
        of = "margin" if part.problem.hard else "objective"
        bounds.append({"of": of, "lower": part.lower, "upper": part.upper, "gap": part.gap})
        bounds[-1] |= {"proved_by_rows": int(part.support.size)}
        bounds[-1] |= {"nothing_proved": True} if part.proves_nothing else {}
    return _readable(bounds)


# to the model


def _model(record: Any) -> ImportedLinearClassifier:
    """Return the classifier of a record; raise Fault where something is missing or not as it must be."""
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise Fault(f'this is not a model, since "format" is not "{FORMAT}"; name a file of to_json.')
    version = _entry(record, "version", int)
    if version < 1:
        raise Fault(f'"version" must be at least 1; got {version}.')
    if version > VERSION:
        raise Fault(f"the record has version {version}, above {VERSION}; install a newer maxmargin.")
    labels = _classes(_entry(record, "classes", list))
    count, width = labels.size, _entry(record, "n_features", int)
    if count < 2 or np.unique(labels).size < count or width < 1:
        raise Fault("a model must have at least two different classes and at least one feature.")
    names = record.get("features")
    texts = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if names is not None and not (texts and len(names) == width):
        raise Fault(f'"features" must be {width} names, or null.')
    decisions = _decisions(record, labels)
    places = [f"decision {k} (counted from 1)" for k in range(1, len(decisions) + 1)]
    coef = np.array([_weights(*one, names, width) for one in zip(places, decisions, strict=True)])
    named = zip(places, decisions, strict=True)
    intercept = [_finite(f"the intercept of {place}", one.get("intercept")) for place, one in named]
    origin = {"format": "JSON", "model": record.get("model"), "parameters": record.get("parameters")}
    if all("bounds" in one for one in decisions):
        origin["bounds"] = [one["bounds"] for one in decisions]
    model = LinearModel(labels, coef, np.array(intercept)).imported(origin)
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    return model


def _entry(record: dict[str, Any], name: str, kind: type) -> Any:
    """Return an entry of a record; raise Fault where it is missing, or of another type."""
    value = record.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        found = "is missing" if name not in record else f"is {str(value)[:40]!r}"
        raise Fault(f'"{name}" must be {"a list" if kind is list else "a whole number"}; it {found}.')
    return value


def _classes(classes: list[Any]) -> np.ndarray:
    """Return classes as an array that holds exactly these values."""
    kinds = {_kind(label) for label in classes}
    if None in kinds or len(kinds) > 1:
        raise Fault('"classes" must be all numbers, all strings, or all true and false.')
    try:
        whole = all(type(label) is int and label >= 0 for label in classes)
        labels = np.array(classes, np.uint64 if whole and max(classes, default=0) >= 2**63 else None)
    except OverflowError:
        labels = np.array(classes, dtype=object)
    # numbers that are too long for 64 bits, or not finite
    if labels.dtype.kind == "O" or labels.tolist() != classes or np.isin(labels, [np.inf, -np.inf]).any():
        raise Fault('"classes" contains a class that a NumPy array cannot hold; write shorter ones.')
    return labels


def _decisions(record: dict[str, Any], labels: np.ndarray) -> list[dict[str, Any]]:
    """Return the decisions, which must be one for each class, of two classes one for the second."""
    decisions = _entry(record, "decisions", list)
    rows = 1 if labels.size == 2 else labels.size
    if len(decisions) != rows or not all(isinstance(one, dict) for one in decisions):
        raise Fault(f'{labels.size} classes need {rows} "decisions"; got {len(decisions)}.')
    for k, (one, label) in enumerate(zip(decisions, labels.tolist()[-rows:], strict=True), 1):
        named = one.get("class")
        if _kind(named) != _kind(label) or named != label:
            raise Fault(
                f"decision {k} (counted from 1) must have the class {label!r}, because decisions are in the order of "
                f'"classes"; its "class" is {str(named)[:40]!r}.'
            )
    return decisions


def _weights(place: str, decision: dict[str, Any], names: list[str] | None, width: int) -> list[float]:
    """Return the weights of the decision at `place` in the order of the features."""
    coef = decision.get("coef")
    if isinstance(coef, dict):
        if names is None or coef.keys() != set(names) or len(coef) != width:
            raise Fault(f'"coef" of {place} must have the names of "features".')
        coef = [coef[name] for name in names]
    if not isinstance(coef, list) or len(coef) != width:
        raise Fault(f'"coef" of {place} must be {width} numbers.')
    return [_finite(f"weight {j} of {place}", value) for j, value in enumerate(coef, 1)]


def _finite(name: str, value: Any) -> float:
    if _kind(value) is float and abs(value) <= _LARGEST:
        return float(value)
    raise Fault(f"{name} must be a finite number; got {str(value)[:40]!r}.")


def _kind(label: Any) -> type | None:
    """Return the kind of a class: bool, str, or float for all numbers of JSON; None where it is no class."""
    kinds = {bool: bool, str: str, int: float, float: float}
    return next((kind for one, kind in kinds.items() if isinstance(label, one)), None)
