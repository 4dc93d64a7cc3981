"""Sketches have the bytes and estimates of the DataSketches libraries, however values are divided."""

from __future__ import annotations

import hashlib
import sys
from decimal import Decimal

import datasketches
import mmh3
import numpy as np
import pyarrow as pa
import pytest

from icecomb.format.errors import CorruptFileError, MissingDependencyError
from icecomb.format.spec.single_value import to_bytes
from icecomb.format.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    UnknownType,
)
from icecomb.format.statistics.statistics_file import SEED, ThetaSketch, distinct_hashes

OF_THE_JAVA_LIBRARY = {
    2: (2, "942abcb15f2dc060ec7b9edc80f9d5a7f700c5a1edf4fa5c20885ea905a385d4"),
    5000: (4999, "13f67872b6d4acadcf4df332088bc83c81003cf8a086568e68fe731335b52388"),
    100000: (99566, "ca7d1c5036ed274c3ce6c12f6aa995bb7fb3a60a630c8b68ad66df11c165d062"),
}
"""By n: the estimate and the SHA-256 of the union of an empty sketch and one of ints 0 to n - 1, each 4 bytes.

Made by datasketches-java 6.2.0, in the way of Iceberg Java's ThetaSketchAgg.
"""
VALUES = {
    BooleanType(): ([True, False, None], pa.bool_()),
    IntegerType(): ([0, 1, -5, 2**31 - 1, None], pa.int32()),
    LongType(): ([0, -1, 1 << 40, -(1 << 63)], pa.int64()),
    DateType(): ([0, -1, 19_000], pa.date32()),
    TimestampType(): ([0, -1, 1 << 50], pa.timestamp("us")),
    FloatType(): ([0.0, -0.0, 1.5, float("inf"), None], pa.float32()),
    DoubleType(): ([0.0, -0.0, 1.5, float("nan")], pa.float64()),
    StringType(): (["a", "", "äö", "x" * 1000, None], pa.string()),
    BinaryType(): ([b"a", b"", b"\0" * 20], pa.binary()),
    FixedType(3): ([b"abc", b"\0\0\0"], pa.binary(3)),
    DecimalType(9, 2): (
        [Decimal(n).scaleb(-2) for n in (0, 1, 127, 128, -128, -129, 32767, 32768, -(10**9) + 1)],
        pa.decimal128(9, 2),
    ),
    DecimalType(18, 0): ([Decimal(10**18 - 1), Decimal(-(10**18) + 1)], pa.decimal128(18, 0)),
    DecimalType(38, 1): ([Decimal("1.5"), Decimal(10**37 - 1), None], pa.decimal128(38, 1)),
}


def sketch(values, kind):
    found = ThetaSketch()
    found.add(values, kind)
    return found


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_a_value_is_hashed_as_its_single_value_bytes_and_a_null_or_no_bytes_not_at_all(kind):
    values, arrow = VALUES[kind]
    serialized = {to_bytes(kind, value) for value in values if value is not None} - {b""}
    expected = {mmh3.hash64(each, SEED, signed=False)[0] >> 1 for each in serialized}
    array = pa.array([*values[:1], *values], arrow)[1:]
    assert set(distinct_hashes(array, kind).tolist()) == expected


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (LongType(), pa.array(range(-300, 300))),
        (DoubleType(), pa.array([n / 3 for n in range(1, 300)])),
        (StringType(), pa.array([f"name {n}" for n in range(300)])),
    ],
    ids=str,
)
def test_the_retained_hashes_are_those_that_datasketches_computes_itself(kind, values):
    theirs = datasketches.update_theta_sketch(12)
    for value in values.to_pylist():
        theirs.update(value)
    ours = datasketches.compact_theta_sketch.deserialize(sketch(values, kind).content())
    assert sorted(ours) == sorted(theirs)


@pytest.mark.parametrize("count", OF_THE_JAVA_LIBRARY)
def test_bytes_and_estimate_are_those_of_the_java_library(count):
    found = sketch(pa.array(range(count), pa.int32()), IntegerType())
    digest = hashlib.sha256(found.content()).hexdigest()
    assert (found.estimate(), digest) == OF_THE_JAVA_LIBRARY[count]


def test_the_order_of_values_and_their_division_among_sketches_do_not_matter():
    numbers = np.random.default_rng(1).permutation(100_000).astype(np.int32)
    joined = ThetaSketch()
    for part in np.array_split(numbers, 7):
        joined.add(pa.array(part[:5000]), IntegerType())
        joined.add_sketch(sketch(pa.array(part[4000:]), IntegerType()).content(), "a file")
    assert hashlib.sha256(joined.content()).hexdigest() == OF_THE_JAVA_LIBRARY[100_000][1]


def test_a_column_without_values_has_an_empty_sketch():
    for array in (pa.nulls(3), pa.array([], pa.null())):
        empty = sketch(array, UnknownType())
        assert empty.estimate() == 0
        assert datasketches.compact_theta_sketch.deserialize(empty.content()).is_empty()


@pytest.mark.parametrize("content", [b"", b"nothing", bytes(40)])
def test_damaged_bytes_are_a_named_error(content):
    with pytest.raises(CorruptFileError, match=r"a\.stats is damaged"):
        ThetaSketch().add_sketch(content, "a.stats")


def test_without_the_library_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasketches", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'icecomb\[statistics\]'"):
        ThetaSketch()
