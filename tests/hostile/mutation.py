"""Changes of sound inputs, by their kind: bytes, JSON, XML, texts, Avro, Thrift, Protocol Buffers.

What is changed stays well-formed as far as a parser looks at first: lengths and checksums around a change are those of
the changed content, and only a part of the changes breaks the form itself.
"""

from __future__ import annotations

import json
import random
import re
import zlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any
from xml.etree import ElementTree as ET

import pyarrow as pa

from icecomb.format.avro.container import MAGIC, header_bytes, parse_container
from icecomb.format.avro.encoder import encode_bytes, encode_long

HUGE = [0, -1, 1, 255, 1 << 31, (1 << 31) - 1, -(1 << 31), 1 << 63, (1 << 63) - 1, 1 << 200]
TEXTS = [
    "", " ", "x", ".", "..", "/", "a/../b", "\x00", "\x1b[2J", "\r\n", "\u2028", "\u0660", "\ud800", "\U0010ffff",
    "9" * 5000, "-1", "1e400", "NaN", "null", "true", "a" * 70_000, "%00%ff", "{}", "<a/>", "'\"`;--",
]  # fmt: skip


def nested(depth: int, kind: str) -> str:
    """A JSON text of so many levels."""
    if kind == "list":
        return "[" * depth + "]" * depth
    if kind == "object":
        return '{"type":' * depth + "1" + "}" * depth
    if kind == "avro":
        inner, start, end = '"int"', '{"type":"array","items":', "}"
    else:
        inner, start = '"int"', '{"type":"list","element-id":1,"element-required":false,"element":'
        end = "}"
    return start * depth + inner + end * depth


def hostile_value(draw: random.Random) -> Any:
    kinds = ["list", "object", "avro", "schema"]
    return draw.choice(
        [
            None,
            True,
            {},
            [],
            "",
            "x",
            "\ud800",
            "\x00\x1b[2J",
            "9" * 5000,
            1.5,
            float("inf"),
            float("nan"),
            draw.choice(HUGE),
            {"type": "int"},
            [None],
            [{}],
            Raw(nested(draw.choice([50, 100, 200, 300, 400, 900, 5000]), draw.choice(kinds))),
        ]
    )


class Raw(str):
    """A text that is JSON already."""

    __slots__ = ()


class _Again:
    """A key that an object has twice."""

    def __init__(self, key: str) -> None:
        self.key = key


def to_json(value: Any) -> str:
    """JSON, with raw parts, and keys that stand there twice."""
    if isinstance(value, Raw):
        return value[:]
    if isinstance(value, dict):
        names = (k.key if isinstance(k, _Again) else k for k in value)
        pairs = zip(names, value.values(), strict=True)
        return "{" + ",".join(f"{json.dumps(k)}:{to_json(v)}" for k, v in pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(to_json, value)) + "]"
    return json.dumps(value)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each container in a value, with a key in it."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield value, key
        if isinstance(inner, (dict, list)):
            yield from places(inner)


def changed_json(draw: random.Random, text: bytes) -> bytes:
    """JSON of which members are left out, doubled, moved, or have other values."""
    value = json.loads(text)
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        if not (known := list(places(value))):
            break
        container, key = draw.choice(known)
        if isinstance(key, _Again):
            continue
        chance = draw.random()
        if isinstance(container, dict) and chance < 0.2:
            del container[key]
        elif isinstance(container, list) and chance < 0.2:
            container.append(container[key])
        elif isinstance(container, dict) and chance < 0.25:
            container[_Again(key)] = hostile_value(draw)
        elif chance < 0.5:
            other, there = draw.choice(known)
            container[key] = json.loads(json.dumps(other[there], default=str, skipkeys=True))
        else:
            container[key] = hostile_value(draw)
            break
    out = to_json(value).encode("utf-8", "surrogatepass")
    if draw.random() < 0.05:
        at = draw.randrange(len(out) + 1)
        out = (
            out[:at] + draw.choice([b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf"]) + out[at:]
        )
    return out


def changed_bytes(draw: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 3, 8])):
        at = draw.randrange(len(out) + 1)
        kind = draw.randrange(7)
        if kind == 0 and at < len(out):
            out[at] ^= 1 << draw.randrange(8)
        elif kind == 1 and at < len(out):
            out[at] = draw.choice([0, 1, 0x7F, 0x80, 0xFF])
        elif kind == 2:
            del out[at : at + draw.choice([1, 4, 100])]
        elif kind == 3:
            out[at:at] = out[at : at + draw.choice([1, 8, 64])]
        elif kind == 4:
            del out[at:]
        elif kind == 5:
            out[at : at + 8] = draw.choice([b"\xff" * 8, b"\x7f" + b"\xff" * 7, bytes(8)])
        else:
            out[at:at] = draw.choice([b"\xff" * 9 + b"\x01", b"\xfe\xff\xff\xff\x0f", b"\0" * 4])
    return bytes(out)


