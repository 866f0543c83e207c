"""Compiled functions, records with compiled methods, and their cache on disk. No other module imports Numba.

A *record* is a ``NamedTuple`` whose ordinary Python methods compiled code may call. The same source is compiled, or
interpreted with ``NUMBA_DISABLE_JIT=1``.

Compiled code is cached on disk. The key of a compiled function holds digests of every file that its code depends on:
its own file, all files of this folder, the files of the records it is called with, and the files of the compiled
functions that it, or a method of these records, calls. So an edit in an algorithm's file recompiles the functions of
this file and their callers, and an edit in this folder recompiles all functions. Constants are compiled in: a compiled
function reads them from its own file or from this folder only.

Private parts of Numba that this module uses: ``_nrt``, ``_index_key``, ``load_overload``, ``BaseNamedTuple``,
``IndexDataCacheFile``, ``CompileResultCacheImpl`` with its locators, ``NullCache``.
"""

from __future__ import annotations

import hashlib
import inspect
import pickle
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numba
import numpy as np
from numba.core import config, event, types
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, NullCache
from numba.extending import overload_method

from ..numerics.files import written_whole

_T = TypeVar("_T", bound=type)
_PACKAGE = Path(__file__).resolve().parents[1]
_ENGINE_FILES = [str(path) for path in sorted(Path(__file__).parent.glob("*.py"))]
_SIGNATURES: dict[str, inspect.Signature] = {}  # of the methods of all records, by name
# Reasons for which compiled code could not be saved; a process warns of the first one only.
_NOT_SAVED: list[object] = []
# `_Compilation.purpose` where compiled code is not saved.
_THIS_PROCESS = "for this process only: no cache folder can be written, set NUMBA_CACHE_DIR"

# _nrt=False compiles without reference counts, which survive inlining and cost up to ten times the arithmetic. As a
# consequence, compiled code allocates no arrays. Wrappers for calls from C are not needed; compiling without them takes
# four fifths of the time. fastmath=False keeps sums and products in the order of the source unless a function sets it;
# without an explicit value, a function would inherit the value of its first caller.
_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "_nrt": False,
    "no_cfunc_wrapper": True,
    "fastmath": False,
}


class _Compilation(event.Listener):
    """Compilation in this process; functions that are loaded from the cache are not compiled.

    Attributes
    ----------
    seconds : float
        Up to the end of the last outermost function.
    running : int
        Number of functions that are being compiled: one, and those that it calls; Numba compiles in one thread at a
        time.
    purpose : str
        What compiled code serves, as messages have it.
    """

    seconds, running, _began, purpose = 0.0, 0, 0.0, "for this machine, once"

    def on_start(self, event: Any) -> None:
        self._began = self._began if self.running else time.perf_counter()
        self.running += 1

    def on_end(self, event: Any) -> None:
        self.running -= 1
        self.seconds += 0.0 if self.running else time.perf_counter() - self._began


COMPILATION = _Compilation()
event.register("numba:compile", COMPILATION)


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that compiles a function at its first call, and caches the result on disk.

    Where no cache folder can be written, code that was saved in one of them before is loaded. Other functions are
    compiled in memory by every process, with a RuntimeWarning at the first compilation.

    Parameters
    ----------
    **options
        Options of `numba.njit` that replace the defaults of this module.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        if config.DISABLE_JIT:  # type: ignore[attr-defined]
            return function
        _digest(inspect.getfile(function))  # cached before a later edit of the file
        dispatcher: Any = numba.njit(nogil=True, **(_OPTIONS | options))(function)
        try:
            dispatcher._cache = _SourceAwareCache(function)
        except RuntimeError as error:  # Numba: "cannot cache function ...: no locator available for file ..."
            dispatcher._cache = _NoCache(error)
        return dispatcher

    return decorate


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


def record(cls: _T) -> _T:
    """Register the public methods of a NamedTuple class, so that compiled code can call them; return the class.

    Raises
    ------
    TypeError
        If another record has a method of the same name with other parameters: each name has one signature.
    """
    methods = {
        name: method
        for name, method in vars(cls).items()
        if inspect.isfunction(method) and not name.startswith("_")
    }
    _digest(inspect.getfile(cls))  # cached before a later edit of the file
    cls._compiled = methods  # type: ignore[attr-defined]
    for name, method in methods.items():
        signature = inspect.signature(method)
        if name not in _SIGNATURES:
            _SIGNATURES[name] = signature
            _expose(name, signature)
        elif list(_SIGNATURES[name].parameters) != list(signature.parameters):
            raise TypeError(f"{cls.__name__}.{name}{signature}: elsewhere it is {name}{_SIGNATURES[name]}")
    return cls


def _expose(name: str, signature: inspect.Signature) -> None:
    """Register a method name with Numba: a call self.name(...) compiles the method of the class of `self`."""

    def implementation(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.instance_class, "_compiled", {}).get(name)

    implementation.__name__ = name
    implementation.__signature__ = signature  # type: ignore[attr-defined]
    expose: Any = overload_method
    expose(types.BaseNamedTuple, name, jit_options={"forceinline": True, **_OPTIONS})(implementation)


