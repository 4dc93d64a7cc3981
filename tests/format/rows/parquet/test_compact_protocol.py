"""Structures are what Thrift's own library reads and writes."""

from __future__ import annotations

from random import Random

import pytest
from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer

from icecomb.format.rows.parquet import compact_protocol as compact
from icecomb.format.rows.parquet.compact_protocol import (
    CompactError,
    Items,
    Pairs,
    Struct,
    TruncatedError,
    read_struct,
)

_KINDS = {
    TType.BOOL: compact.TRUE,
    TType.BYTE: compact.BYTE,
    TType.I16: compact.I16,
    TType.I32: compact.I32,
    TType.I64: compact.I64,
    TType.DOUBLE: compact.DOUBLE,
    TType.STRING: compact.BINARY,
    TType.LIST: compact.LIST,
    TType.SET: compact.SET,
    TType.MAP: compact.MAP,
    TType.STRUCT: compact.STRUCT,
}


def _random(random: Random, kind: int, depth: int):
    """A value for Thrift's library, with a value for ours."""
    bits = {TType.BYTE: 8, TType.I16: 16, TType.I32: 32, TType.I64: 64}
    if kind == TType.BOOL:
        value = random.random() < 0.5
        return value, value
    if kind in bits:
        most = 1 << random.randrange(1, bits[kind])
        value = random.randrange(-most, most)
        return value, value
    if kind == TType.DOUBLE:
        value = random.random()
        return value, value
    if kind == TType.STRING:
        value = random.randbytes(random.choice([0, 3, 200]))
        return value, value
    if kind == TType.STRUCT:
        fields = {}
        number = 0
        for _ in range(random.randrange(5)):
            number += random.choice([1, 2, 15, 16, 400])
            inner = _kind(random, depth)
            fields[number] = (inner, _random(random, inner, depth + 1))
        ours = ((n, (_KINDS[k], value[1])) for n, (k, value) in fields.items())
        return fields, Struct(ours)
    if kind == TType.MAP:
        keys, values = TType.I32, _kind(random, depth)
        pairs = [
            (_random(random, keys, depth), _random(random, values, depth + 1))
            for _ in range(random.randrange(3))
        ]
        ours = [(key[1], value[1]) for key, value in pairs]
        made = Pairs(_KINDS[keys], _KINDS[values], ours) if ours else Pairs(0, 0, [])
        return (keys, values, pairs), made
    inner = _kind(random, depth)
    size = random.choice([0, 2, 14, 15])
    items = [_random(random, inner, depth + 1) for _ in range(size)]
    return (inner, items), Items(_KINDS[inner], [item[1] for item in items])


def _kind(random: Random, depth: int) -> int:
    kinds = list(_KINDS)
    return random.choice(kinds if depth < 3 else kinds[:7])


def _write(out: TCompactProtocol, kind: int, value) -> None:
    plain = {
        TType.BOOL: out.writeBool,
        TType.BYTE: out.writeByte,
        TType.I16: out.writeI16,
        TType.I32: out.writeI32,
        TType.I64: out.writeI64,
        TType.DOUBLE: out.writeDouble,
        TType.STRING: out.writeBinary,
    }
    theirs = value[0]
    if kind in plain:
        plain[kind](theirs)
    elif kind == TType.STRUCT:
        out.writeStructBegin("")
        for number, (inner, held) in theirs.items():
            out.writeFieldBegin("", inner, number)
            _write(out, inner, held)
            out.writeFieldEnd()
        out.writeFieldStop()
        out.writeStructEnd()
    elif kind == TType.MAP:
        keys, values, pairs = theirs
        out.writeMapBegin(keys, values, len(pairs))
        for key, held in pairs:
            _write(out, keys, key)
            _write(out, values, held)
        out.writeMapEnd()
    else:
        inner, items = theirs
        begin, end = (
            (out.writeListBegin, out.writeListEnd)
            if kind == TType.LIST
            else (out.writeSetBegin, out.writeSetEnd)
        )
        begin(inner, len(items))
        for item in items:
            _write(out, inner, item)
        end()


@pytest.mark.seeds(60)
def test_structures_are_read_and_written_as_by_thrift(seed):
    random = Random(seed)
    made = _random(random, TType.STRUCT, 0)
    transport = TMemoryBuffer()
    _write(TCompactProtocol(transport), TType.STRUCT, made)
    data = transport.getvalue()
    found, end = read_struct(b"xy" + data + b"more", 2)
    assert end == len(data) + 2
    assert found.encoded() == data
    assert made[1].encoded() == data
    again, _ = read_struct(memoryview(data))
    assert again.encoded() == data
    for cut in random.sample(range(len(data)), min(len(data), 20)):
        with pytest.raises(TruncatedError):
            read_struct(data[:cut])


def test_nonsense_is_no_structure():
    for data in (
        b"\x1e\x00",
        b"\x10\x00\x00",
        b"\x15" + b"\xff" * 11,
        b"\x1c" * 100 + b"\x00" * 100,
    ):
        with pytest.raises(CompactError):
            read_struct(data)
