"""The only module that knows Numba: compiled functions, and records with compiled methods.

A *record* is a ``NamedTuple`` whose ordinary Python methods compiled code may call; a method compiled and
the same method interpreted (``NUMBA_DISABLE_JIT=1``) are one source. Compiled code is kept on disk. The key of a
compiled function holds digests of every file that its code comes from: its own file, all files of this folder, the
files of the records it is called with, and the files of the compiled functions that it, or a method of these records,
calls.
So an edit of a loop in an algorithm's file recompiles that file and its callers, an edit of this folder everything.
Constants are compiled in: a compiled function takes them from its own file or from this folder.

Private parts of Numba, all of them here: ``_nrt``, ``_index_key``, ``load_overload``, ``BaseNamedTuple``,
``IndexDataCacheFile``, ``CompileResultCacheImpl`` with its locators, ``NullCache``.
"""

from __future__ import annotations

import hashlib
import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numba
import numpy as np
from numba.core import config, types
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, NullCache
from numba.extending import overload_method

_T = TypeVar("_T", bound=type)
_PACKAGE = Path(__file__).resolve().parents[1]
_KERNELS = [str(path) for path in sorted(Path(__file__).parent.glob("*.py"))]
_EXPOSED: dict[str, inspect.Signature] = {}
_NOT_SAVED: list[
    object
] = []  # why compiled code could not be saved; a process warns of the first reason only

# _nrt=False compiles without reference counts, which survive inlining and cost up to ten times the
# arithmetic; as a consequence compiled code allocates nothing. Nobody calls it from C: without wrappers for that it is
# compiled in four fifths of the time. Unless it says so, a function adds and multiplies in the order in which it is
# written: else it would be compiled as its first caller is
_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "_nrt": False,
    "no_cfunc_wrapper": True,
    "fastmath": False,
}


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile at the first call, once per machine: the result is kept on disk.

    Where no folder can be written, code that was saved in one of them before is read, all else is compiled in memory by
    every process, and a RuntimeWarning at the first compilation says so.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        if config.DISABLE_JIT:  # type: ignore[attr-defined]
            return function
        _digest(inspect.getfile(function))  # of what is run, not of what the file may say later
        dispatcher: Any = numba.njit(nogil=True, **(_OPTIONS | options))(function)
        try:
            dispatcher._cache = _SourceAwareCache(function)
        except RuntimeError as error:  # Numba: "cannot cache function ...: no locator available for file ..."
            dispatcher._cache = _NoCache(error)
        return dispatcher

    return decorate


class _Shared:
    """The same memory under another description; it keeps the owner alive."""

    def __init__(self, owner: np.ndarray, interface: dict[str, Any]) -> None:
        self.owner, self.__array_interface__ = owner, interface


def writable(a: np.ndarray) -> np.ndarray:
    """Return a view of the same memory of a writable type; the engine never writes to it.

    Numba compiles read-only arrays anew; one type for both spares the second compilation.
    """
    a = np.asarray(a)  # a memory map is an array of its own class
    if a.flags.writeable and a.flags.aligned:
        return a
    if not a.flags.aligned or not a.size:
        return a.copy()
    interface = dict(a.__array_interface__)
    interface["data"] = (interface["data"][0], False)
    return np.asarray(_Shared(a, interface))


def record(cls: _T) -> _T:
    """Let compiled code call the public methods of this NamedTuple.

    Raises
    ------
    TypeError
        If another record has a method of this name with other parameters: a verb has one signature.
    """
    methods = {
        name: method
        for name, method in vars(cls).items()
        if inspect.isfunction(method) and not name.startswith("_")
    }
    _digest(inspect.getfile(cls))  # of what is run, not of what the file may say later
    cls._compiled = methods  # type: ignore[attr-defined]
    for name, method in methods.items():
        signature = inspect.signature(method)
        if name not in _EXPOSED:
            _EXPOSED[name] = signature
            _expose(name, signature)
        elif list(_EXPOSED[name].parameters) != list(signature.parameters):
            raise TypeError(f"{cls.__name__}.{name}{signature}: elsewhere it is {name}{_EXPOSED[name]}")
    return cls


def _expose(name: str, signature: inspect.Signature) -> None:
    """Register the methods of this name with Numba: each record's own function implements self.name(...)."""

    def implementation(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.instance_class, "_compiled", {}).get(name)

    implementation.__name__ = name
    implementation.__signature__ = signature  # type: ignore[attr-defined]
    expose: Any = overload_method
    expose(types.BaseNamedTuple, name, jit_options={"forceinline": True, **_OPTIONS})(implementation)