class _CacheFile(IndexDataCacheFile):
    """Index of the files of compiled code of one function, where each file is named by the digest of its key.

    Numba names the files by consecutive numbers. Two processes that compile at the same time may then take the same
    number for two signatures, and the code of one signature is run for the other. With names by key, the worst that
    can happen is that the index loses an entry, whose code is then compiled again.

    Code is saved with its digest: damaged code could end the process. Files are written as all others of this package,
    so that a process that is killed leaves nothing that stays.
    """

    def save(self, key: Any, data: Any) -> None:
        name = f"{self._index_name[:-4]}.{hashlib.sha256(repr(key).encode()).hexdigest()[:24]}.nbc"
        code = self._dump(data)
        self._save_data(name, (hashlib.sha256(code).hexdigest(), code))
        overloads = self._load_index()
        overloads[key] = name
        self._save_index(overloads)

    def _load_data(self, name: str) -> Any:
        digest, code = super()._load_data(name)
        if hashlib.sha256(code).hexdigest() != digest:
            raise ValueError(f"{name} is damaged")
        return pickle.loads(code)

    def _open_for_write(self, filepath: str) -> Any:
        return written_whole(filepath)


class _ReadOnly:
    """Locator of a cache folder that can be read but not written; saving there raises OSError."""

    def ensure_cache_path(self) -> None:
        """Raise FileNotFoundError in a folder without compiled code: Numba then tries the next locator."""
        if not any(Path(self.get_cache_path()).glob("*.nbi")):  # type: ignore[attr-defined]
            raise FileNotFoundError("no compiled code")
        COMPILATION.purpose = _THIS_PROCESS


class _Locations(CompileResultCacheImpl):
    """The first of Numba's cache folders that can be written; where there is none, the first with compiled code."""

    _locator_classes: ClassVar[Any] = [
        *CompileResultCacheImpl._locator_classes,
        *(type(cls.__name__, (_ReadOnly, cls), {}) for cls in CompileResultCacheImpl._locator_classes),
    ]


class _NoCache(NullCache):
    """Cache of a function for which no folder was found: saving only warns."""

    def __init__(self, reason: object) -> None:
        self._reason = reason
        COMPILATION.purpose = _THIS_PROCESS

    def save_overload(self, sig: Any, cres: Any) -> None:
        _warn_not_saved(self._reason)


def _warn_not_saved(reason: object) -> None:
    """Record the reason for which compiled code is not saved; warn the first time in a process."""
    _NOT_SAVED.append(reason)
    COMPILATION.purpose = _THIS_PROCESS
    if len(_NOT_SAVED) == 1:
        warnings.warn(
            f"Compiled code cannot be saved ({reason}): every process compiles it again, which may take minutes. "
            "Set the environment variable NUMBA_CACHE_DIR to a folder that can be written.",
            RuntimeWarning,
            stacklevel=2,
        )


class _SourceAwareCache(FunctionCache):
    """Cache of compiled code that is invalidated by an edit in any source file that the code depends on.

    Numba's own cache checks the file of the function only. Code compiled for records of files outside this package has
    a separate index for each set of such files: an index can be loaded only where all of its records can be imported,
    and a rule that a user defines in a script can be imported by this script only.

    An OSError (no permission, a full disk) does not stop a compilation, nor does a damaged file.
    """

    _impl_class = _Locations

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._select_index(())

    def _select_index(self, sig: Any) -> None:
        """Select the index for the records of a signature; Numba loads and saves one signature at a time."""
        location = self._impl
        files = map(inspect.getfile, _records(sig))
        others = sorted({file for file in files if not Path(file).is_relative_to(_PACKAGE)})
        base = location.filename_base
        if others:
            base += "-" + hashlib.sha256("\n".join(others).encode()).hexdigest()[:12]
        self._cache_file = _CacheFile(self._cache_path, base, location.locator.get_source_stamp())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        self._select_index(sig)
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a damaged file may raise any; or a record class in the index no longer exists
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        self._select_index(sig)
        try:
            self._save(sig, data)
        except OSError as error:
            _warn_not_saved(error)

    def _save(self, sig: Any, data: Any) -> None:
        """Save compiled code; clear the index first where it cannot be loaded."""
        try:
            super().save_overload(sig, data)
        except OSError:
            raise
        except Exception:  # Numba loads the old index before it writes the new one
            self.flush()
            super().save_overload(sig, data)

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        """Return Numba's key with the digests of all source files that the code for this signature depends on."""
        files = {*_ENGINE_FILES, *_source_files(self._py_func)}
        for record_class in _records(sig):
            files.add(inspect.getfile(record_class))
            for method in getattr(record_class, "_compiled", {}).values():
                files |= _source_files(method)
        return (*super()._index_key(sig, codegen), *map(_digest, sorted(files)))


@cache
def _source_files(function: Callable[..., Any]) -> frozenset[str]:
    """Return the source files of a function and of all compiled functions that it calls, directly or indirectly.

    Called functions are looked up by name in the globals of the caller, as Numba does.
    """
    found, pending = {function}, [function]
    while pending:
        caller: Any = pending.pop()
        for name in caller.__code__.co_names:
            called = getattr(caller.__globals__.get(name), "py_func", None)
            if called is not None and called not in found:
                found.add(called)
                pending.append(called)
    return frozenset(map(inspect.getfile, found))


def _records(signature: Any) -> Iterator[type]:
    """Yield the classes of the records among the types of a signature, and of the records that these contain."""
    for kind in signature:
        if isinstance(kind, types.BaseNamedTuple):
            named: Any = kind
            yield named.instance_class
            yield from _records(named.types)


@cache
def _digest(file: str) -> str:
    """Return the SHA-256 digest of a file as of the first call for it."""
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


for _file in _ENGINE_FILES:  # before they can be edited
    _digest(_file)
