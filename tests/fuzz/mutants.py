"""Changes of the bytes of a file: bits, pieces, numbers and words of its format."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

# at the ends of the ranges of integers, of float64 and of text encodings, and one beyond
NUMBERS = (
    b"0 -0 1 -1 2 255 256 65535 65536 2147483647 2147483648 -2147483648 4294967295 4294967296 9007199254740993 "
    b"9223372036854775807 9223372036854775808 18446744073709551616 1e308 1e309 -1e309 5e-324 1e-400 nan inf -inf "
    b"Infinity 0x10 1_000 1,5 .5 5. + - . e 1e 1e+ +1 --1 1e99999999999999999999 "
).split()
LONG = (b"9" * 400, b"0." + b"0" * 400 + b"1", b"1" * 5000)
BYTES = (0, 9, 10, 13, 32, 34, 35, 44, 58, 59, 92, 127, 128, 192, 239, 254, 255)
INTEGERS = (0, 1, 2**7, 2**8 - 1, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**64 - 1)
NUMBER = re.compile(rb"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?")
# Mutants have at most so many bytes more than their origin: repeated copies would make files of any length.
MOST_ADDED = 20_000


def mutated(content: bytes, rng: Random, words: Sequence[bytes], others: Sequence[bytes]) -> bytes:
    """Return a file with one to four changes.

    Parameters
    ----------
    content : bytes
    rng : Random
    words : sequence of bytes
        Of the format, which are inserted.
    others : sequence of bytes
        Files of the same format, whose pieces are inserted.
    """
    limit = len(content) + MOST_ADDED
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        change = rng.choice(CHANGES)
        content = change(content, rng, (*words, *NUMBERS, *LONG), others)[:limit]
    return content


def _piece(content: bytes, rng: Random, longest: int = 64) -> tuple[int, int]:
    """Return begin and end of a piece."""
    begin = rng.randrange(len(content) + 1)
    return begin, min(begin + rng.randint(1, longest), len(content))


def _flip(content: bytes, rng: Random, *_: Sequence[bytes]) -> bytes:
    changed = bytearray(content or b"\0")
    changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _set_byte(content: bytes, rng: Random, *_: Sequence[bytes]) -> bytes:
    begin, _ = _piece(content, rng)
    return content[:begin] + bytes([rng.choice(BYTES)]) + content[begin + 1 :]


def _set_integer(content: bytes, rng: Random, *_: Sequence[bytes]) -> bytes:
    size, order = rng.choice((1, 2, 4, 8)), rng.choice(("little", "big"))
    value = rng.choice(INTEGERS) % 2 ** (8 * size)
    begin, _ = _piece(content, rng)
    return content[:begin] + value.to_bytes(size, order) + content[begin + size :]


def _delete(content: bytes, rng: Random, *_: Sequence[bytes]) -> bytes:
    begin, end = _piece(content, rng)
    return content[:begin] + content[end:]


def _repeat(content: bytes, rng: Random, *_: Sequence[bytes]) -> bytes:
    begin, end = _piece(content, rng)
    return content[:begin] + content[begin:end] * rng.choice((2, 2, 3, 100)) + content[end:]


def _swap(content: bytes, rng: Random, *_: Sequence[bytes]) -> bytes:
    (a, b), (c, d) = sorted((_piece(content, rng), _piece(content, rng)))
    if b > c:
        return content
    return content[:a] + content[c:d] + content[b:c] + content[a:b] + content[d:]


def _cut(content: bytes, rng: Random, *_: Sequence[bytes]) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def _insert_word(content: bytes, rng: Random, words: Sequence[bytes], _: Sequence[bytes]) -> bytes:
    begin, _ = _piece(content, rng)
    return content[:begin] + rng.choice(words) + content[begin:]


def _set_word(content: bytes, rng: Random, words: Sequence[bytes], _: Sequence[bytes]) -> bytes:
    begin, _ = _piece(content, rng)
    word = rng.choice(words)
    return content[:begin] + word + content[begin + len(word) :]


def _set_number(content: bytes, rng: Random, *_: Sequence[bytes]) -> bytes:
    places = [found.span() for found in NUMBER.finditer(content)]
    if not places:
        return content
    begin, end = rng.choice(places)
    return content[:begin] + rng.choice((*NUMBERS, *LONG)) + content[end:]


def _line(content: bytes, rng: Random, *_: Sequence[bytes]) -> bytes:
    """Delete, repeat or move a line."""
    lines = content.splitlines(keepends=True)
    if not lines:
        return content
    line, count = lines.pop(rng.randrange(len(lines))), rng.choice((0, 1, 2))
    for _ in range(count):
        lines.insert(rng.randrange(len(lines) + 1), line)
    return b"".join(lines)


def _splice(content: bytes, rng: Random, _: Sequence[bytes], others: Sequence[bytes]) -> bytes:
    other = rng.choice(others)
    begin, end = _piece(other, rng, 256)
    place, after = _piece(content, rng)
    return content[:place] + other[begin:end] + content[rng.choice((place, after)) :]


Change = Callable[[bytes, Random, Sequence[bytes], Sequence[bytes]], bytes]
CHANGES: tuple[Change, ...] = (
    _flip, _flip, _set_byte, _set_integer, _delete, _repeat, _swap, _cut, _insert_word, _set_word, _set_number,
    _set_number, _line, _splice,
)  # fmt: skip
