"""The compiled loop over svmlight text: numbers in ordinary notation, and the places of all others.

Loops run over bytes without tests of the end: a text ends with a line feed, which ends every word.
"""

from __future__ import annotations

import numpy as np

from ..engine.jit import compiled

BLANK, TAB, RETURN, LINE_FEED = b" \t\r\n"  # bytes from TAB to RETURN, and BLANK, separate words
HASH, PLUS, MINUS, POINT, COLON, ZERO, SMALL_E = b"#+-.:0e"
QID = tuple(b"qid")
# A product or quotient of an integer up to 2^53 and a power of ten up to 10^22 is rounded once: both are float64
# numbers (Clinger, "How to read floating point numbers accurately", 1990).
LARGEST_EXACT, LARGEST_POWER = 2**53, 22
POWERS = np.array([10.0**k for k in range(LARGEST_POWER + 1)])
# Integers below take one more digit. They stay below 2^63 by more than the rounding of a conversion to float64.
ROOM = 9 * 10**17
# Relative error of quotients and products of two float64 numbers each, hundreds of times what rounding adds up to: a
# larger one hands more numbers over, one in 2^41 here.
TINY = 2.0**-95
SPLIT = 2.0**27 + 1.0  # Veltkamp's: upper and lower 26 bits
# Places in the text are unsigned: a signed index, which may count from the end, costs a test at each access, and the
# loop took 1.4 times as long.
NEXT = np.uint64(1)


@compiled()
def parse(text, least, most, labels, indptr, indices, values, others):
    """Read the rows of a text into arrays.

    Parameters
    ----------
    text : ndarray of uint8
        Whole lines; the last byte is a line feed.
    least, most : int
        The range of indices.
    labels, indptr, indices, values : ndarray
        Arrays that are long enough for the rows and the entries of the text.
    others : ndarray of shape (n, 3)
        Filled with begin, end and place of numbers that are left to the caller. The place is that of an entry, or
        -1 - i for the label of row i.

    Returns
    -------
    rows, entries, others : int
        The numbers of rows, of stored entries, and of numbers that are left to the caller.
    fault : int
        The place of the first word that is no entry; -1 if all are.
    """
    row = entries = others_found = 0
    k, size, fault = np.uint64(0), np.uint64(text.size), -1
    indptr[0] = 0
    while k < size and fault < 0:
        c = text[k]
        if _separates(c):
            k += NEXT
            continue
        if c == HASH:
            while text[k] != LINE_FEED:
                k += NEXT
            continue
        begin = k
        value, k, exact = _number(text, k)
        if not exact:
            others[others_found, 0], others[others_found, 1], others[others_found, 2] = begin, k, -1 - row
            others_found += 1
        labels[row] = value
        k = _skipped(text, k)
        if (
            text[k] == QID[0] and text[k + NEXT] == QID[1] and text[k + NEXT + NEXT] == QID[2]
        ):  # a line feed ends this
            k = _skipped(text, _word_end(text, k))
        before = least - 1
        while text[k] != LINE_FEED and text[k] != HASH:
            begin = k
            index, k, _ = _appended(text, k, np.int64(0))
            if text[k] != COLON or k == begin or index <= before or index > most:
                fault = np.int64(begin)
                break
            before = index
            k += NEXT
            begin = k
            value, k, exact = _number(text, k)
            if not exact:
                others[others_found, 0], others[others_found, 1], others[others_found, 2] = begin, k, entries
                others_found += 1
            indices[entries] = index
            values[entries] = value
            entries += 1
            k = _skipped(text, k)
        row += 1
        indptr[row] = entries
    return row, entries, others_found, fault


@compiled()
def _number(text, k):
    """Return the number at k, the end of its word, and whether the number is that of `float`.

    Where it is not, the word is another kind of number, or none at all.
    """
    sign = 1.0
    if text[k] == MINUS or text[k] == PLUS:
        sign = -1.0 if text[k] == MINUS else 1.0
        k += NEXT
    begin, power = k, np.int64(0)
    integer, k, dropped = _appended(text, k, np.int64(0))
    digits = np.int64(k - begin)
    if text[k] == POINT:
        begin = k + NEXT
        integer, k, more = _appended(text, begin, integer)
        power = -np.int64(k - begin)
        digits -= power
        dropped += more
    if digits and text[k] | 32 == SMALL_E:  # "e" or "E"
        k += NEXT
        minus = text[k] == MINUS
        if text[k] == MINUS or text[k] == PLUS:
            k += NEXT
        begin = k
        exponent, k, _ = _appended(text, k, np.int64(0))
        digits = np.int64(k - begin)
        power += -exponent if minus else exponent
    if not digits or (not _separates(text[k]) and text[k] != HASH):
        return 0.0, _word_end(text, k), False
    if dropped or not -LARGEST_POWER <= power <= LARGEST_POWER:
        return 0.0, k, False
    if integer > LARGEST_EXACT:
        value, exact = _rounded(integer, power)
        return sign * value, k, exact
    if power < 0:
        return sign * (np.float64(integer) / POWERS[-power]), k, True
    return sign * (np.float64(integer) * POWERS[power]), k, True


@compiled()
def _appended(text, k, integer):
    """Return an integer with the digits at k appended, the place after them, and the number of digits left out."""
    digit = np.int64(text[k]) - ZERO
    while 0 <= digit <= 9 and integer < ROOM:
        integer = 10 * integer + digit
        k += NEXT
        digit = np.int64(text[k]) - ZERO
    end = k
    while 0 <= np.int64(text[k]) - ZERO <= 9:
        k += NEXT
    return integer, k, np.int64(k - end)


@compiled()
def _rounded(integer, power):
    """Return integer 10^power as a float64 number, and whether its rounding is certain."""
    high = np.float64(integer)
    low = np.float64(integer - np.int64(high))
    scale = POWERS[abs(power)]
    if power < 0:
        near = high / scale
        product, error = _product(near, scale)
        rest = (((high - product) - error) + low) / scale
    else:
        near, error = _product(high, scale)
        rest = error + low * scale
    value = near + (rest - TINY * near)
    return value, value == near + (rest + TINY * near)


@compiled()
def _product(a, b):
    """Return a b as a float64 number and its rounding error (Dekker)."""
    product = a * b
    c, d = SPLIT * a, SPLIT * b
    a1, b1 = c - (c - a), d - (d - b)
    a2, b2 = a - a1, b - b1
    return product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2


@compiled()
def _separates(byte):
    """Return whether a byte separates words, as in `bytes.split`."""
    return byte == BLANK or TAB <= byte <= RETURN


@compiled()
def _skipped(text, k):
    """Return the place of the first byte at or after k that begins a word, or ends the line."""
    while text[k] != LINE_FEED and _separates(text[k]):
        k += NEXT
    return k


@compiled()
def _word_end(text, k):
    """Return the place after the word that k is in."""
    while not _separates(text[k]) and text[k] != HASH:
        k += NEXT
    return k
