"""Compiled functions, and records with methods that compiled code calls. No other module imports Numba.

A *record* is a ``NamedTuple`` whose ordinary Python methods compiled code may call. The same source is compiled, or
interpreted with ``NUMBA_DISABLE_JIT=1``. Numba is imported at the first call of a compiled function.

Numba stores compiled code beside the sources, in the user's cache folder, or in ``NUMBA_CACHE_DIR``. It compares the
file of the function only; so the name under which code is stored contains the records that the function is called
with, and a digest of all sources on which it may depend: those of this folder, and of the folders of the function and
of the records. Constants are compiled in: code reads those of these folders only. Code for functions or records
outside of this package is not stored.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import pickle
import time
import warnings
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from threading import Lock
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

_T = TypeVar("_T", bound=type)
_ENGINE = Path(__file__).resolve().parent
_INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
# _nrt=False is the option of `numba.extending.register_jitable` against memory management: compiled code allocates no
# arrays and counts no references, which would take 2 to 14 times the arithmetic of a sweep. Wrappers for calls from C
# would take a quarter more of compilation. fastmath=False keeps the order of sums; without an explicit value, functions
# would inherit that of their first caller.
_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "fastmath": False,
    "_nrt": False,
    "no_cfunc_wrapper": True,
}
_PENDING: list[Callable[[], Any]] = []  # what Numba is told before it compiles the next function
_METHODS: set[str] = set()  # names of the methods of all records
_LOCK = Lock()
# Reasons for which compiled code is not stored; a process warns of the first one only.
_IN_MEMORY: list[object] = []

_COMPILATION = {"seconds": 0.0, "running": 0.0, "began": 0.0}


def seconds_compiled() -> float:
    """Return the seconds that this process has spent on compiling, loading from disk apart."""
    return _COMPILATION["seconds"]


def _observe() -> None:
    """Let Numba report when it compiles a function; it compiles in one thread at a time."""
    from numba.core import event

    class Clock(event.Listener):
        def on_start(self, event: Any) -> None:
            if not _COMPILATION["running"]:
                _COMPILATION["began"] = time.perf_counter()
            _COMPILATION["running"] += 1.0  # a function, and those that it calls

        def on_end(self, event: Any) -> None:
            _COMPILATION["running"] -= 1.0
            if not _COMPILATION["running"]:
                _COMPILATION["seconds"] += time.perf_counter() - _COMPILATION["began"]

    event.register("numba:compile", Clock())


_PENDING.append(_observe)


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that compiles a function at its first call, and stores the result on disk.

    Compiled functions may call each other. Where code cannot be stored or read, every process compiles it in memory,
    with a RuntimeWarning at the first time.

    Parameters
    ----------
    **options
        Options of `numba.njit` that replace the defaults of this module.
    """
    options = _OPTIONS | options

    def decorate(function: Any) -> Callable[..., Any]:
        if _INTERPRETED:
            return function
        _digest(Path(inspect.getfile(function)).parent)  # before a later edit
        dispatchers: dict[tuple[type, ...], Any] = {}

        @wraps(function)
        def call(*args: Any) -> Any:
            records = tuple([type(a) for a in args if isinstance(a, tuple)])
            if _PENDING or records not in dispatchers:
                with _LOCK:
                    while _PENDING:
                        _PENDING.pop()()
                    if records not in dispatchers:
                        dispatchers[records] = _dispatcher(function, options, records)
            try:
                return dispatchers[records](*args)
            except (OSError, EOFError, pickle.UnpicklingError) as error:  # a full disk, a damaged file
                dispatchers[records] = _in_memory(function, options, error)
                return dispatchers[records](*args)

        def register() -> None:
            from numba import extending

            expose: Any = extending.overload
            expose(call, jit_options=options, strict=False)(lambda *args: function)

        _PENDING.append(register)
        return call

    return decorate


def record(cls: _T) -> _T:
    """Let compiled code call the public methods of a NamedTuple class; return the class.

    Methods of one name have the same parameters in all records.
    """
    _digest(Path(inspect.getfile(cls)).parent)  # before a later edit
    for name, method in vars(cls).items():
        if inspect.isfunction(method) and name[0] != "_" and name not in _METHODS:
            _METHODS.add(name)
            _expose(name, inspect.signature(method))
    return cls


def _expose(name: str, signature: inspect.Signature) -> None:
    """Have Numba compile a call self.name(...) as the method of the class of `self`."""

    def implementation(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.instance_class, name, None)

    def register() -> None:
        from numba import extending, types

        expose: Any = extending.overload_method
        expose(types.BaseNamedTuple, name, jit_options={"forceinline": True, **_OPTIONS})(implementation)

    implementation.__signature__ = signature  # type: ignore[attr-defined]
    _PENDING.append(register)


def _dispatcher(function: Any, options: dict[str, Any], records: tuple[type, ...]) -> Any:
    """Return Numba's function for these records, with its code stored if all of its sources are of this package."""
    import numba

    folders = {_ENGINE, *(Path(inspect.getfile(one)).parent for one in (function, *records))}
    if not all(folder.is_relative_to(_ENGINE.parent) for folder in folders):
        return numba.njit(nogil=True, **options)(function)
    named = FunctionType(function.__code__, function.__globals__)
    names = (one.__qualname__ for one in (function, *records))
    named.__qualname__ = "-".join([*names, *map(_digest, sorted(folders))])
    try:
        return numba.njit(nogil=True, cache=True, **options)(named)
    except RuntimeError as error:  # Numba: "cannot cache function ...: no locator available for file ..."
        return _in_memory(function, options, error)


def _in_memory(function: Any, options: dict[str, Any], reason: object) -> Any:
    """Return Numba's function whose code is not stored; warn the first time in a process."""
    import numba

    _IN_MEMORY.append(reason)
    if len(_IN_MEMORY) == 1:
        warnings.warn(
            f"Compiled code cannot be stored ({reason}): every process compiles it again, which may take minutes. "
            "Set the environment variable NUMBA_CACHE_DIR to a folder that can be written.",
            RuntimeWarning,
            stacklevel=3,
        )
    return numba.njit(nogil=True, **options)(function)


@cache
def _digest(folder: Path) -> str:
    """Return a digest of the Python files of a folder as of the first call for it."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


class _SharedMemory:
    """An array interface to the memory of another array, and a reference that keeps this array alive."""

    def __init__(self, owner: np.ndarray, interface: dict[str, Any]) -> None:
        self.owner, self.__array_interface__ = owner, interface


def writable(a: np.ndarray) -> np.ndarray:
    """Return a view of an array that is marked as writable, although compiled code never writes to it.

    To Numba, read-only arrays are another type, for which functions would be compiled a second time. Arrays that are
    empty or not aligned are copied.
    """
    a = np.asarray(a)  # a memory map becomes an ordinary array
    if a.flags.writeable and a.flags.aligned:
        return a
    if not a.flags.aligned or not a.size:
        return a.copy()
    interface = dict(a.__array_interface__)
    interface["data"] = (interface["data"][0], False)
    return np.asarray(_SharedMemory(a, interface))
