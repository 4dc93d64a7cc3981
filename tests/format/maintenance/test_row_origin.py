"""Where the rows of new files came from, beside a list that says it row by row."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from icecomb.format.errors import FileIOError, ValidationError
from icecomb.format.maintenance import row_origin
from icecomb.format.maintenance.row_origin import MOST_SOURCES, RowOrigins, with_origins
from icecomb.format.rows.values.data_metrics import MetricsConfig
from icecomb.format.rows.write.file_options import load_file_options
from icecomb.format.rows.write.file_settings import FileSettings
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import LongType, NestedField
from icecomb.format.storage.file_io import FileIO

SCHEMA = Schema((NestedField(1, "id", LongType()),))
Place = tuple[int, int]
"""The number of a source file, and a position in it."""

PLACES = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 30)), unique=True, max_size=60
) | st.integers(0, 40).map(lambda rows: [(row % 2, row) for row in range(rows)])


def recorded(folder: Path, files: Iterable[list[list[Place]]]) -> RowOrigins:
    """Origins of files that were written batch by batch."""
    settings = FileSettings(
        SCHEMA, load_file_options("avro", {}), MetricsConfig.from_properties({}, SCHEMA)
    )
    origins = RowOrigins()
    for number, batches in enumerate(files):
        path = f"{folder}/{number}.avro"
        file = origins.open_file(FileIO(), path, settings, PartitionSpec(0, ()), ())
        for places in batches:
            positions = np.array([position for _, position in places], np.int64)
            sources = np.array([source for source, _ in places], np.int64)
            rows = [
                with_origins(
                    pa.record_batch({"id": pa.array([at], pa.int64())}), int(source), pa.array([at])
                )
                for source, at in zip(sources, positions, strict=True)
            ]
            if rows:
                file.write([pa.concat_batches(rows)])
        assert file.close().record_count == sum(map(len, batches))
    return origins


def by_row(
    files: list[list[list[Place]]], removed: set[int], deleted: set[Place]
) -> dict[int, list[int]]:
    """The rows of each new file that are gone, looked up one by one."""
    gone = {}
    for number, batches in enumerate(files):
        rows = [place for batch in batches for place in batch]
        found = [at for at, row in enumerate(rows) if row[0] in removed or row in deleted]
        if found:
            gone[number] = found
    return gone


@given(
    places=PLACES,
    cuts=st.lists(st.integers(1, 12), min_size=1, max_size=8),
    a_file=st.integers(1, 4),
    removed=st.sets(st.integers(0, 3), max_size=2),
    deleted=st.sets(st.tuples(st.integers(0, 3), st.integers(0, 35)), max_size=30),
    in_memory=st.sampled_from([0, 100, 1 << 20]),
)
def test_rows_are_found_wherever_they_went(
    tmp_path_factory, places, cuts, a_file, removed, deleted, in_memory
):
    batches, at = [], 0
    while at < len(places):
        size = cuts[len(batches) % len(cuts)]
        batches.append(places[at : at + size])
        at += size
    files = [batches[i : i + a_file] for i in range(0, len(batches), a_file)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_origin, "IN_MEMORY", in_memory)
        origins = recorded(tmp_path_factory.mktemp("files"), files)
    positions = {
        source: np.array(sorted(p for s, p in deleted if s == source), np.int64)
        for source in {s for s, _ in deleted}
    }
    found = {
        int(Path(file.file_path).stem): rows.tolist()
        for file, rows in origins.affected(removed, positions)
    }
    origins.close()
    assert found == by_row(files, removed, deleted)


def test_rows_that_stay_together_take_next_to_nothing(tmp_path):
    origins = RowOrigins()
    settings = FileSettings(
        SCHEMA, load_file_options("parquet", {}), MetricsConfig.from_properties({}, SCHEMA)
    )
    file = origins.open_file(FileIO(), f"{tmp_path}/0.parquet", settings, PartitionSpec(0, ()), ())
    for begin in range(0, 1_000_000, 100_000):
        ids = pa.array(range(begin, begin + 100_000), pa.int64())
        file.write([with_origins(pa.record_batch({"id": ids}), 7, ids)])
    file.close()
    assert origins._bytes == 16
    [(_, rows)] = origins.affected((), {7: np.array([0, 999_999], np.int64)})
    assert rows.tolist() == [0, 999_999]


def test_positions_that_no_file_has_delete_no_row_of_another_source():
    origins = RowOrigins()
    first = 1 << 40
    origins.keep("new", np.array([0, first], np.int64), np.array([10, 10], np.int64))
    beyond = np.array([-first + 1, -4, 2, 11, first + 5, 1 << 62], np.int64)
    assert [rows.tolist() for _, rows in origins.affected((), {0: beyond})] == [[2]]
    assert [rows.tolist() for _, rows in origins.affected((), {1: beyond})] == [[12]]


def test_too_many_files_of_a_group_are_refused():
    ids = pa.array([0], pa.int64())
    with pytest.raises(ValidationError, match="Cannot number row 0 of file"):
        with_origins(pa.record_batch({"id": ids}), MOST_SOURCES, ids)


def test_origins_without_a_temporary_folder_are_an_error_of_icecomb(monkeypatch, tmp_path):
    monkeypatch.setattr(row_origin, "IN_MEMORY", 0)
    monkeypatch.setattr(row_origin.tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(FileIOError, match=r"Cannot keep origins of rows in .*: No such file"):
        RowOrigins().keep("new", np.array([0], np.int64), np.array([1], np.int64))