class _CacheFile(IndexDataCacheFile):
    """Index of files of compiled code, each named by its key.

    Numba numbers them by what the index holds: two processes that compile at the same time may take one number for two
    signatures, and the code of one is then run in the place of the other. So they can at most forget an entry.
    """

    def save(self, key: Any, data: Any) -> None:
        name = f"{self._index_name[:-4]}.{hashlib.sha256(repr(key).encode()).hexdigest()[:24]}.nbc"
        self._save_data(name, data)
        overloads = self._load_index()
        overloads[key] = name
        self._save_index(overloads)


class _ReadOnly:
    """A locator of a folder of compiled code that can be read but not written; to save there raises OSError."""

    def ensure_cache_path(self) -> None:
        """Accept any folder with compiled code; Numba passes over a locator that raises OSError."""
        locator: Any = self
        if not _has_compiled_code(locator.get_cache_path()):
            raise FileNotFoundError(f"no compiled code in {locator.get_cache_path()}")


@cache
def _has_compiled_code(folder: str) -> bool:
    return any(Path(folder).glob("*.nbi"))


class _Locations(CompileResultCacheImpl):
    """Numba's folders, the first that can be written; where there is none, the first that has compiled code."""

    _locator_classes: ClassVar[Any] = [
        *CompileResultCacheImpl._locator_classes,
        *(type(one.__name__, (_ReadOnly, one), {}) for one in CompileResultCacheImpl._locator_classes),
    ]


class _NoCache(NullCache):
    """Compiled code in memory only; to save it warns."""

    def __init__(self, reason: object) -> None:
        self._reason = reason

    def save_overload(self, sig: Any, cres: Any) -> None:
        _warn_not_saved(self._reason)


def _warn_not_saved(reason: object) -> None:
    """Warn once in a process that compiled code is not saved."""
    _NOT_SAVED.append(reason)
    if len(_NOT_SAVED) == 1:
        warnings.warn(
            f"Compiled code cannot be saved ({reason}): every process compiles it anew, which may take minutes. "
            "Set the environment variable NUMBA_CACHE_DIR to a folder that can be written.",
            RuntimeWarning,
            stacklevel=2,
        )


class _SourceAwareCache(FunctionCache):
    """Cache of compiled code that follows every file that it comes from; Numba's follows one.

    What is compiled for records of other files than this package's has an index of its own, one for each set of such
    files: an index can be read only where all of its records can be imported, and a rule in somebody's script can be
    by nobody else.

    A folder that cannot be read or written (no rights, a full disk) fails no compilation.
    """

    _impl_class = _Locations

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._turn_to(())

    def _turn_to(self, sig: Any) -> None:
        """Select the index of this signature; Numba compiles and loads one signature at a time."""
        found = self._impl
        files = map(inspect.getfile, _records(sig))
        others = sorted({file for file in files if not Path(file).is_relative_to(_PACKAGE)})
        base = found.filename_base
        if others:
            base += "-" + hashlib.sha256("\n".join(others).encode()).hexdigest()[:12]
        self._cache_file = _CacheFile(self._cache_path, base, found.locator.get_source_stamp())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        self._turn_to(sig)
        try:
            return super().load_overload(sig, target_context)
        except (AttributeError, ImportError):  # the index names a record that has moved or gone
            with suppress(OSError):
                self.flush()
        except OSError:  # what cannot be read is compiled
            pass
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        self._turn_to(sig)
        try:
            self._save(sig, data)
        except OSError as error:
            _warn_not_saved(error)

    def _save(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except (AttributeError, ImportError):  # the old index is read before the new one is written
            self.flush()
            super().save_overload(sig, data)

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        files = {*_KERNELS, *_source_files(self._py_func)}
        for record_class in _records(sig):
            files.add(inspect.getfile(record_class))
            for method in getattr(record_class, "_compiled", {}).values():
                files |= _source_files(method)
        return (*super()._index_key(sig, codegen), *map(_digest, sorted(files)))


@cache
def _source_files(function: Callable[..., Any]) -> frozenset[str]:
    """Return the files of a function and of all compiled functions that it calls, directly or not.

    A compiled function is found by its name among the globals of the caller, as Numba finds it.
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
    """Yield the classes of the records in a signature, and of the records that they hold."""
    for kind in signature:
        if isinstance(kind, types.BaseNamedTuple):
            named: Any = kind
            yield named.instance_class
            yield from _records(named.types)


@cache
def _digest(file: str) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


for _kernel in _KERNELS:
    _digest(_kernel)
