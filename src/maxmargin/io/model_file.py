"""Model files: classifiers as arrays and plain JSON in the safetensors format. Loading one can run no code."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable
from dataclasses import asdict, fields, is_dataclass, replace
from fractions import Fraction
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import scipy.sparse as sp
from safetensors import SafetensorError, safe_open
from safetensors import numpy as safetensors
from sklearn.utils.validation import check_is_fitted

from ..algorithms import ALGORITHMS, Algorithm, Decomposition
from ..certificates.certificate import Certificate, Certificates, require_rows
from ..certificates.verdicts import Inseparable, Undecided
from ..estimators.kernel import KernelMaxMarginClassifier
from ..estimators.linear import MaxMarginClassifier
from ..estimators.online import OnlineMarginClassifier
from ..fit.report import Report
from ..kernels.functions import Gaussian, Kernel, Linear, Pairwise, Polynomial, Precomputed, Sigmoid
from ..numerics.files import Fault, faults_of, written_whole
from ..problem.multiclass import named_parts, parts_of
from ..problem.problem import Status
from . import ModelFileError

VERSION = 1
Model = MaxMarginClassifier | KernelMaxMarginClassifier | OnlineMarginClassifier
Record = dict[str, Any]  # plain values for JSON
Arrays = dict[str, np.ndarray]
_KERNELS = {kind.__name__: kind for kind in (Linear, Polynomial, Gaussian, Sigmoid, Pairwise, Precomputed)}


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file, with its certificate and history, or with all that a stream needs to go on.

    The file appears whole or not at all: an old file of that name stays until the new one is complete.

    Parameters
    ----------
    model : MaxMarginClassifier, KernelMaxMarginClassifier or OnlineMarginClassifier
        Fitted; of a `MaxMarginClassifierCV` the classifier that it has chosen. Its `callback` is not saved, and
        `random_state` only if it is None or an integer.
    path : str or path-like
        Usually with the suffix ``.safetensors``.

    Raises
    ------
    ModelFileError
        If the model holds something that JSON cannot.
    OSError
        If the file cannot be written.
    """
    kind = MaxMarginClassifier if isinstance(model, MaxMarginClassifier) else type(model)
    if kind not in _LAYOUTS:
        names = ", ".join(cls.__name__ for cls in _LAYOUTS)
        raise ModelFileError(f"save writes models of {names}; got {type(model).__name__}.")
    check_is_fitted(model)
    attributes, sections = _LAYOUTS[kind]
    fitted: Record = {}
    arrays: Arrays = {}
    for name in attributes:
        value = getattr(model, f"{name}_")
        if isinstance(value, np.ndarray):
            arrays[name] = value
        else:
            fitted[name] = _plain(value)
    for write, _ in sections:
        write(model, fitted, arrays)
    record = {"class": kind.__name__, "parameters": _parameters_of(model, kind), "fitted": fitted}
    content = _pack(arrays, record)
    with written_whole(path) as file:
        file.write(content)


def load(path: str | os.PathLike[str]) -> Model:
    """Read a model that `save` wrote.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    MaxMarginClassifier, KernelMaxMarginClassifier or OnlineMarginClassifier
        Fitted: it predicts, and its certificate is verified, as before; a stream continues with identical results.

    Raises
    ------
    ModelFileError
        If the file is damaged, of a newer version, or no model file.
    OSError
        If there is no such file, or it cannot be read.
    """
    with faults_of(path, ModelFileError):
        try:
            return _model(*_unpack(path))
        except (KeyError, TypeError, AttributeError, IndexError, ValueError, ArithmeticError) as error:
            raise Fault(f"this is not a complete model ({error!r}); save it again.") from None


def _model(record: Record, arrays: Arrays) -> Model:
    """Return the model of a record and its arrays; an exception says what is missing or does not fit."""
    cls = next((cls for cls in _LAYOUTS if cls.__name__ == record["class"]), None)
    if cls is None:
        raise Fault(f"models of class {record['class']!r} need a newer version of maxmargin; install it.")
    model = cls(**_parameters_from(record["parameters"]))
    (attributes, sections), fitted = _LAYOUTS[cls], record["fitted"]
    for name in attributes:
        value = arrays[name] if name in arrays else fitted[name]
        setattr(model, f"{name}_", _TYPES[name](value) if name in _TYPES else value)
    for _, read in sections:
        read(model, fitted, arrays)
    return model


