"""Every transform as a partition: Iceberg Java's library and icecomb put a row into the same one, and find it there."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal

import pytest

from icecomb.format.spec.types import UUIDType
from tests.interop.conftest import plain, row_values
from tests.interop.test_transforms import (
    COLUMNS,
    CONDITIONS,
    ROWS,
    SCHEMA,
    SPEC,
    VALUES,
    rows_of,
)
from tests.rings import sampled

WRITERS = ("python", "java")
ALSO = (
    "identity_s > 'abc'",
    "truncate_s like 'ab%'",
    "truncate_s like 'abcd%'",
    "truncate_l > 0",
    "month_tz < '1970-01-01T00:00:00+00:00'",
    "truncate_dec >= -0.01",
    "hour_ts is null",
    "bucket_l = -1 or truncate_s = 'abc'",
    "hour_tz >= '2024-12-31T23:00:00+00:00' or identity_s = ''",
    "not (month_day < '1970-01-01') and void_i is not null",
)

LITERALS = {
    "b": True,
    "i": -1,
    "l": -1,
    "dec": Decimal("-0.01"),
    "big": Decimal("-1.0000000001"),
    "day": dt.date(1969, 12, 31),
    "ts": VALUES["ts"][0],
    "tz": VALUES["tz"][0],
    "s": "abc",
    "u": uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"),
}
"""What `CONDITIONS` compare with."""
TRUE_FOR = {
    "=": lambda value, literal: value == literal,
    "in": lambda value, literal: value == literal,
    "<=": lambda value, literal: value is not None and value <= literal,
    ">": lambda value, literal: value is not None and value > literal,
    "!=": lambda value, literal: value is not None and value != literal,
    "is": lambda value, _: value is None,
}


@pytest.fixture(scope="module", params=sampled(["2", "1"], keep=1))
def written(request, library):
    """A table that is partitioned in every way, one row a partition."""
    name = f"transforms_v{request.param}"
    properties = {"format-version": request.param}
    table = library.catalog.create_table(
        library.own(name), SCHEMA, partition_spec=SPEC, properties=properties
    )
    table.append(rows_of("python"))
    kinds = {"id": None, "writer": None, **COLUMNS}
    rows = [
        {"id": i, "writer": "java"}
        | {name: VALUES[kind][i % len(VALUES[kind])] for name, kind in kinds.items() if kind}
        for i in range(ROWS)
    ]
    library.iceberg.append(library.name(name), [row_values(row, SCHEMA) for row in rows])
    return name


def test_all_rows_are_read_by_both(written, library):
    rows = library.agree(written, but=["peer"])
    given = [[r[0], *r[2:]] for r in library.arrow_rows(rows_of("python"))]
    for writer in WRITERS:
        assert [[r[0], *r[2:]] for r in rows if r[1] == writer] == given


def test_both_writers_give_a_row_the_same_partition_values(written, library):
    rows = library.python(written, None, "id, writer, _file")
    files = {f.file_path: f for f in library.files(written)}
    assert len(files) == ROWS * len(WRITERS)
    values = {w: {r[0]: files[r[2]].partition[1:] for r in rows if r[1] == w} for w in WRITERS}
    assert values["python"] == values["java"]


def test_partition_values_are_read_as_iceberg_java_reads_them(written, library):
    java = {f["path"]: f["partition"] for f in library.iceberg.files(library.name(written))}
    types = SPEC.partition_type(library.load(written).schema()).fields
    uuids = [isinstance(field.field_type, UUIDType) for field in types]
    assert any(uuids)
    ours = {f.file_path: [plain(value) for value in f.partition] for f in library.files(written)}
    assert ours == java


@pytest.mark.parametrize(
    "written",
    ["2", pytest.param("1", marks=pytest.mark.full("filters on format v1, too"))],
    indirect=True,
    scope="module",
)
@pytest.mark.parametrize("column", sampled(CONDITIONS, keep=4))
def test_a_filter_on_a_partition_s_source_loses_no_row(written, library, column):
    kind = COLUMNS[column]
    values = [VALUES[kind][i % len(VALUES[kind])] for i in range(ROWS)]
    for where in CONDITIONS[column]:
        matches = TRUE_FOR[where.removeprefix(f"{column} ").partition(" ")[0]]
        ids = [i for i, value in enumerate(values) if matches(value, LITERALS[kind])]
        expected = [[i, writer] for i in ids for writer in sorted(WRITERS)]
        assert library.python(written, where, "id, writer") == expected, where
        if not missed_by_java(column, where):
            assert library.java(written, where, "id, writer") == expected, where
    where = CONDITIONS[column][0]
    if kind != "u":
        assert library.plan(written, where) == library.iceberg.plan(library.name(written), where)


def missed_by_java(column, where):
    """It orders uuids as signed numbers, and the truncation of the least numbers overflows."""
    return COLUMNS[column] == "u" or (column in {"truncate_i", "truncate_l"} and "<=" in where)


@pytest.mark.parametrize("where", ALSO)
def test_filters_over_several_partitions_agree(written, library, where):
    rows = library.agree(written, where, "id, writer", but=["peer"])
    assert bool(rows) == ("abcd" not in where)