@lru_cache
def bomb(mebibytes: int) -> bytes:
    """A raw deflate stream of zeros."""
    packer = zlib.compressobj(9, wbits=-15)
    part = packer.compress(bytes(4 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return part * (mebibytes // 4) + zlib.compressobj(9, wbits=-15).flush()


@lru_cache
def packed_bomb(codec: str) -> bytes:
    """Three GiB of zeros as frames of a codec."""
    part = pa.Codec(codec).compress(bytes(4 << 20), asbytes=True)
    return bytes(part) * 768


def changed_avro(draw: random.Random, data: bytes) -> bytes:
    """A container with another schema, header, or records."""
    container = parse_container(data, "seed")
    metadata = {k: v.decode("utf-8", "surrogateescape") for k, v in container.metadata.items()}
    metadata["avro.codec"] = "null"
    block, count = b"".join(container.blocks), container.record_count
    kind = draw.randrange(6)
    if kind == 0:
        metadata["avro.schema"] = changed_json(draw, container.metadata["avro.schema"]).decode(
            "utf-8", "replace"
        )
    elif kind == 1:
        name = draw.choice(sorted(metadata))
        metadata[name] = str(hostile_value(draw)).encode("utf-8", "replace").decode()
    elif kind == 2:
        count = draw.choice([0, -1, 1, 255, 1 << 31, (1 << 63) - 1])
    elif kind == 3:
        codec = draw.choice(["deflate", "zstandard", "bzip2", "xz", "snappy"])
        metadata["avro.codec"] = codec
        block = bomb(draw.choice([1280, 3840])) if codec == "deflate" else packed_bomb("zstd")
        if codec == "snappy":
            block = b"\xff\xff\xff\xff\x07" + bytes(100)
    else:
        block = changed_bytes(draw, block)
    sync = bytes(16)
    header = header_bytes(metadata, sync)
    assert header.startswith(MAGIC)
    return header + encode_long(count) + encode_bytes(block) + sync


def changed_text(draw: random.Random, data: bytes) -> bytes:
    """A text of which words, numbers and signs are left out, doubled, moved, or others."""
    words = re.findall(r"\w+|\s+|[^\w\s]", data.decode("utf-8", "surrogateescape")) or [""]
    for _ in range(draw.choice([1, 1, 2, 4])):
        at, kind = draw.randrange(len(words)), draw.randrange(5)
        if kind == 0 and len(words) > 1:
            del words[at]
        elif kind == 1:
            words.insert(at, draw.choice(words))
        elif kind == 2:
            words[at] = draw.choice(words)
        elif kind == 3:
            words[at] = draw.choice(TEXTS)
        else:
            words[at] = str(draw.choice(HUGE))
    text = "".join(words)
    return text.encode("utf-8", "surrogatepass" if "\ud800" in text else "surrogateescape")


def changed_xml(draw: random.Random, data: bytes) -> bytes:
    """XML of which elements are left out, doubled, moved, nested, renamed, or have other texts."""
    root = ET.fromstring(data)  # noqa: S314 - our own seed
    for _ in range(draw.choice([1, 1, 2, 4])):
        parents = [each for each in root.iter() if len(each)] or [root]
        parent, kind = draw.choice(parents), draw.randrange(7)
        child = draw.choice(list(parent)) if len(parent) else None
        if kind == 0 and child is not None:
            parent.remove(child)
        elif kind == 1 and child is not None:
            parent.append(child)
        elif kind == 2:
            draw.choice(list(root.iter())).append(ET.Element("x", {"a": "b"}))
        elif kind == 3:
            draw.choice(list(root.iter())).tag = draw.choice([e.tag for e in root.iter()] + ["x"])
        elif kind == 4:
            inner = draw.choice(list(root.iter()))
            for _ in range(draw.choice([10, 100, 400])):
                inner = ET.SubElement(inner, "x")
        else:
            chosen = draw.choice(list(root.iter()))
            chosen.text = draw.choice([*TEXTS, *map(str, HUGE)])
    try:
        out = ET.tostring(root)
    except (UnicodeEncodeError, RecursionError):
        return data
    kind = draw.randrange(20)
    if kind == 0:
        return b'<!DOCTYPE a [<!ENTITY b "c"><!ENTITY d "&b;&b;&b;">]>' + out.replace(
            b">1<", b">&d;<"
        )
    if kind == 1:
        return out.decode().encode("utf-16")
    if kind == 2:
        return b'<?xml version="1.0" encoding="x-none"?>' + out
    if kind == 3:
        return changed_bytes(draw, out)
    return out


_WIDTHS = {2: 1, 3: 1, 4: 8, 6: 2, 8: 4, 10: 8}
_STRUCT, _MAP, _SET, _LIST, _STRING = 12, 13, 14, 15, 11


def _fields(data: bytes, at: int, found: list[tuple[int, int, int, int]]) -> int:
    """Note type, start, value and end of each field of a struct of Thrift; return its end."""
    while data[at] != 0:
        start, kind = at, data[at]
        at = _value(data, at + 3, kind, found)
        found.append((kind, start, start + 3, at))
    return at + 1


def _value(data: bytes, at: int, kind: int, found: list[tuple[int, int, int, int]]) -> int:
    if kind in _WIDTHS:
        return at + _WIDTHS[kind]
    if kind == _STRING:
        return at + 4 + int.from_bytes(data[at : at + 4], "big")
    if kind == _STRUCT:
        return _fields(data, at, found)
    kinds = (data[at],) if kind in {_SET, _LIST} else (data[at], data[at + 1])
    at += len(kinds)
    count, at = int.from_bytes(data[at : at + 4], "big"), at + 4
    for _ in range(count):
        if at >= len(data):
            raise IndexError(at)
        for each in kinds:
            at = _value(data, at, each, found)
    return at


def changed_thrift(draw: random.Random, data: bytes) -> bytes:
    """A struct in Thrift's binary protocol whose fields are left out, doubled, of other types, numbers and lengths."""
    for _ in range(draw.choice([1, 1, 2, 4])):
        found: list[tuple[int, int, int, int]] = []
        try:
            _fields(data, 0, found)
        except (IndexError, RecursionError):
            return data
        if not found:
            return data
        kind, start, _, end = draw.choice(found)
        head, inner, tail = data[:start], data[start:end], data[end:]
        how = draw.randrange(8)
        if how == 0:
            inner = b""
        elif how == 1:
            inner *= draw.choice([2, 3, 100])
        elif how == 2:
            inner = bytes([draw.choice([2, 3, 4, 6, 8, 10, 11, 12, 13, 14, 15, 7, 99])]) + inner[1:]
        elif how == 3:
            inner = (
                inner[:1]
                + draw.choice([0, 1, 2, 3, 4, 5, 99, 0xFFFF]).to_bytes(2, "big")
                + inner[3:]
            )
        elif how == 4:
            other = draw.choice(found)
            inner = data[other[1] : other[3]]
        elif kind == _STRING:
            text = draw.choice(TEXTS).encode("utf-8", "surrogatepass")
            size = draw.choice([len(text)] * 4 + [0xFFFFFFFF, 0x7FFFFFFF, len(text) + 1])
            text = draw.choice([text, text, b"\xff\xfe", b"x"])
            if size < 100_000:
                size = len(text)
            inner = inner[:3] + size.to_bytes(4, "big") + text
        elif kind in _WIDTHS:
            width = _WIDTHS[kind]
            inner = inner[:3] + (draw.choice(HUGE) % (1 << (8 * width))).to_bytes(width, "big")
        elif kind in {_LIST, _SET}:
            count = draw.choice([0, 1, 2, 0x7FFFFFFF, 0xFFFFFFFF, 3_000_000])
            types = draw.choice([inner[3], 3, 11, 12, 0, 99])
            inner = inner[:3] + bytes([types]) + count.to_bytes(4, "big") + inner[8:]
        else:
            inner = changed_bytes(draw, inner)
        data = head + inner + tail
    return data


def varint(number: int) -> bytes:
    """A number as Protocol Buffers and compact Thrift have it."""
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return number, at
        shift += 7


def _members(data: bytes) -> list[tuple[int, Any]]:
    """The tags of a message of Protocol Buffers, each with its number or bytes; ValueError or IndexError if it is none."""
    found: list[tuple[int, Any]] = []
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        value: Any
        if tag & 7 == 0:
            value, at = _read_varint(data, at)
        elif tag & 7 in {1, 5}:
            width = 8 if tag & 7 == 1 else 4
            value, at = data[at : at + width], at + width
        elif tag & 7 == 2:
            size, at = _read_varint(data, at)
            value, at = data[at : at + size], at + size
            if len(value) != size:
                raise ValueError(size)
        else:
            raise ValueError(tag)
        found.append((tag, value))
    return found


def _message(members: Iterable[tuple[int, Any]]) -> bytes:
    out = []
    for tag, value in members:
        body = varint(value) if isinstance(value, int) else value
        size = varint(len(value)) if tag & 7 == 2 else b""
        out.append(varint(tag) + size + body)
    return b"".join(out)


def changed_protobuf(draw: random.Random, data: bytes) -> bytes:
    """A message of Protocol Buffers with other members, also of the messages inside."""
    try:
        members = _members(data)
    except (ValueError, IndexError):
        return changed_bytes(draw, data)
    if not members:
        return changed_bytes(draw, data)
    at, kind = draw.randrange(len(members)), draw.randrange(10)
    tag, value = members[at]
    if kind == 0:
        del members[at]
    elif kind == 1:
        members[at:at] = [members[at]] * draw.choice([1, 2, 1000])
    elif kind == 2:
        members[at] = (draw.choice([8, 16, 24, 32, 2000]) | draw.choice([0, 2]), value)
        if isinstance(value, int) == bool(members[at][0] & 7):
            members[at] = (
                members[at][0],
                draw.choice(HUGE) % (1 << 64) if members[at][0] & 7 == 0 else b"x",
            )
    elif tag & 7 == 0:
        members[at] = (tag, draw.choice([*HUGE, 2, 3, 10, 1000, 1 << 40]) % (1 << 64))
    elif tag & 7 == 2 and value:
        members[at] = (tag, changed_protobuf(draw, value))
    else:
        members[at] = (tag, draw.choice([b"", b"\xff" * 8, b"\x00" * 8, b"x" * 9]))
    return _message(members)


JSON = (changed_json, changed_bytes)
AVRO = (changed_avro, changed_bytes)
XML = (changed_xml, changed_bytes)
TEXT = (changed_text, changed_bytes)
THRIFT = (changed_thrift, changed_bytes)
DEEP = tuple(
    nested(depth, kind).encode()
    for depth in (100, 400, 5_000, 200_000)
    for kind in ("list", "object", "schema", "avro")
)
