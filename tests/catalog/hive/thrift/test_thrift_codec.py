"""Entries of a metastore as they can be, whoever wrote them, are read and go back as they came."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hmsclient.genthrift.hive_metastore import ttypes
from hypothesis import given, strategies as st
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer

from icecomb.catalog.hive.thrift.thrift_codec import (
    partition_from_wire,
    partition_to_wire,
    skewed_columns,
    table_from_wire,
    table_to_wire,
)

FORMS = {
    ttypes.Table: (table_from_wire, table_to_wire),
    ttypes.Partition: (partition_from_wire, partition_to_wire),
}
NUMBERS = {TType.BYTE: 8, TType.I16: 16, TType.I32: 32, TType.I64: 64}
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
ENUMS = {
    "ownerType": ttypes.PrincipalType,
    "type": ttypes.PrincipalType,
    "grantorType": ttypes.PrincipalType,
}


class Key(list[Any]):
    """A list that a dict takes, for the protocol to write."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))


def values(type_id: int, more: Any) -> st.SearchStrategy[Any]:
    """Anything of a type of Thrift, as `thrift_spec` describes it."""
    if type_id in NUMBERS:
        half = 1 << (NUMBERS[type_id] - 1)
        return st.integers(-half, half - 1)
    if type_id == TType.BOOL:
        return st.booleans()
    if type_id == TType.DOUBLE:
        return st.floats(allow_nan=False)
    if type_id == TType.STRING:
        return st.binary(max_size=5) if more == "BINARY" else TEXTS
    if type_id == TType.STRUCT:
        return structs(more[0])
    if type_id == TType.LIST:
        return st.lists(values(more[0], more[1]), max_size=2).map(Key)
    if type_id == TType.SET:
        return st.sets(values(more[0], more[1]), max_size=2)
    assert type_id == TType.MAP
    return st.dictionaries(values(more[0], more[1]), values(more[2], more[3]), max_size=2)


def structs(kind: Any) -> st.SearchStrategy[Any]:
    """Structs of which any field may be missing."""
    members = {
        entry[2]: st.none() | values(entry[1], entry[3])
        for entry in kind.thrift_spec
        if entry and entry[2] not in ENUMS
    }
    return st.builds(kind, **members)


def encoded(struct: Any) -> bytes:
    """The binary form as Java writes it: keys may be lists."""
    buffer = TMemoryBuffer()
    struct.write(TBinaryProtocol(buffer))
    return bytes(buffer.getvalue())


def skewed(kind: Any) -> bytes:
    """An entry as Hive leaves it after rows went into a table SKEWED BY … STORED AS DIRECTORIES."""
    places: Any = {Key(["x"]): "/lake/t/s=x", Key(["y"]): "/lake/t/s=y"}
    info = ttypes.SkewedInfo(["s"], [["x"], ["y"]], places)
    columns = [ttypes.FieldSchema("s", "string", "")]
    storage = ttypes.StorageDescriptor(cols=columns, location="/lake/t", skewedInfo=info)
    return encoded(kind(sd=storage, parameters={"a": "1"}))


@pytest.mark.parametrize("kind", FORMS)
def test_values_of_skewed_by_are_passed_over_and_go_back_as_they_came(kind: Any) -> None:
    read, write = FORMS[kind]
    data = skewed(kind)
    found = read(data)
    assert found.storage.location == "/lake/t"
    assert write(found) == data
    changed = write(replace(found, parameters={"a": "2"}))
    assert read(changed).parameters == {"a": "2"}
    for part in (b"/lake/t/s=x", b"/lake/t/s=y"):
        assert part in changed
    if kind is ttypes.Table:
        assert skewed_columns(read(changed)) == ("s",)


@pytest.mark.parametrize("kind", FORMS)
@given(data=st.data())
def test_any_entry_is_read_and_goes_back_as_it_came(kind: Any, data: st.DataObject) -> None:
    read, write = FORMS[kind]
    given_bytes = encoded(data.draw(structs(kind)))
    found = read(given_bytes)
    assert write(found) == given_bytes
    other = replace(found, parameters={**found.parameters, "mine": "1"})
    again = read(write(other))
    assert replace(again, wire=None) == replace(other, wire=None)
    back = read(write(replace(again, parameters=found.parameters)))
    assert replace(back, wire=None) == replace(found, wire=None)