# parameters


def _parameters_of(model: Any, kind: type[Any]) -> Record:
    """Return the parameters of a classifier as JSON has them, without those that hold code or state."""
    parameters = {name: getattr(model, name) for name in kind().get_params(deep=False) if name != "callback"}
    if not isinstance(parameters.get("random_state"), int | np.integer | None):
        parameters["random_state"] = None
    return {name: _parameter_record(value) for name, value in parameters.items()}


def _parameter_record(value: Any) -> Any:
    """Return a parameter as JSON has it: of an algorithm its own parameters, of a dict its pairs."""
    if isinstance(value, dict):  # keys of JSON objects could only be strings
        return _plain(list(value.items()))
    if isinstance(value, Decomposition):
        return value.name
    if not isinstance(value, Algorithm):
        return _plain(value)
    if ALGORITHMS.get(value.name) is not type(value):
        raise ModelFileError(
            f"a model file cannot name the algorithm {type(value).__name__}, which is not one of "
            f'{", ".join(ALGORITHMS)}; call model.set_params(algorithm="auto") before it is saved.'
        )
    return {"name": value.name, "fields": _plain(vars(value))}


def _parameters_from(record: Record) -> Record:
    """Return the parameters that `_parameters_of` wrote."""
    parameters = dict(record)
    if isinstance(algorithm := record.get("algorithm"), dict):
        parameters["algorithm"] = ALGORITHMS[algorithm["name"]](**algorithm["fields"])
    if isinstance(pairs := record.get("class_weight"), list):
        parameters["class_weight"] = dict(pairs)
    return parameters


# dataclasses


def _encode(instance: Any, name: str, arrays: Arrays) -> Record:
    """Return the fields of a dataclass as JSON has them; arrays among them go to `arrays`, as ``name.field``.

    Kernels are left out: they are those of the model. The types of the fields tell `_decode` what the values are.
    """
    record: Record = {}
    for field in fields(instance):
        value = getattr(instance, field.name)
        if isinstance(value, np.ndarray):
            arrays[f"{name}.{field.name}"] = value
        elif not isinstance(value, Kernel):
            record[field.name] = _encode(value, name, arrays) if is_dataclass(value) else _plain(value)
    return record


def _decode(kind: type[Any], record: Record, name: str, arrays: Arrays, kernel: Kernel) -> Any:
    """Return the dataclass of a record that `_encode` made, whose types say what its values have to be."""
    types = get_type_hints(kind)
    values: Record = {"kernel": kernel} if "kernel" in types else {}
    for field, value in record.items():
        record_types: list[Any] = [
            one for one in (types[field], *get_args(types[field])) if is_dataclass(one)
        ]
        if record_types and isinstance(value, dict):
            values[field] = _decode(record_types[0], value, name, arrays, kernel)
        elif get_origin(types[field]) is tuple:
            values[field] = tuple(map(Fraction, value) if Fraction in get_args(types[field]) else value)
        else:
            values[field] = float(value) if types[field] is float else value
    for field, type_ in types.items():
        if type_ is np.ndarray:
            values[field] = arrays[f"{name}.{field}"]
    return kind(**values)


# names of classes and features, and the columns of the data that the command line read


def _write_names(model: Any, record: Record, arrays: Arrays) -> None:
    """Write the classes, the names of the features, and the columns of the command line's data."""
    classes = model.classes_
    if classes.dtype.kind in "biuf":
        arrays["classes"] = classes
    else:
        if not all(isinstance(name, str) for name in classes):
            raise ModelFileError("classes in a model file are numbers, booleans or strings; fit with such.")
        kind = classes.dtype.str if classes.dtype.kind == "U" else "O"
        record["classes"] = {"dtype": kind, "names": [str(name) for name in classes]}
    if hasattr(model, "feature_names_in_"):
        record["feature_names_in"] = [str(name) for name in model.feature_names_in_]
    record["source"] = getattr(model, "source_", None)


