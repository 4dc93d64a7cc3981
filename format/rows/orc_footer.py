"""What pyarrow leaves out of the footer of an ORC file (ORC specification: File Tail).

Dates and timestamps are in the proleptic Gregorian calendar, also those before 1582. A footer that
does not say so is read by ORC's Java library as of the Julian calendar, days off.
"""

from __future__ import annotations

from icecomb.format.errors import UnsupportedError

_FOOTER_LENGTH = b"\x08"
"""Field 1 of the postscript."""
_COMPRESSION = b"\x10"
"""Field 2 of the postscript."""
_PROLEPTIC_GREGORIAN = b"\x58\x02"
"""Field 11 of the footer (calendar), value 2; fields of Protobuf may come in any order."""


def with_calendar(tail: bytes) -> bytes:
    """The end of an ORC file with the calendar stated in its footer.

    Args:
        tail: The footer and the postscript at least, with whatever stands before them.

    Raises:
        UnsupportedError: The postscript is not one that pyarrow writes.
    """
    begin = len(tail) - 1 - tail[-1]
    postscript = tail[begin:-1]
    length, at = _varint(postscript, 1)
    if postscript[:1] != _FOOTER_LENGTH or postscript[at : at + 1] != _COMPRESSION:
        raise UnsupportedError("the installed pyarrow writes ORC files in an unknown way")
    addition = _PROLEPTIC_GREGORIAN
    if postscript[at + 1]:
        # A chunk that is not compressed: its length and a bit that says so, in three bytes.
        addition = (len(addition) << 1 | 1).to_bytes(3, "little") + addition
    changed = _FOOTER_LENGTH + _encoded(length + len(addition)) + postscript[at:]
    return b"".join((tail[:begin], addition, changed, bytes((len(changed),))))


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _encoded(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
