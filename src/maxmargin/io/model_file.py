"""Model files: arrays and plain JSON in the safetensors format. Loading one can run no code."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import re
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

import numpy as np
import scipy.sparse as sp
from safetensors import SafetensorError
from safetensors import numpy as safetensors
from sklearn.feature_extraction import FeatureHasher
from sklearn.utils.validation import check_is_fitted

from ..algorithms import ALGORITHMS, Algorithm
from ..certificates.bounds import Certificate, Certificates, Fingerprint
from ..certificates.verdicts import Inseparable, Undecided
from ..estimators.cv import MaxMarginClassifierCV
from ..estimators.imported import Imported, ImportedKernelClassifier, ImportedLinearClassifier
from ..estimators.kernel import KernelMaxMarginClassifier
from ..estimators.linear import MaxMarginClassifier
from ..estimators.online import OnlineMarginClassifier
from ..fit.kernel_solve import Decomposition
from ..fit.report import Report
from ..kernels.functions import Gaussian, Kernel, Linear, Pairwise, Polynomial, Precomputed, Sigmoid
from ..numerics.files import written_whole
from ..problem.multiclass import named_parts, parts_of
from ..problem.problem import Problem
from ..problem.status import Status

FORMAT = 1  # raised when older versions of maxmargin could not read the file
_NO_SEAL = "0" * 64  # stands where the seal goes while it is computed
_SEAL = re.compile(rb'\\"seal\\":\\"([0-9a-f]{64})\\"')  # JSON text within JSON: quotes are escaped


class ModelFileError(ValueError):
    """A model file that cannot be read, or a model that cannot be written; the message says why."""


Model = (
    MaxMarginClassifier
    | KernelMaxMarginClassifier
    | OnlineMarginClassifier
    | ImportedLinearClassifier
    | ImportedKernelClassifier
)
_CLASSES: dict[str, type[Model]] = {cls.__name__: cls for cls in get_args(Model)}
_KERNELS = {
    kernel.__name__: kernel for kernel in (Linear, Polynomial, Gaussian, Sigmoid, Pairwise, Precomputed)
}


def save(model: Model | MaxMarginClassifierCV, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file, with its certificate and history, or with all that a stream needs to go on.

    The file appears whole or not at all: an old file of that name stays until the new one is complete.

    Parameters
    ----------
    model : MaxMarginClassifier, KernelMaxMarginClassifier, OnlineMarginClassifier or one read from another's file
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
    if isinstance(model, MaxMarginClassifierCV):
        check_is_fitted(model)
        model = model.best_estimator_
    if type(model) not in _CLASSES.values():
        raise ModelFileError(f"save writes models of {', '.join(_CLASSES)}; got {type(model).__name__}.")
    check_is_fitted(model)
    arrays: dict[str, np.ndarray] = {}
    record = {
        "class": type(model).__name__,
        "parameters": parameters_of(model),
        "fitted": _WRITERS[type(model).__name__](model, arrays),
    }
    content = _sealed({name: np.ascontiguousarray(a) for name, a in arrays.items()}, record)
    with written_whole(path) as file:
        file.write(content)


def load(path: str | os.PathLike[str]) -> Model:
    """Read a model that `save` wrote.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    MaxMarginClassifier, KernelMaxMarginClassifier, OnlineMarginClassifier or one read from another's file
        Fitted: it predicts, and its certificate is verified, as before; a stream goes on bit for bit.

    Raises
    ------
    ModelFileError
        If the file is cut short, altered, of a newer version, or no model file.
    OSError
        If there is no such file, or it cannot be read.
    """
    content = Path(path).read_bytes()
    try:
        record = _record_of(path, content)["model"]
        if record["class"] not in _CLASSES:
            raise ModelFileError(
                f"{path}: models of class {record['class']!r} are not known to this version."
            )
        arrays = {name: a.copy() for name, a in safetensors.load(content).items()}  # writable
        cls = _CLASSES[record["class"]]
        model = cls(**_decoded_parameters(cls, record["parameters"]))
        _READERS[cls.__name__](model, record["fitted"], arrays)
    except ModelFileError:
        raise
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, SafetensorError) as error:
        raise ModelFileError(f"{path}: this is no complete model ({error!r}).") from None
    return model


# the file


def _sealed(arrays: dict[str, np.ndarray], record: dict[str, Any]) -> bytes:
    """The bytes of a file; the seal is the SHA-256 of all of them, with zeros in its own place."""
    text = json.dumps(
        {"format": FORMAT, "seal": _NO_SEAL, "model": record}, allow_nan=False, separators=(",", ":")
    )
    content = safetensors.save(arrays, {"maxmargin": text})
    place = _SEAL.search(content)
    assert place is not None
    at = place.start(1)
    return content[:at] + _digest(content, at).encode() + content[at + 64 :]


def _digest(content: bytes, at: int) -> str:
    view = memoryview(content)
    digest = hashlib.sha256(view[:at])
    digest.update(_NO_SEAL.encode())
    digest.update(view[at + 64 :])
    return digest.hexdigest()


def _record_of(path: Any, content: bytes) -> dict[str, Any]:
    """What the header says of the model, if the file is whole and as it was written."""
    if not content:
        raise ModelFileError(f"{path}: the file is empty.")
    end = 8 + int.from_bytes(content[:8], "little")
    if not content[8:].startswith(b'{"__metadata__":{"maxmargin":"'):
        raise ModelFileError(
            f"{path}: this is no model file of maxmargin, or its beginning is damaged; "
            "name one that `save` or `maxmargin fit` wrote."
        )
    if len(content) < end:
        raise ModelFileError(f"{path}: the file is cut short; save or copy it again.")
    try:
        header = json.loads(content[8:end])
        record = json.loads(header.pop("__metadata__")["maxmargin"], object_hook=_decoded)
        number = int(record["format"])
        size = max(array["data_offsets"][1] for array in header.values())
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ModelFileError(
            f"{path}: the file was altered after it was saved; its header cannot be read."
        ) from None
    if number > FORMAT:
        raise ModelFileError(
            f"{path}: the file has format {number}, and this version of maxmargin reads up to {FORMAT}; "
            "install a newer maxmargin."
        )
    if len(content) < end + size:
        raise ModelFileError(f"{path}: the file is cut short; save or copy it again.")
    seal = _SEAL.search(content, 0, end)
    if seal is None or seal[1].decode() != _digest(content, seal.start(1)):
        raise ModelFileError(f"{path}: the file was altered after it was saved; its seal does not fit.")
    return record


# the model, to JSON and back; numbers that JSON does not know are written as {"float": "inf"}


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if callable(value):
        raise ModelFileError(
            f"a model file holds no code, and the kernel is the function {value!r}: use a kernel by name, or "
            'kernel="precomputed" with the matrix that the function makes.'
        )
    raise ModelFileError(f"a model file holds numbers and strings; {value!r} is neither.")


def _decoded(value: dict[str, Any]) -> Any:
    return float(value["float"]) if value.keys() == {"float"} else value


def _record(instance: Any) -> dict[str, Any]:
    """The fields of a dataclass."""
    return {field.name: _plain(getattr(instance, field.name)) for field in dataclasses.fields(instance)}


def parameters_of(model: Any) -> dict[str, Any]:
    """The parameters of a classifier as JSON has them; those that hold code or state are left out."""
    parameters = model.get_params(deep=False)
    if isinstance(model, Imported):
        return {name: _plain(value) for name, value in parameters.items()}
    parameters.pop("callback", None)
    algorithm, seed = (parameters.pop(name) for name in ("algorithm", "random_state"))
    weights, hasher = parameters.pop("class_weight", None), parameters.pop("hasher", None)
    record = {name: _plain(value) for name, value in parameters.items()}
    record["random_state"] = _plain(seed) if isinstance(seed, int | np.integer) else None
    record["algorithm"] = algorithm
    if isinstance(algorithm, Algorithm):
        if ALGORITHMS.get(algorithm.name) is not type(algorithm):
            raise ModelFileError(
                f"a model file cannot name the algorithm {type(algorithm).__name__}, which is not one of "
                f'{", ".join(ALGORITHMS)}; call model.set_params(algorithm="auto") before it is saved.'
            )
        record["algorithm"] = {"name": algorithm.name, "fields": _record(algorithm)}
    if isinstance(algorithm, Decomposition):
        record["algorithm"] = algorithm.name
    if isinstance(model, OnlineMarginClassifier):
        record["hasher"] = _hasher(hasher)
        return record
    record["class_weight"] = weights
    if isinstance(weights, dict):  # keys of JSON objects could only be strings
        record["class_weight"] = [[_plain(key), _plain(value)] for key, value in weights.items()]
    return record


def _hasher(hasher: Any) -> Any:
    if not isinstance(hasher, FeatureHasher):
        return _plain(hasher)
    return {**hasher.get_params(deep=False), "dtype": np.dtype(hasher.dtype).str}


def _decoded_parameters(cls: type[Any], record: dict[str, Any]) -> dict[str, Any]:
    if issubclass(cls, Imported):
        return record
    missing = (
        cls().get_params(deep=False).keys() - record.keys() - {"callback", "norm_power"}
    )  # the latter is new
    if missing:
        raise KeyError(*sorted(missing))
    algorithm, weights, hasher = record["algorithm"], record.get("class_weight"), record.get("hasher")
    if isinstance(algorithm, dict):
        record["algorithm"] = ALGORITHMS[algorithm["name"]](**algorithm["fields"])
    if isinstance(weights, list):
        record["class_weight"] = dict(weights)
    if isinstance(hasher, dict):
        record["hasher"] = FeatureHasher(**{**hasher, "dtype": np.dtype(hasher["dtype"]).type})
    return record


def _fitted(model: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    arrays["coef"] = model.coef_
    return _certified(model, arrays)


def _certified(model: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """What classifiers with a certificate have in common."""
    certificate = model.certificate_
    arrays["intercept"], arrays["class_weight"] = model.intercept_, model.class_weight_
    record: dict[str, Any] = {
        "n_features_in": model.n_features_in_,
        "n_iter": int(model.n_iter_),
        "status": model.status_.value,
        "source": getattr(model, "source_", None),  # where the command line had the data from
    }
    _name_things(model, record, arrays)
    parts = certificate.certificates
    record["one_vs_rest"] = isinstance(certificate, Certificates)
    record["certificates"] = [_certificate(part, f"certificate.{k}", arrays) for k, part in enumerate(parts)]
    # reports and verdicts name a problem by its place
    place: dict[Any, Any] = {None: None}
    if isinstance(certificate, Certificates):
        place |= {name: k for k, name in enumerate(certificate.classes)}
    found = getattr(model, "verdict_", {})
    verdicts = found if isinstance(found, dict) else {None: found}
    proofs = {label: one for label, one in verdicts.items() if isinstance(one, Inseparable | Undecided)}
    record["verdicts"] = [
        {"class": place[label], **_verdict(one, f"verdict.{k}", arrays)}
        for k, (label, one) in enumerate(proofs.items())
    ]
    record["history"] = [
        _record(dataclasses.replace(report, label=place[report.label])) for report in model.history_
    ]
    return record


def _certificate(part: Certificate, name: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    arrays[f"{name}.support"], arrays[f"{name}.dual"] = part.support, part.dual
    return {
        "problem": _record(part.problem),
        "lower": _plain(part.lower),
        "upper": _plain(part.upper),
        "fingerprint": _record(part.fingerprint),
    }


def _certificate_of(
    record: dict[str, Any], name: str, arrays: dict[str, np.ndarray], kernel: Kernel
) -> Certificate:
    return Certificate(
        Problem(**record["problem"]),
        float(record["lower"]),
        float(record["upper"]),
        arrays[f"{name}.support"],
        arrays[f"{name}.dual"],
        Fingerprint(**record["fingerprint"]),
        kernel,
    )


_VERDICT = ("bias", "features", "method", "seconds", "p")  # what both kinds have, besides their classes


def _verdict(verdict: Inseparable | Undecided, name: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """A hard margin's verdict; fractions as text."""
    record = {field: _plain(getattr(verdict, field)) for field in _VERDICT}
    record["classes"] = [_plain(label) for label in verdict.classes]
    if isinstance(verdict, Undecided):
        bounds = {"lo": _plain(verdict.lo), "hi": _plain(verdict.hi), "reason": verdict.reason}
        return record | bounds | {"certificate": _certificate(verdict.certificate, name, arrays)}
    arrays[f"{name}.support"] = verdict.support
    weights = [str(weight) for weight in verdict.weights]
    return record | {"rows": verdict.rows, "radius": _plain(verdict.radius), "weights": weights}


