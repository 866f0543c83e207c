"""Mutants of files of every format: they are refused in a sentence, or are what they seem by every way of reading."""

from __future__ import annotations

import gzip
import io
import re
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import scipy.sparse as sp
from command import run
from mutants import mutated

from maxmargin import (
    KernelMaxMarginClassifier,
    MaxMarginClassifier,
    OnlineMarginClassifier,
    load,
    save,
)

LONGEST = 1500  # characters of a message: the files and their numbers are short
SVMLIGHT = (
    b"1 1:0.5 3:-2.25 4:1e-3\n-1 2:7 4:12345678901234567\n1 qid:3 1:1 # a comment\n# another\n-1 3:2.5e2\n",
    b"3 0:1 1:2\n2 1:0.1\n0 2:.5\n",
    b"\xef\xbb\xbf+1 1:1.0\r\n-1 2:-1.0\r\n\r\n",
    b"1.0 10:1\n0.0 20:1 2147483647:3\n",
)
HEADED = (
    b"a,b,label\n1,2.5,yes\n-3,4e2,no\n0,.5,yes\n",
    b'"a, b";class\n"1";"x;y"\n2;z\n1.5;"x;y"\n',
    b"\xef\xbb\xbfflag,size,y\r\nTrue,1,0\r\nFalse,2,1\r\n",
    b"a\tb\tb\ty\n1\t2\t3\t1\n4\t5\t6\t2\n",
)
HEADLESS = (
    b"5.1,3.5,1.4,setosa\n4.9,3.0,1.4,setosa\n6.2,2.9,4.3,versicolor\n",
    b"1 2 3 0\n4  5\t6 1\n7 8 9 0\n",
    b"1;2;1\n3;4;0\n5;6;1\n",
)
TEXT_WORDS = (
    b"qid:1", b" # ", b"1:", b":1", b"\r\n", b"\n\n", b"\xef\xbb\xbf", b"\xff\xfe", b'"', b'""', b'"\n', b",,", b";",
    b"\t", b"True", b"FALSE", b"NaN", b"NA", b"null", b"label", b"\xc3\xa9", b"\xe2\x80\xa8", b"\x1c", b"\x85", b"\0",
)  # fmt: skip
X = np.array([[1.0, 2.0, 0.0], [0.5, -1.0, 3.0], [0.0, 0.0, 7.0], [4.0, 1.0, 1.0]])
Y = np.array([0, 1, 1, 0])
ARRAY_WORDS = (
    b"'descr': '<f8'", b"'<f4'", b"'|O'", b"'>i2'", b"'<U9'", b"'<M8[ns]'", b"'<c16'", b"'|V8'", b"'<f2'", b"'|b1'",
    b"'<f16'", b"True", b"(4, 3)", b"(0,)", b"()", b"(3, 9223372036854775807)", b"(-1, 2)", b"(99999, 99999)",
    b"\x93NUMPY",
    b"[('a', '<f8')]", b"'shape': ", b"(" * 300, b"PK\x01\x02", b"PK\x05\x06", b"X.npy", b"indptr.npy",
)  # fmt: skip
COLUMNAR_WORDS = (b"PAR1", b"ARROW1", b"FEA1", b"\xff\xff\xff\xff", b"pandas", b"label", b"b")
MODEL_WORDS = (
    b'"F64"', b'"I64"', b'"BOOL"', b'"data_offsets"', b"[0,8]", b"null", b"true", b'{\\"float\\":\\"nan\\"}',
    b'\\"inf\\"', b"[]",
    b"{}", b'\\"OPTIMAL\\"', b'\\"certificates\\":[', b'\\"class\\":', b"[" * 2000,
)  # fmt: skip


class Wrong(Exception):
    """A wrong answer, in words."""


def require(holds: Any, words: str) -> None:
    """Raise Wrong unless the condition holds."""
    if not holds:
        raise Wrong(words)


@dataclass(frozen=True)
class FileTarget:
    """Mutants of files of one format; `check` takes the path of a mutant and a generator, and returns the outcome."""

    name: str
    suffix: str
    originals: Sequence[bytes]
    check: Callable[[Path, Random], str]
    words: Sequence[bytes] = ()

    def trial(self, rng: Random, folder: Path) -> str:
        """Read a mutant."""
        path = folder / f"input{self.suffix}"
        path.write_bytes(mutated(rng.choice(self.originals), rng, self.words, self.originals))
        return self.check(path, rng)


def attempted(call: Callable[[], Any]) -> tuple[Any, str | None]:
    """Return the result of a call, or the sentence of the error that the package raises."""
    try:
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # of label columns without names
            return call(), None
    except ValueError as error:
        text = str(error)
        clear = len(text) <= LONGEST and not re.search(r"Traceback|[\0\x1b]", text)
        if not clear or not text.endswith((".", ")", "]")):
            raise Wrong(f"no clear sentence: {text[: 2 * LONGEST]!r}") from error
        return None, text


def npz(save: Callable[..., Any] = np.savez, **arrays: Any) -> bytes:
    """Return the bytes of an archive."""
    file = io.BytesIO()
    save(file, **arrays)
    return file.getvalue()


