"""Model files: a mutant is refused, or it is the same model; text models of other programs round-trip."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import scipy.sparse as sp
from data_files import X, Y
from targets import FileTarget, attempted, require

from maxmargin import (
    KernelMaxMarginClassifier,
    MaxMarginClassifier,
    ModelFileError,
    OnlineMarginClassifier,
    from_liblinear,
    from_libsvm,
    load,
    save,
    to_liblinear,
    to_libsvm,
)

WORDS = (
    b'"F64"', b'"I64"', b'"BOOL"', b'"data_offsets"', b"[0,8]", b"null", b"true", b'{\\"float\\":\\"nan\\"}',
    b'\\"inf\\"', b"[]",
    b"{}", b'\\"OPTIMAL\\"', b'\\"certificates\\":[', b'\\"class\\":', b"[" * 2000,
)  # fmt: skip
TEXT_WORDS = (
    b"svm_type c_svc\n", b"nr_class 3\n", b"nr_class 2147483647\n", b"total_sv 2147483647\n", b"nr_sv 1 1\n",
    b"rho nan\n", b"label 1 1\n", b"SV\n", b"w\n", b"2147483647:1 ", b"2147483648:1 ", b"bias -1\n",
    b"nr_feature 99999999999\n",
    b"kernel_type precomputed\n", b"degree -1\n", b"degree 2147483648\n", b"gamma -1\n",
    b"solver_type MCSVM_CS\n", b"\xff",
)  # fmt: skip


@cache
def models() -> list[Any]:
    """Return one model of each class, and of each kind of labels."""
    three, wide = np.array(["a", "b", "c", "a"]), sp.csr_matrix(X)
    linear = MaxMarginClassifier(random_state=0)
    return [
        linear.fit(X, Y),
        MaxMarginClassifier(np.inf, p=np.inf, random_state=0).fit(X, three),
        MaxMarginClassifier(loss="hinge", class_weight="balanced", random_state=0).fit(wide, Y == 1),
        KernelMaxMarginClassifier(random_state=0).fit(X, Y),
        KernelMaxMarginClassifier(kernel="poly", multi_class="ovo", random_state=0).fit(wide, three),
        OnlineMarginClassifier(random_state=0).partial_fit(X, Y, classes=[0, 1]),
    ]


def contents(write: Callable[[Any, Path], Any], fitted: list[Any]) -> list[bytes]:
    """Return the bytes of the files of models."""
    with tempfile.TemporaryDirectory() as folder:
        path, files = Path(folder) / "model", []
        for model in fitted:
            write(model, path)
            files.append(path.read_bytes())
    return files


def check_sealed(path: Path, k: int, _: Random, originals: list[bytes]) -> str:
    """Require that a file that is read is the original model, to the last byte."""
    model, _ = attempted(lambda: load(path), ModelFileError)
    if model is None:
        return "refused"
    other = path.with_name("again.safetensors")
    save(model, other)
    require(other.read_bytes() in originals, f"a changed file {k} was read as another model")
    return "same model"


def check_text(path: Path, k: int, _: Random, read: Callable[..., Any], write: Callable[..., Any]) -> str:
    """Require that a model that is read predicts its classes, and is the same after it is written and read again."""
    model, _ = attempted(lambda: read(path), ModelFileError)
    if model is None:
        return "refused"
    rows = sp.csr_matrix((2, model.n_features_in_))
    with np.errstate(all="ignore"):  # scores of huge numbers
        require(np.isin(model.predict(rows), model.classes_).all(), "a prediction is no class")
    other = path.with_name("again")
    written, _ = attempted(lambda: [write(model, other)], ModelFileError)
    if written is None:
        return "read"
    again = read(other) if write is not to_libsvm else read(other, n_features=model.n_features_in_)
    require(np.array_equal(again.classes_, model.classes_), "other classes after writing")
    for name in ("coef_", "intercept_", "dual_coef_"):
        # intercepts of liblinear are products with its bias, and coefficients of libsvm are ordered by class
        if hasattr(model, name):
            require(np.array_equal(getattr(again, name), getattr(model, name)), f"other {name} after writing")
    return "read"


def sealed_files() -> list[bytes]:
    """Return the files that `save` writes."""
    return contents(lambda model, path: save(model, path), models())


def text_files(name: str) -> list[bytes]:
    """Return files of the named format; where classes are text, with numbers for them."""
    first, several, _, kernel, pairs, stream = models()
    numbered = {"labels": [1, 2, 3]}
    if name == "liblinear":
        return contents(to_liblinear, [first, stream]) + contents(
            partial(to_liblinear, **numbered), [several]
        )
    return contents(to_libsvm, [kernel]) + contents(partial(to_libsvm, **numbered), [pairs])


def sealed() -> FileTarget:
    """Return the target of model files, whose mutants have another checksum."""
    files = sealed_files()
    return FileTarget("model", ".safetensors", files, partial(check_sealed, originals=files), WORDS)


def texts(
    name: str, read: Callable[..., Any], write: Callable[..., Any], words: Sequence[bytes]
) -> FileTarget:
    """Return the target of a text format."""
    return FileTarget(name, ".txt", text_files(name), partial(check_text, read=read, write=write), words)


TARGETS: dict[str, Callable[[], FileTarget]] = {
    "model": sealed,
    "liblinear": lambda: texts("liblinear", from_liblinear, to_liblinear, TEXT_WORDS),
    "libsvm": lambda: texts("libsvm", from_libsvm, to_libsvm, TEXT_WORDS),
}