def _verdict_of(record: dict[str, Any], name: str, arrays: dict[str, np.ndarray]) -> Inseparable | Undecided:
    known: dict[str, Any] = {field: record[field] for field in _VERDICT}
    known["classes"] = tuple(record["classes"])
    if "certificate" in record:
        certificate = _certificate_of(record["certificate"], name, arrays, Linear())
        return Undecided(record["lo"], record["hi"], certificate, reason=record["reason"], **known)
    weights = tuple(map(Fraction, record["weights"]))
    return Inseparable(
        arrays[f"{name}.support"], weights, rows=record["rows"], radius=record["radius"], **known
    )


def _kernel_machine(model: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    arrays["support"] = model.support_
    return {
        **_certified(model, arrays),
        **_sums(model, arrays),
        "gamma": _plain(float(model.gamma_)),
        "shape": [int(size) for size in model.shape_fit_],
    }


def _sums(model: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """What machines of kernels have in common."""
    arrays["dual_coef"], arrays["n_support"] = model.dual_coef_, model.n_support_
    vectors = model.support_vectors_
    if sp.issparse(vectors):
        arrays["vectors.data"], arrays["vectors.indices"] = vectors.data, vectors.indices
        arrays["vectors.indptr"] = vectors.indptr
    else:
        arrays["vectors"] = vectors
    kernel: Any = model.kernel_
    fields = {field.name: getattr(kernel, field.name) for field in dataclasses.fields(kernel)}
    fields = {name: dict(value) if name == "parameters" else _plain(value) for name, value in fields.items()}
    return {"kernel": {"class": type(kernel).__name__, "fields": fields}, "multi_class": model.multi_class_}


def _name_things(model: Any, record: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Names of classes and features."""
    classes = model.classes_
    if classes.dtype.kind in "biuf":
        arrays["classes"] = classes
    else:
        if not all(isinstance(name, str) for name in classes):
            raise ModelFileError("a model file holds classes that are numbers, booleans or strings.")
        kind = classes.dtype.str if classes.dtype.kind == "U" else "O"
        record["classes"] = {"dtype": kind, "names": [str(name) for name in classes]}
    if hasattr(model, "feature_names_in_"):
        record["feature_names_in"] = [str(name) for name in model.feature_names_in_]


def _names_restored(model: Any, record: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    if "classes" in record:
        model.classes_ = np.array(record["classes"]["names"], dtype=record["classes"]["dtype"])
    else:
        model.classes_ = arrays["classes"]
    if "feature_names_in" in record:
        model.feature_names_in_ = np.array(record["feature_names_in"], dtype=object)
    if record["source"] is not None:
        model.source_ = record["source"]


def _streamed(model: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """The state of every stream, whole."""
    record = {
        "width": model.coef_.shape[1],
        "n_iter": int(model.n_iter_),
        "source": getattr(model, "source_", None),
    }
    _name_things(model, record, arrays)
    for k, state in enumerate(model.state()):
        arrays |= {f"stream.{k}.{name}": a for name, a in state.items()}
    return record


def _resume(model: Any, record: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    _names_restored(model, record, arrays)
    model.begin(model.classes_, record["width"])
    model.n_iter_ = record["n_iter"]
    if model.hasher is None:
        model.n_features_in_ = record["width"]
    for k, state in enumerate(model.state()):
        for name, a in state.items():
            a[...] = arrays[f"stream.{k}.{name}"]


def _restore(model: Any, record: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    model.coef_ = arrays["coef"]
    _recertify(model, record, arrays, Linear())
    rows = len(model.classes_) if record["one_vs_rest"] else 1
    if model.coef_.shape != (rows, record["n_features_in"]) or model.intercept_.shape != (rows,):
        raise ValueError(f"coefficients have shape {model.coef_.shape}")


def _recertify(model: Any, record: dict[str, Any], arrays: dict[str, np.ndarray], kernel: Kernel) -> None:
    """What classifiers with a certificate have in common; the labels of several problems from their number."""
    _names_restored(model, record, arrays)
    model.intercept_, model.class_weight_ = arrays["intercept"], arrays["class_weight"]
    model.n_features_in_, model.n_iter_ = record["n_features_in"], record["n_iter"]
    model.status_ = Status(record["status"])
    parts = tuple(
        _certificate_of(part, f"certificate.{k}", arrays, kernel)
        for k, part in enumerate(record["certificates"])
    )
    labels = named_parts(parts_of(getattr(model, "multi_class_", "ovr"), len(model.classes_)), model.classes_)
    model.certificate_ = Certificates(tuple(labels), parts) if record["one_vs_rest"] else parts[0]
    model.history_ = [Report(**report) for report in record["history"]]
    for k, report in enumerate(model.history_):
        if report.label is not None:
            model.history_[k] = dataclasses.replace(report, label=labels[report.label])
    names: dict[Any, Any] = {None: None} | dict(enumerate(labels))
    verdicts = {  # files of old have none
        names[verdict["class"]]: _verdict_of(verdict, f"verdict.{k}", arrays)
        for k, verdict in enumerate(record.get("verdicts", []))
    }
    if verdicts:
        model.verdict_ = verdicts if record["one_vs_rest"] else verdicts[None]


def _restore_kernel(model: Any, record: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    model.gamma_, model.shape_fit_ = float(record["gamma"]), tuple(record["shape"])
    model.support_ = arrays["support"]
    kernel = _restore_sums(model, record, arrays)
    _recertify(model, record, arrays, kernel)
    if model.n_support_.sum() != model.support_.size:
        raise ValueError(f"there are {model.support_.size} support vectors")
    model.make_machine(kernel)


def _restore_sums(model: Any, record: dict[str, Any], arrays: dict[str, np.ndarray]) -> Kernel:
    """What machines of kernels have in common; the kernel."""
    fields = record["kernel"]["fields"]
    if "parameters" in fields:
        fields["parameters"] = tuple(fields["parameters"].items())
    # files of old have the parameter alone
    model.multi_class_ = record.get("multi_class") or model.multi_class
    model.n_support_, model.dual_coef_ = arrays["n_support"], arrays["dual_coef"]
    count = int(model.n_support_.sum())
    if "vectors" in arrays:
        model.support_vectors_ = arrays["vectors"]
    else:
        data = tuple(arrays[f"vectors.{name}"] for name in ("data", "indices", "indptr"))
        model.support_vectors_ = sp.csr_matrix(data, shape=(count, record["n_features_in"]))
    if model.dual_coef_.shape[1] != count:
        raise ValueError(f"dual coefficients have shape {model.dual_coef_.shape}")
    return _KERNELS[record["kernel"]["class"]](**fields)


def _imported(model: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """What models of other programs have in common."""
    arrays["intercept"], arrays["order"] = model.intercept_, np.searchsorted(model.classes_, model.labels_)
    record: dict[str, Any] = {
        "n_features_in": model.n_features_in_,
        "origin": model.origin_,
        "source": getattr(model, "source_", None),
    }
    _name_things(model, record, arrays)
    return record


def _restore_imported(model: Any, record: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    _names_restored(model, record, arrays)
    model.keep(model.classes_[arrays["order"]], record["n_features_in"], record["origin"])
    model.intercept_ = arrays["intercept"]


def _imported_linear(model: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    arrays["coef"] = model.coef_
    return _imported(model, arrays)


def _restore_imported_linear(model: Any, record: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    _restore_imported(model, record, arrays)
    model.coef_ = arrays["coef"]
    if model.coef_.shape != (model.intercept_.size, record["n_features_in"]):
        raise ValueError(f"coefficients have shape {model.coef_.shape}")


def _imported_kernel(model: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    return {**_imported(model, arrays), **_sums(model, arrays)}


def _restore_imported_kernel(model: Any, record: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    _restore_imported(model, record, arrays)
    model.make_machine(_restore_sums(model, record, arrays))


_WRITERS = {
    "MaxMarginClassifier": _fitted,
    "KernelMaxMarginClassifier": _kernel_machine,
    "OnlineMarginClassifier": _streamed,
    "ImportedLinearClassifier": _imported_linear,
    "ImportedKernelClassifier": _imported_kernel,
}
_READERS = {
    "MaxMarginClassifier": _restore,
    "KernelMaxMarginClassifier": _restore_kernel,
    "OnlineMarginClassifier": _resume,
    "ImportedLinearClassifier": _restore_imported_linear,
    "ImportedKernelClassifier": _restore_imported_kernel,
}
