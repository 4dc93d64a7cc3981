"""What bytes of others may ask for is limited, and who sets a limit is told what it may be."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import zlib
from typing import Any

import pytest

from icecomb.format.errors import ConfigurationError, SchemaError
from icecomb.format.input_limit import (
    FIXED,
    LEVELS,
    METADATA,
    TYPES,
    UNPACKED,
    VALUES,
    check_json,
    decompressed,
    one_level,
    whole_number,
)

DATA = b"rows " * 1000
PACKED = [
    (zlib.compress(DATA), zlib.decompressobj),
    (gzip.compress(DATA), lambda: zlib.decompressobj(zlib.MAX_WBITS | 16)),
    (bz2.compress(DATA), bz2.BZ2Decompressor),
    (lzma.compress(DATA), lzma.LZMADecompressor),
]


@pytest.mark.parametrize("limit", [UNPACKED, METADATA, VALUES, LEVELS, TYPES, FIXED])
@pytest.mark.parametrize("said", ["", "0", "-1", "1.5", "many", "1" * 10, "²", " 1"])
def test_a_limit_that_is_no_number_is_refused(
    limit: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(limit.name, said)
    with pytest.raises(ConfigurationError, match=f"{limit.name} cannot be") as caught:
        _ = limit.value
    assert f"the default is {limit.default}" in str(caught.value.hint)


def test_the_environment_sets_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LEVELS.name, "2")
    with one_level(), one_level():
        with pytest.raises(SchemaError, match="2 levels"), one_level():
            pass
        with pytest.raises(SchemaError), one_level():
            pass
    with one_level(), one_level():
        pass


@pytest.mark.parametrize(("packed", "made"), PACKED)
def test_data_become_no_more_than_there_is_room_for(packed: bytes, made: Any) -> None:
    assert decompressed(made(), packed, len(DATA)) == DATA
    with pytest.raises(ValueError, match=UNPACKED.name):
        decompressed(made(), packed, len(DATA) - 1)
    with pytest.raises(ValueError, match="too early"):
        decompressed(made(), packed[:-9], len(DATA))
    with pytest.raises(ValueError, match=r"\w"):
        decompressed(made(), b"no packed data at all", len(DATA))


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("007", 7), ("9" * 19, 10**19 - 1), ("9" * 20, None), ("", None), ("-1", None),
     ("+1", None), (" 1", None), ("1\n", None), ("²", None), ("\u0661", None), ("1e3", None)],
)  # fmt: skip
def test_a_number_of_others_has_no_more_digits_than_a_long(text: str, number: int | None) -> None:
    assert whole_number(text) == number


@pytest.mark.parametrize(
    ("text", "is_sound"),
    [(r'"\ud83d\ude00"', True), (r'"\uD83D\uDE00\n\ud83d\ude00"', True), (r'"\\ud83d"', True),
     (r'"\u0bad"', True), (r'"\ud83d"', False), (r'"\ude00"', False), (r'"\ud83dx\ude00"', False),
     (r'"\\\ud83d"', False), (r'"\ude00\ud83d"', False), (r'"\ud83d\ud83d\ude00"', False)],
)  # fmt: skip
def test_json_has_no_half_of_a_surrogate_pair(text: str, *, is_sound: bool) -> None:
    found = json.loads(text)
    if is_sound:
        assert found.encode()
        check_json(text.encode())
        return
    with pytest.raises(UnicodeEncodeError):
        found.encode()
    with pytest.raises(UnicodeError, match="half of a surrogate pair"):
        check_json(text.encode())


def test_json_is_counted_before_it_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VALUES.name, "300000")
    check_json(b"[" + b"0," * 299_999)
    check_json(b"[" * 300_000 + b" " * 200_000)
    for text in (b"[" + b"0," * 300_000, b"{" * 150_000 + b" " * 70_000 + b"[" * 150_001):
        with pytest.raises(ValueError, match=f"{VALUES.name}: 300000 values"):
            check_json(text)
    monkeypatch.setenv(METADATA.name, "1")
    with pytest.raises(ValueError, match=f"{METADATA.name}: 1 MiB"):
        check_json(b" " * ((1 << 20) + 1))