def _read_names(model: Any, record: Record, arrays: Arrays) -> None:
    """Read what `_write_names` wrote; raise ValueError where weights do not fit the classes and features."""
    if "classes" in record:
        model.classes_ = np.array(record["classes"]["names"], dtype=record["classes"]["dtype"])
    else:
        model.classes_ = arrays["classes"]
    if "feature_names_in" in record:
        model.feature_names_in_ = np.array(record["feature_names_in"], dtype=object)
    if record["source"] is not None:
        model.source_ = record["source"]
    rows = len(model.classes_) if len(model.classes_) > 2 else 1
    if "coef" in arrays and (
        model.coef_.shape != (rows, record["n_features_in"]) or model.intercept_.shape != (rows,)
    ):
        raise ValueError(f"coefficients have shape {model.coef_.shape}")


# kernel expansions


def _write_expansion(model: Any, record: Record, arrays: Arrays) -> None:
    """Write the support vectors, the kernel, and the scheme of several classes."""
    vectors, kernel = model.support_vectors_, model.kernel_
    if sp.issparse(vectors):
        for name in ("data", "indices", "indptr"):
            arrays[f"vectors.{name}"] = getattr(vectors, name)
    else:
        arrays["vectors"] = vectors
    values = asdict(kernel)
    if "parameters" in values:  # pairs
        values["parameters"] = dict(values["parameters"])
    record["kernel"] = {"class": type(kernel).__name__, "fields": _plain(values)}
    record["multi_class"] = model.multi_class_


def _read_expansion(model: Any, record: Record, arrays: Arrays) -> None:
    """Read the support vectors and the kernel, and make what predicts with them."""
    values = record["kernel"]["fields"]
    if "parameters" in values:
        values["parameters"] = tuple(values["parameters"].items())
    model.multi_class_ = record["multi_class"]
    count = int(model.n_support_.sum())
    if "vectors" in arrays:
        model.support_vectors_ = arrays["vectors"]
    else:
        parts = tuple(arrays[f"vectors.{name}"] for name in ("data", "indices", "indptr"))
        model.support_vectors_ = sp.csr_matrix(parts, shape=(count, record["n_features_in"]))
        model.support_vectors_.check_format(full_check=True)  # SciPy reads memory at indices out of range
    if model.dual_coef_.shape[1] != count:
        raise ValueError(f"dual coefficients have shape {model.dual_coef_.shape}")
    if "support" in arrays and model.support_.size != count:
        raise ValueError(f"there are {model.support_.size} support vectors")
    model.make_machine(_KERNELS[record["kernel"]["class"]](**values))


# certificates, verdicts and history


def _write_certificates(model: Any, record: Record, arrays: Arrays) -> None:
    """Write the bounds with their dual weights, the proofs about hard margins, and the reports of the fit."""
    certificate = model.certificate_
    parts = enumerate(certificate.certificates)
    record["several"], record["message"] = isinstance(certificate, Certificates), model.message_
    record["certificates"] = [_encode(part, f"certificate.{k}", arrays) for k, part in parts]
    # reports and verdicts name a problem by its place among the certificates
    place: dict[Any, Any] = {None: None}
    if isinstance(certificate, Certificates):
        place |= {label: k for k, label in enumerate(certificate.classes)}
    found = getattr(model, "verdict_", {})
    verdicts = found if isinstance(found, dict) else {None: found}
    # a separator is the model itself
    proofs = {label: one for label, one in verdicts.items() if isinstance(one, Inseparable | Undecided)}
    record["verdicts"] = []
    for k, (label, verdict) in enumerate(proofs.items()):
        record["verdicts"].append({**_encode(verdict, f"verdict.{k}", arrays), "class": place[label]})
    reports = [replace(report, label=place[report.label]) for report in model.history_]
    record["history"] = [_encode(report, "history", arrays) for report in reports]


