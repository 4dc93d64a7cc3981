"""The dictionary of a variant: the names of its objects' fields (Parquet: Metadata encoding)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

from icecomb.format.errors import UnsupportedError
from icecomb.format.variant.layout import malformed, packed, unpacked, width_of

NO_NAMES: Final = b"\x01\x00\x00"
"""The dictionary without names."""
_VERSION: Final = 1
_SORTED: Final = 1 << 4
_KEPT_BYTES: Final = 1 << 12
_KEPT_NAMES: Final = 1 << 7
"""The length up to which a dictionary is kept: mostly many variants have the same."""


def dictionary(names: frozenset[str]) -> tuple[bytes, Mapping[str, int]]:
    """Return the dictionary of field names, sorted, and the number of each name.

    UnicodeEncodeError is raised if a name has halves of characters.
    """
    return _known_dictionary(names) if len(names) <= _KEPT_NAMES else _dictionary(names)


def _dictionary(names: frozenset[str]) -> tuple[bytes, Mapping[str, int]]:
    ordered = sorted(names)
    if not ordered:
        return NO_NAMES, {}
    encoded = [name.encode() for name in ordered]
    offsets, end = [0], 0
    for name in encoded:
        end += len(name)
        offsets.append(end)
    width = width_of(max(end, len(ordered)))
    head = bytes((_VERSION | _SORTED | (width - 1) << 6,))
    numbers = packed([len(ordered), *offsets], width)
    return b"".join((head, numbers, *encoded)), {name: at for at, name in enumerate(ordered)}


def names_of(metadata: bytes) -> Sequence[str]:
    """Return the names in a dictionary, by number."""
    return _known_names(metadata) if len(metadata) <= _KEPT_BYTES else _names_of(metadata)


def name_of(names: Sequence[str], number: int) -> str:
    """Return the name of a number that an object has for a field."""
    if number >= len(names):
        raise malformed(f"a field has the name {number}, its metadata has {len(names)}")
    return names[number]


def _names_of(metadata: bytes) -> Sequence[str]:
    if not metadata:
        raise malformed("its metadata is empty")
    version, width = metadata[0] & 0x0F, (metadata[0] >> 6) + 1
    if version != _VERSION:
        raise UnsupportedError(
            f"A variant has metadata of version {version}, only version {_VERSION} is known",
            hint="Read it with the engine that wrote it.",
        )
    begin = 1 + width
    count = int.from_bytes(metadata[1:begin], "little")
    text = begin + (count + 1) * width
    if text > len(metadata):
        raise malformed(f"its metadata of {len(metadata)} bytes is too short for {count} names")
    offsets = unpacked(metadata, begin, count + 1, width)
    if offsets[0] or text + offsets[count] > len(metadata):
        raise malformed(f"the names in its metadata reach from {offsets[0]} to {offsets[count]}")
    if any(after < before for before, after in pairwise(offsets)):
        raise malformed("the names in its metadata are not one after the other")
    try:
        return [metadata[text + start : text + end].decode() for start, end in pairwise(offsets)]
    except UnicodeDecodeError as error:
        raise malformed(f"a name in its metadata is not UTF-8: {error}") from None


_known_names = lru_cache(maxsize=64)(_names_of)
_known_dictionary = lru_cache(maxsize=64)(_dictionary)
