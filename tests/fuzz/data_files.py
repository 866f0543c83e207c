"""Data files: what a reader accepts is what the file says, and the readers of blocks agree."""

from __future__ import annotations

import gzip
import io
import shutil
import warnings
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import scipy.sparse as sp
from targets import FileTarget, attempted, require

from maxmargin.readers import DataError, DataNotice, Expected, read
from maxmargin.readers.model_rows import RowsForModel
from maxmargin.readers.row_cache import open_rows

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
# One mutant of so many is read in blocks and from a cache as well, which takes ten times as long.
IN_BLOCKS, FROM_CACHE = 8, 40
OPTIONS: tuple[dict[str, Any], ...] = (
    {}, {}, {}, {}, {"n_features": 3}, {"header": False}, {"header": True}, {"delimiter": ","}, {"delimiter": " "},
    {"label": "label"}, {"features": ["b", "a"]}, {"drop": ["a"]}, {"use": ["b"]},
)  # fmt: skip


def npy(a: Any, version: tuple[int, int] = (1, 0)) -> bytes:
    """Return the bytes of a .npy file."""
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(a), version)
    return file.getvalue()


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


def in_archive(content: bytes) -> bytes:
    """Return an archive whose array X is a mutant, with its true checksum."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("X.npy", content)
        archive.writestr("y.npy", npy(Y))
    return file.getvalue()


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


def check_table(path: Path, _: int, rng: Random, options: tuple[dict[str, Any], ...] = ({},)) -> str:
    """Read a file whole, in blocks and from a cache; what is read must be usable, and the same."""
    chosen = rng.choice(options)
    with warnings.catch_warnings():
        ignore_notices()
        table, refusal = attempted(lambda: read(path, **chosen), DataError)
        if table is not None:
            check_rows(table.X, table.y)
            if path.suffix == ".svm":
                check_svmlight(path, table)
        if path.suffix != ".npz" and rng.randrange(IN_BLOCKS) == 0:
            check_blocks(path, chosen, table, refusal)
        if path.suffix != ".npz" and not rng.randrange(FROM_CACHE) and "features" not in chosen:
            check_cache(path, chosen, table, refusal)
    return "refused" if table is None else "read"


def ignore_notices() -> None:
    """Let readers guess, and NumPy read headers of Python 2."""
    warnings.simplefilter("ignore", DataNotice)
    warnings.filterwarnings("ignore", "Data type alias")
    warnings.filterwarnings("ignore", "Reading `.npy` or `.npz` file required additional header parsing")


def check_rows(X: Any, y: Any) -> None:
    """Require rows of finite numbers, and a label for each if there are any."""
    values = X.data if sp.issparse(X) else X
    require(values.dtype in (np.float32, np.float64) and np.isfinite(values).all(), "a number is not finite")
    require(min(X.shape) > 0, "no rows or no columns")
    require(y is None or y.shape == X.shape[:1], "not one label for each row")
    if sp.issparse(X):
        X.check_format(full_check=True)


def check_svmlight(path: Path, table: Any) -> None:
    """Require the numbers that Python reads."""
    rows, labels = [], []
    for line in path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        words = line.split(b"#", 1)[0].split()
        if words:
            labels.append(float(words[0]))
            entries = (word.split(b":") for word in words[1:] if not word.startswith(b"qid"))
            rows.append({int(index) - table.first_index: float(value) for index, value in entries})
    require(table.y.tolist() == labels, "a label is not that of the file")
    for row, entries in zip(table.X, rows, strict=True):
        found = dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))
        require(found == entries, f"row {entries} became {found}")


def check_blocks(path: Path, options: dict[str, Any], table: Any, refusal: str | None) -> None:
    """Require that `RowsForModel` reads the rows of `read`, where both are for a model of this width."""
    width = 3 if table is None else table.X.shape[1]
    expected = options if "features" in options else options | {"n_features": width}
    whole, refusal = attempted(lambda: read(path, **expected), DataError)
    found, other = attempted(lambda: block_rows(RowsForModel(path, Expected(**expected))), DataError)
    require((whole is None) == (found is None), f"whole: {refusal}; in blocks: {other}")
    if whole is not None:
        require(_same(whole.X, found[0]), "blocks have other rows")
        require(whole.y is None or whole.y.tolist() == found[1].tolist(), "blocks have other labels")


def block_rows(rows: RowsForModel) -> tuple[Any, Any]:
    """Return all rows, dense, and their labels."""
    parts, numbers = zip(*rows.blocks(), strict=True)
    X = (sp.vstack if sp.issparse(parts[0]) else np.vstack)(parts)
    return X, rows.labels()[np.concatenate(numbers)] if rows.has_labels else None


def check_cache(path: Path, options: dict[str, Any], table: Any, refusal: str | None) -> None:
    """Require that the cache of `open_rows` has the rows of `read`; it needs labels, which a model does not."""
    cache = path.parent / "cache"
    try:
        stored, other = attempted(lambda: open_rows(path, cache_dir=cache, **options), DataError)
        if table is None or stored is None:
            labelled = table is None or (table.y is not None and "n_features" not in options)
            require((table is None) == (stored is None) or not labelled, f"whole: {refusal}; cache: {other}")
            return
        require(_same(table.X, stored.rows(0, stored.codes.size)), "the cache has other rows")
        if table.y is not None:
            labels = stored.classes[stored.codes]
            require(table.y.tolist() == labels.tolist(), "the cache has other labels")
    finally:
        shutil.rmtree(cache, ignore_errors=True)


def _same(X: Any, Z: Any) -> bool:
    """Return whether two matrices hold the same numbers."""
    if X.shape != Z.shape:
        return False
    if sp.issparse(X):
        return (sp.csr_matrix(X) != sp.csr_matrix(Z)).nnz == 0
    return np.array_equal(X, Z)


def check_array(path: Path, _: int, rng: Random) -> str:
    """Read rows, or labels, from a .npy file."""
    other = path.with_name("other.npy")
    other.write_bytes(npy(Y if rng.random() < 0.5 else X))
    rows, labels = (path, other) if rng.random() < 0.7 else (other, path)
    expected = Expected(n_features=3) if rng.random() < 0.8 else Expected()
    with warnings.catch_warnings():
        ignore_notices()
        found, _ = attempted(lambda: block_rows(RowsForModel(rows, expected, labels)), DataError)
    if found is None:
        return "refused"
    check_rows(*found)
    return "read"


def npys() -> list[bytes]:
    """Return .npy files of rows and of labels."""
    arrays = (X, X.astype(int), Y, ["a", "b", "b", "a"])
    return [npy(X.astype(np.float32), (2, 0)), *map(npy, arrays)]


TABLE = partial(check_table, options=OPTIONS)
TARGETS: dict[str, Callable[[], FileTarget]] = {
    "svmlight": lambda: FileTarget("svmlight", ".svm", SVMLIGHT, check_table, TEXT_WORDS),
    "svmlight-gzip": lambda: FileTarget(
        "svmlight-gzip", ".svm.gz", [*map(gzip.compress, SVMLIGHT)], check_table
    ),
    "csv": lambda: FileTarget("csv", ".csv", HEADED, TABLE, TEXT_WORDS),
    "no-header": lambda: FileTarget("no-header", ".data", HEADLESS, TABLE, TEXT_WORDS),
    "npz": lambda: FileTarget("npz", ".npz", archives(), check_table, ARRAY_WORDS),
    "npz-array": lambda: FileTarget("npz-array", ".npz", npys(), check_table, ARRAY_WORDS, in_archive),
    "npy": lambda: FileTarget("npy", ".npy", npys(), check_array, ARRAY_WORDS),
}
TARGETS |= {
    kind: lambda kind=kind: FileTarget(kind, f".{kind}", columnar()[kind], check_table, COLUMNAR_WORDS)
    for kind in ("parquet", "arrow")
}