def _read_certificates(model: Any, record: Record, arrays: Arrays) -> None:
    """Read certificates, verdicts and reports, with the names of their problems."""
    kernel = getattr(model, "kernel_", Linear())
    found = enumerate(record["certificates"])
    parts = tuple(_decode(Certificate, part, f"certificate.{k}", arrays, kernel) for k, part in found)
    labels = named_parts(parts_of(getattr(model, "multi_class_", "ovr"), len(model.classes_)), model.classes_)
    model.certificate_ = Certificates(tuple(labels), parts) if record["several"] else parts[0]
    names: dict[Any, Any] = {None: None} | dict(enumerate(labels))
    reports = [_decode(Report, report, "", arrays, kernel) for report in record["history"]]
    model.history_ = [replace(report, label=names[report.label]) for report in reports]
    model.message_ = record["message"]
    verdicts = {}
    for k, verdict in enumerate(record["verdicts"]):
        place = verdict.pop("class")
        kind = Undecided if "certificate" in verdict else Inseparable
        verdicts[names[place]] = proof = _decode(kind, verdict, f"verdict.{k}", arrays, kernel)
        require_rows(proof.support, parts[place or 0].rows)
    if verdicts:
        model.verdict_ = verdicts if record["several"] else verdicts[None]


# streams


def _write_stream(model: Any, record: Record, arrays: Arrays) -> None:
    """Write the width of a stream, the number of its passes, and the arrays of its state."""
    record["width"], record["n_iter"] = model.coef_.shape[1], int(model.n_iter_)
    for k, stream in enumerate(model._streams):
        arrays |= {f"stream.{k}.{name}": a for name, a in stream.arrays.items()}


def _read_stream(model: Any, record: Record, arrays: Arrays) -> None:
    """Begin a stream of the same width, and fill its state with the arrays."""
    model._begin(model.classes_, record["width"])
    model.n_iter_, model.n_features_in_ = record["n_iter"], record["width"]
    for k, stream in enumerate(model._streams):
        for name, a in stream.arrays.items():
            a[...] = arrays[f"stream.{k}.{name}"]


# the content of the files of each class

Section = Callable[[Any, Record, Arrays], None]
_NAMES = (_write_names, _read_names)
_EXPANSION = (_write_expansion, _read_expansion)
_CERTIFICATES = (_write_certificates, _read_certificates)
_FIT = ("n_features_in", "n_iter", "status")

# attributes that JSON has as other types
_TYPES: dict[str, Callable[[Any], Any]] = {"status": Status, "shape_fit": tuple}

# For each class, its fitted arrays and plain values by their names in the file, and the pairs of functions that write
# and read the other parts of a model, in the order of reading.
_LAYOUTS: dict[type[Any], tuple[tuple[str, ...], tuple[tuple[Section, Section], ...]]] = {
    MaxMarginClassifier: (("coef", "intercept", "class_weight", *_FIT), (_NAMES, _CERTIFICATES)),
    KernelMaxMarginClassifier: (
        ("intercept", "class_weight", "support", "dual_coef", "n_support", *_FIT, "gamma", "shape_fit"),
        (_NAMES, _EXPANSION, _CERTIFICATES),
    ),
    OnlineMarginClassifier: ((), (_NAMES, (_write_stream, _read_stream))),
}


# the container: arrays and a JSON record in the safetensors format, with a checksum


def _pack(arrays: dict[str, np.ndarray], model: dict[str, Any]) -> bytes:
    """Return the content of a file."""
    contiguous = {name: np.ascontiguousarray(a) for name, a in arrays.items()}
    record = {"format": VERSION, "sha256": _digest(_canonical(model), contiguous), "model": model}
    return safetensors.save(contiguous, {"maxmargin": _canonical(record)})


def _unpack(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
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


def _plain(value: Any) -> Any:
    """Return numbers, strings, booleans and None, alone or in lists and dicts, as JSON has them.

    Fractions are text, which holds all their digits.

    Raises
    ------
    ModelFileError
        If something else is among them.
    """
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
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