def archives() -> list[bytes]:
    """Return archives of dense and of sparse rows."""
    sparse = sp.csr_matrix(X)
    arrays = {"data": sparse.data, "indices": sparse.indices, "indptr": sparse.indptr, "shape": sparse.shape}
    return [
        npz(X=X, y=Y),
        npz(np.savez_compressed, X=X.astype(np.float32), y=["a", "b", "b", "a"]),
        npz(y=Y, **arrays),
        npz(y=Y, format=b"csc", **(arrays | {"shape": (4, 3)})),
        npz(X=X.astype(int), y=Y.astype(float)),
    ]


def columnar() -> dict[str, list[bytes]]:
    """Return Parquet and Arrow files."""
    import pyarrow as pa
    from pyarrow import parquet

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    pa.set_memory_pool(pa.system_memory_pool())  # the others reserve memory, and there is a limit
    tables = [
        pa.table({"a": X[:, 0], "b": X[:, 1], "label": ["x", "y", "y", "x"]}),
        pa.table({"a": X[:, 0].astype(np.float32), "b": [True, False, True, None], "y": Y}),
        pa.table({"a": [1, 2, 3, 2**60], "label": pa.array(["u", "v", "u", "u"]).dictionary_encode()}),
    ]
    files: dict[str, list[bytes]] = {"parquet": [], "arrow": []}
    for table in tables:
        for options in ({}, {"compression": "none", "use_dictionary": False}):
            sink = io.BytesIO()
            parquet.write_table(table, sink, **options)
            files["parquet"].append(sink.getvalue())
        for kind in (pa.ipc.new_file, pa.ipc.new_stream):
            sink = io.BytesIO()
            with kind(sink, table.schema) as writer:
                writer.write_table(table)
            files["arrow"].append(sink.getvalue())
    return files


def check_data(path: Path, rng: Random) -> str:
    """Require that a fit of the file and one of the command have the same rows and classes, or are both refused."""
    parameters = {"loss": "hinge", "max_iter": 3, "random_state": 0}
    model = MaxMarginClassifier(memory="1MB", cache_dir=path.parent / "caches", **parameters)
    found, why = (None, "an archive") if path.suffix == ".npz" else attempted(lambda: model.fit(path))
    options = ("--max-iter", 3, "--loss", "hinge", "--seed", 0)
    done = run("fit", path, "-o", path.with_name("result"), *options)
    require(done.exit_code in (0, 2, 3), f"exit code {done.exit_code}")
    if path.suffix != ".npz":
        # the command refuses labels that are fractions
        require((done.exit_code == 2) == (why is not None) or "labels" in done.stderr, f"{why} {done.stderr}")
    if done.exit_code == 2 or found is None:
        return f"exit code {done.exit_code}"
    other = load(path.with_name("result"))
    require(other.classes_.tolist() == found.classes_.tolist(), "other classes")
    same = (
        other.certificate_.certificates[0].fingerprint.rows
        == found.certificate_.certificates[0].fingerprint.rows
    )
    require(same and other.coef_.shape == found.coef_.shape, "other rows")
    return "read"


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


def contents(write: Callable[[Any, Path], Any], *fitted: Any) -> list[bytes]:
    """Return the bytes of the files of models."""
    with tempfile.TemporaryDirectory() as folder:
        path, files = Path(folder) / "model", []
        for model in fitted:
            write(model, path)
            files.append(path.read_bytes())
    return files


def check_model(path: Path, rng: Random, originals: list[bytes]) -> str:
    """Require that a file that is read is the original model, to the last byte; commands end in words."""
    model, _ = attempted(lambda: load(path))
    if model is None:
        data = path.with_name("rows.svm")
        data.write_bytes(SVMLIGHT[0])
        require(run("predict", path, data).exit_code == 2, "a refused model predicts")
        return "refused"
    other = path.with_name("again.safetensors")
    save(model, other)
    require(other.read_bytes() in originals, "a changed file was read as another model")
    return "same model"


def sealed() -> FileTarget:
    """Return the target of model files."""
    files = contents(save, *models())
    return FileTarget("model", ".safetensors", files, partial(check_model, originals=files), MODEL_WORDS)


TARGETS: dict[str, Callable[[], FileTarget]] = {
    "svmlight": lambda: FileTarget("svmlight", ".svm", SVMLIGHT, check_data, TEXT_WORDS),
    "svmlight-gzip": lambda: FileTarget(
        "svmlight-gzip", ".svm.gz", [*map(gzip.compress, SVMLIGHT)], check_data
    ),
    "csv": lambda: FileTarget("csv", ".csv", HEADED + HEADLESS, check_data, TEXT_WORDS),
    "npz": lambda: FileTarget("npz", ".npz", archives(), check_data, ARRAY_WORDS),
    "model": sealed,
}
if find_spec("pyarrow") is not None:
    TARGETS |= {
        kind: lambda kind=kind: FileTarget(kind, f".{kind}", columnar()[kind], check_data, COLUMNAR_WORDS)
        for kind in ("parquet", "arrow")
    }
