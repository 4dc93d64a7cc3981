"""Every layout of Arrow against what the values are one by one."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from icecomb.format.arrow.plain_layout import (
    is_plain,
    of_short_offsets,
    plain_array,
    plain_batch,
    plain_schema,
    plain_type,
)
from icecomb.format.errors import ValidationError

Draw = Callable[[st.SearchStrategy[Any]], Any]

OUT_OF_ORDER = pa.ListViewArray.from_arrays(
    pa.array([2, 0, 5, 1, 0]),
    pa.array([2, 3, 0, 2, 6]),
    pa.array(range(6)),
    mask=pa.array([False, False, False, True, False]),
)


def agree(array: pa.Array) -> None:
    """What became of an array is valid, plain, and the same values."""
    made = plain_array(array)
    made.validate(full=True)
    assert is_plain(made.type)
    assert made.type == plain_type(array.type)
    assert made.to_pylist() == array.to_pylist()
    assert made.null_count == sum(value is None for value in array.to_pylist())


def test_views_out_of_order_that_overlap_keep_their_values():
    made = plain_array(OUT_OF_ORDER)
    assert made.to_pylist() == [[2, 3], [0, 1, 2], [], None, [0, 1, 2, 3, 4, 5]]
    assert plain_array(OUT_OF_ORDER.slice(1, 3)).to_pylist() == [[0, 1, 2], [], None]
    assert plain_array(OUT_OF_ORDER.slice(2, 0)).to_pylist() == []


def test_views_that_leave_values_out_are_not_taken_for_a_list():
    gap = pa.ListViewArray.from_arrays(pa.array([0, 1, 3]), pa.array([2, 1, 1]), pa.array(range(4)))
    assert plain_array(gap).to_pylist() == [[0, 1], [1], [3]]


def test_views_in_order_are_a_list_over_the_same_values():
    values = pa.array(range(1000))
    views = pa.LargeListViewArray.from_arrays(pa.array([0, 600]), pa.array([600, 400]), values)
    made = plain_array(views)
    assert made.values.buffers()[1].address == values.buffers()[1].address


def test_what_is_plain_already_is_the_same_object():
    array = pa.array([[{"a": [1], "m": [("k", b"v")]}]], pa.large_list(pa.struct([("a", pa.list_(pa.int8())), ("m", pa.map_(pa.string(), pa.binary()))])))  # fmt: skip
    batch = pa.record_batch([array], ["a"])
    assert plain_array(array) is array
    assert plain_batch(batch) is batch


def test_a_batch_keeps_its_names_its_metadata_and_what_is_required():
    schema = pa.schema(
        [
            pa.field("v", pa.list_view(pa.int64()), nullable=False, metadata={"doc": "views"}),
            pa.field("d", pa.dictionary(pa.int8(), pa.string())),
        ],
        metadata={"pandas": "yes"},
    )
    batch = pa.record_batch([[[1], []], ["a", None]], schema=schema)
    made = plain_batch(batch)
    assert made.to_pydict() == {"v": [[1], []], "d": ["a", None]}
    assert made.schema.equals(plain_schema(schema), check_metadata=True)
    assert made.schema.metadata == schema.metadata
    assert made.schema.field("v").metadata == {b"doc": b"views"}
    assert not made.schema.field("v").nullable


@pytest.mark.parametrize(
    ("starts", "sizes"), [([0, 5], [1, 2]), ([-1, 0], [1, 1]), ([0, 7], [-1, 1])]
)
def test_a_view_that_points_outside_is_refused_before_it_is_followed(starts, sizes):
    buffers = [None, *(pa.py_buffer(np.array(n, np.int32)) for n in (starts, sizes))]
    broken = pa.Array.from_buffers(
        pa.list_view(pa.int64()), 2, buffers, children=[pa.array(range(6))]
    )
    with pytest.raises(ValidationError, match="outside of its 6 values"):
        plain_array(broken)


@pytest.fixture
def far(tmp_path) -> tuple[pa.Buffer, pa.Buffer]:
    """A buffer of more than 2 GiB that takes no memory, and offsets at its end."""
    with (tmp_path / "zeros").open("wb") as file:
        file.truncate((1 << 31) + 100)
    offsets = pa.py_buffer(np.array([0, (1 << 31) + 5, (1 << 31) + 8, (1 << 31) + 8], np.int64))
    return pa.memory_map(str(tmp_path / "zeros")).read_buffer(), offsets


def test_offsets_of_a_slice_of_much_text_are_made_short(far):
    zeros, offsets = far
    for kind, wanted in ((pa.large_string(), pa.string()), (pa.large_binary(), pa.binary())):
        texts = pa.Array.from_buffers(kind, 3, [None, offsets, zeros])
        made = of_short_offsets(texts.slice(1), wanted)
        assert made.cast(pa.binary()).to_pylist() == [b"\0\0\0", b""]
        with pytest.raises(pa.ArrowInvalid):
            of_short_offsets(texts, wanted)


def test_offsets_of_a_slice_of_many_lists_are_made_short(far):
    zeros, offsets = far
    values = pa.Array.from_buffers(pa.int8(), len(zeros), [None, zeros])
    kind = pa.large_list(pa.int8())
    lists = pa.Array.from_buffers(kind, 3, [None, offsets], children=[values])
    assert of_short_offsets(lists.slice(1), pa.list_(pa.int8())).to_pylist() == [[0, 0, 0], []]
    with pytest.raises(pa.ArrowInvalid):
        of_short_offsets(lists, pa.list_(pa.int8()))


LEAVES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int64(), st.integers(-3, 3)),
    (pa.bool_(), st.booleans()),
    (pa.float64(), st.sampled_from([0.5, -1.0])),
    (pa.decimal128(5, 2), st.sampled_from([Decimal("1.25"), Decimal("-3.00")])),
    (pa.date32(), st.sampled_from([dt.date(2024, 1, 31), dt.date(1960, 2, 29)])),
    (pa.string(), st.sampled_from(["", "a", "größe", "longer than twelve bytes"])),
    (pa.large_string(), st.sampled_from(["", "b", "longer than twelve bytes"])),
    (pa.string_view(), st.sampled_from(["", "c", "longer than twelve bytes"])),
    (pa.binary_view(), st.sampled_from([b"", b"\xff", b"longer than twelve bytes"])),
    (pa.binary(2), st.sampled_from([b"ab", b"\x00\xff"])),
]


@st.composite
def arrays(draw: Draw, depth: int = 3) -> pa.Array:
    """An array of some layout, over arrays of other layouts, often cut out of a longer one."""
    length = draw(st.integers(0, 6))
    whole = draw(_arrays(length + draw(st.integers(0, 3)), depth))
    return whole.slice(draw(st.integers(0, len(whole) - length)), length)


def _arrays(length: int, depth: int) -> st.SearchStrategy[pa.Array]:
    inner = [_leaf(length)]
    if depth:
        makers = (_views, _fixed, _offset_list, _struct, _map, _dictionary, _run_ends)
        inner += [make(length, depth - 1) for make in makers]
    return st.one_of(inner)


def _nulls(draw: Draw, length: int) -> list[bool]:
    return draw(st.lists(st.booleans(), min_size=length, max_size=length))


@st.composite
def _leaf(draw: Draw, length: int) -> pa.Array:
    kind, values = draw(st.sampled_from(LEAVES))
    return pa.array(draw(st.lists(st.none() | values, min_size=length, max_size=length)), kind)


@st.composite
def _views(draw: Draw, length: int, depth: int) -> pa.Array:
    values = draw(arrays(depth))
    starts, sizes = [], []
    for _ in range(length):
        start = draw(st.integers(0, len(values)))
        starts.append(start)
        sizes.append(draw(st.integers(0, len(values) - start)))
    make, number = draw(
        st.sampled_from([(pa.ListViewArray, pa.int32()), (pa.LargeListViewArray, pa.int64())])
    )
    mask = pa.array(_nulls(draw, length), pa.bool_()) if draw(st.booleans()) else None
    return make.from_arrays(pa.array(starts, number), pa.array(sizes, number), values, mask=mask)


@st.composite
def _fixed(draw: Draw, length: int, depth: int) -> pa.Array:
    size = draw(st.integers(1, 2))
    values = draw(_arrays(length * size, depth))
    mask = pa.array(_nulls(draw, length), pa.bool_()) if draw(st.booleans()) else None
    return pa.FixedSizeListArray.from_arrays(values, size, mask=mask)


@st.composite
def _offset_list(draw: Draw, length: int, depth: int) -> pa.Array:
    values = draw(arrays(depth))
    cuts = st.lists(st.integers(0, len(values)), min_size=length + 1, max_size=length + 1)
    make, number = draw(
        st.sampled_from([(pa.ListArray, pa.int32()), (pa.LargeListArray, pa.int64())])
    )
    mask = pa.array(_nulls(draw, length), pa.bool_()) if draw(st.booleans()) else None
    return make.from_arrays(pa.array(sorted(draw(cuts)), number), values, mask=mask)


@st.composite
def _struct(draw: Draw, length: int, depth: int) -> pa.Array:
    names = ["a", "b"][: draw(st.integers(1, 2))]
    children = [draw(_arrays(length, depth)) for _ in names]
    mask = pa.array(_nulls(draw, length), pa.bool_()) if draw(st.booleans()) else None
    return pa.StructArray.from_arrays(children, names, mask=mask)


@st.composite
def _map(draw: Draw, length: int, depth: int) -> pa.Array:
    values = draw(arrays(depth))
    keys = pa.array([f"key {n}" for n in range(len(values))], pa.string_view())
    cuts = st.lists(st.integers(0, len(values)), min_size=length + 1, max_size=length + 1)
    mask = pa.array(_nulls(draw, length), pa.bool_()) if draw(st.booleans()) else None
    offsets = pa.array(sorted(draw(cuts)), pa.int32())
    return pa.MapArray.from_arrays(offsets, keys, values, mask=mask)


@st.composite
def _dictionary(draw: Draw, length: int, depth: int) -> pa.Array:
    values = draw(arrays(depth))
    number = draw(st.sampled_from([pa.int8(), pa.uint8(), pa.int64()]))
    place = st.none() | st.integers(0, len(values) - 1) if len(values) else st.none()
    places = draw(st.lists(place, min_size=length, max_size=length))
    return pa.DictionaryArray.from_arrays(pa.array(places, number), values)


@st.composite
def _run_ends(draw: Draw, length: int, depth: int) -> pa.Array:
    number = draw(st.sampled_from([pa.int16(), pa.int32(), pa.int64()]))
    ends = sorted({*draw(st.lists(st.integers(1, length), max_size=3)), length}) if length else []
    values = draw(_arrays(len(ends), depth))
    return pa.RunEndEncodedArray.from_arrays(pa.array(ends, number), values)


@given(arrays())
def test_whatever_the_layouts_the_values_are_the_same(array):
    agree(array)


@given(st.lists(arrays(1), min_size=1, max_size=3))
def test_all_columns_of_a_batch_are_made_plain(columns):
    rows = min(map(len, columns))
    names = [f"c{n}" for n in range(len(columns))]
    batch = pa.record_batch([c.slice(0, rows) for c in columns], names)
    made = plain_batch(batch)
    made.validate(full=True)
    assert made.to_pylist() == batch.to_pylist()
    assert made.schema == plain_schema(batch.schema)
