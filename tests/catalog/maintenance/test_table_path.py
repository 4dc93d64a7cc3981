"""rewrite_table_path: a copy of its files is the table, in all versions, formats and snapshots."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from copied_table import (
    content_of,
    follow,
    frame,
    ids,
    made,
    path_of,
    records,
    stated_lengths,
    texts,
)

from icecomb.catalog import load_catalog, open_table
from icecomb.format.errors import FileAlreadyExistsError, NoSuchFileError, ValidationError
from tests.rings import sampled

KINDS = (
    *((2, "parquet"), (2, "orc"), (3, "orc"), (2, "avro"), (3, "avro")),
    *((3, "parquet"), (1, "orc"), (1, "parquet"), (1, "avro")),
)
"""Format version, and format of data and delete files."""


def folder_of(table) -> Path:
    return path_of(table.metadata.location)


def copied(table, target, **arguments):
    """The metadata file of a copy that was made by the list."""
    done = table.maintenance.rewrite_table_path(table.metadata.location, str(target), **arguments)
    follow(done.file_list_location)
    return target / "metadata" / done.latest_version, done


@pytest.mark.parametrize(("version", "file_format"), sampled(KINDS, keep=5))
def test_a_copy_has_the_rows_of_all_snapshots_and_the_original_is_unchanged(
    lake, tmp_path, version, file_format
):
    grain = {"write.delete.granularity": "partition"}
    table = made(lake, version, **{"write.format.default": file_format}, **grain)
    folder = folder_of(table)
    before = content_of(folder)
    staging = tmp_path / "staging"

    metadata, done = copied(table, tmp_path / "moved to", staging_location=str(staging))

    assert content_of(folder) == before
    expected = {s.snapshot_id: ids(table, snapshot_id=s.snapshot_id) for s in table.snapshots()}
    folder.rename(tmp_path / "gone")
    copy = open_table(metadata)
    assert copy.metadata.location == str(tmp_path / "moved to")
    assert {i: ids(copy, snapshot_id=i) for i in expected} == expected
    assert ids(copy) == [i for i in range(20) if i not in {3, 13, 14}]
    assert ids(copy, "side") == [*range(20), 100]
    assert ids(copy, "old") == [*range(20)]
    assert done.rewritten_delete_file_paths_count == (0 if version == 1 else 2 + (version == 3))
    for name, text in texts(tmp_path / "moved to"):
        assert str(folder) not in text, name


@pytest.mark.parametrize("version", [2, 3])
def test_pyiceberg_reads_the_rows_of_a_copy(lake, tmp_path, version):
    pyiceberg = pytest.importorskip("pyiceberg.table")
    table = made(lake, version)
    metadata, _ = copied(table, tmp_path / "moved")
    folder_of(table).rename(tmp_path / "gone")
    peer = pyiceberg.StaticTable.from_metadata(str(metadata))
    found = sorted(peer.scan().to_arrow()["id"].to_pylist())
    assert found == [i for i in range(20) if i not in {3, 13, 14}]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_all_lengths_that_a_copy_states_are_those_of_its_files(lake, tmp_path, version):
    # iceberg#15470, iceberg#16910
    table = made(lake, version)
    metadata, _ = copied(table, tmp_path / "a longer name than the one it had before")
    stated = [*stated_lengths(metadata)]
    assert len(stated) > 10
    assert [(p, n) for p, n in stated if p.stat().st_size != n] == []


def test_only_locations_change_in_manifests_and_lists(lake, tmp_path):
    table = made(lake)
    snapshot = table.current_snapshot()
    metadata, _ = copied(table, tmp_path / "moved")
    old_list, new_list = (
        path_of(text)
        for text in (
            snapshot.manifest_list,
            open_table(metadata).current_snapshot().manifest_list,
        )
    )
    assert old_list.name == new_list.name
    changing = {"manifest_path", "manifest_length"}
    for old, new in zip(records(old_list), records(new_list), strict=True):
        assert {key for key in old if old[key] != new[key]} <= changing
        manifests = [records(path_of(one["manifest_path"])) for one in (old, new)]
        for entry, moved in zip(*manifests, strict=True):
            file, other = entry.pop("data_file"), moved.pop("data_file")
            assert moved == entry
            names = {key for key in file if file[key] != other[key]}
            by_position = {
                *("file_size_in_bytes", "lower_bounds", "upper_bounds", "column_sizes"),
                "referenced_data_file",
            }
            assert names <= {"file_path"} | (by_position if file["content"] == 1 else set())


def test_properties_that_name_folders_are_moved_and_others_refused(lake, tmp_path):
    table = made(lake)
    location = table.metadata.location
    with table.transaction() as change:
        change.set_properties({"write.data.path": f"{location}/elsewhere", "note": location})
    table.append(frame(50))
    metadata, _ = copied(table, tmp_path / "moved")
    copy = open_table(metadata)
    assert copy.properties["write.data.path"] == f"{tmp_path}/moved/elsewhere"
    assert copy.properties["note"] == location
    assert 50 in ids(copy)

    trusting = {**lake.properties, "own-folders.allowed-prefixes": "/some"}
    with load_catalog("lake", **trusting).load_table(table.name()).transaction() as change:
        change.set_properties({"write.data.path": "/some/where"})
    table.refresh()
    with pytest.raises(ValidationError, match=r"property write\.data\.path /some/where not under"):
        table.maintenance.rewrite_table_path(location, str(tmp_path / "other"))


def test_an_incremental_copy_has_what_is_new_and_states_true_lengths(lake, tmp_path):
    table = made(lake)
    target = tmp_path / "a longer name than the one it had before"
    first, _ = copied(table, target)
    old = {path.name for path in (target / "metadata").iterdir()}
    table.append(frame(60, 61))
    table.delete("id in (5, 60)")

    done = table.maintenance.rewrite_table_path(
        table.metadata.location, str(target), start_version=first.name
    )
    pairs = follow(done.file_list_location)  # which fails for files that are there

    names = [path_of(new).name for _, new in pairs]
    manifests = {
        path_of(each["manifest_path"]).name
        for snapshot in table.snapshots()
        for each in records(path_of(snapshot.manifest_list))
    }
    assert done.rewritten_manifest_file_paths_count == len(manifests - old)
    assert manifests - old <= set(names)
    assert done.rewritten_delete_file_paths_count == 2
    assert names[-2:] == ["v8.metadata.json", "v9.metadata.json"]
    metadata = target / "metadata" / done.latest_version
    expected = ids(table)
    folder_of(table).rename(tmp_path / "gone")
    assert ids(open_table(metadata)) == expected
    assert [(p, n) for p, n in stated_lengths(metadata) if p.stat().st_size != n] == []


def test_an_incremental_copy_goes_on_after_snapshots_were_expired(lake, tmp_path):
    table = made(lake)
    target = tmp_path / "moved"
    first, _ = copied(table, target)
    table.append(frame(60, 61))
    table.maintenance.expire_snapshots().retain_last(1).older_than(2**50).commit()
    expected = ids(table.refresh()), ids(table, "side"), ids(table, "old")
    done = table.maintenance.rewrite_table_path(
        table.metadata.location, str(target), start_version=first.name
    )
    follow(done.file_list_location, again=True)
    folder_of(table).rename(tmp_path / "gone")
    copy = open_table(target / "metadata" / done.latest_version)
    assert (ids(copy), ids(copy, "side"), ids(copy, "old")) == expected
    metadata = target / "metadata" / done.latest_version
    assert [(p, n) for p, n in stated_lengths(metadata) if p.stat().st_size != n] == []


def test_a_copy_up_to_an_older_version_is_the_table_of_that_time(lake, tmp_path):
    table = made(lake)
    older = table.metadata_location
    expected = ids(table)
    table.append(frame(70))
    name = path_of(older).name
    metadata, done = copied(table, tmp_path / "moved", end_version=name)
    assert done.latest_version == metadata.name == name
    assert ids(open_table(metadata)) == expected
    by_path, _ = copied(table, tmp_path / "again", end_version=older)
    assert by_path.name == name


def test_files_added_by_expired_snapshots_are_in_the_list(lake, tmp_path):
    # Iceberg lists what snapshots added that versions in the metadata log have
    table = made(lake, **{"write.metadata.previous-versions-max": "1"})
    table.maintenance.expire_snapshots().retain_last(1).older_than(2**50).commit()
    table.refresh().append(frame(80))
    expected = ids(table)
    metadata, _ = copied(table, tmp_path / "moved")
    folder_of(table).rename(tmp_path / "gone")
    assert ids(open_table(metadata)) == expected


def test_files_that_are_gone_are_not_in_the_list(lake, tmp_path):
    table = lake.create_table("db.t", frame(1).schema)
    table.append(frame(1, 2))
    table.append(frame(3))
    table.delete("id < 3")
    table.maintenance.expire_snapshots().retain_last(1).older_than(2**50).commit()
    assert len([*(folder_of(table) / "data").iterdir()]) == 1
    metadata, _ = copied(table.refresh(), tmp_path / "moved")
    assert ids(open_table(metadata)) == [3]
    assert len([*(tmp_path / "moved" / "data").iterdir()]) == 1


def test_a_list_is_only_made_when_it_is_asked_for(lake, tmp_path):
    table = made(lake)
    staging = tmp_path / "staged"
    done = table.maintenance.rewrite_table_path(
        table.metadata.location,
        str(tmp_path / "moved"),
        staging_location=f"{staging}/",
        create_file_list=False,
    )
    assert done.file_list_location == "N/A"
    assert (staging / "metadata" / done.latest_version).exists()
    assert not (staging / "file-list").exists()
    assert not (tmp_path / "moved").exists()


def test_staging_writes_over_nothing(lake, tmp_path):
    table = made(lake)
    location = table.metadata.location
    before = content_of(folder_of(table))
    with pytest.raises(FileAlreadyExistsError, match="is not empty"):
        table.maintenance.rewrite_table_path(location, "/moved", staging_location=location)
    assert content_of(folder_of(table)) == before


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("", "/b"), ValidationError, r"Source prefix\(''\) cannot be empty\."),
        (("/x", "/b"), ValidationError, r"Encountered table location .* not under the source pref"),
        (("/x", "/x"), ValidationError, r"Source prefix cannot be the same as target prefix"),
    ],
)
def test_prefixes_are_refused_as_iceberg_does(lake, arguments, error, message):
    with pytest.raises(error, match=message):
        made(lake).maintenance.rewrite_table_path(*arguments)


def test_whether_to_list_the_files_is_no_text(lake):
    table = made(lake)
    location = table.metadata.location
    with pytest.raises(
        ValidationError, match="Argument create_file_list must be True or False, not 'no'"
    ):
        table.maintenance.rewrite_table_path(location, "/moved", create_file_list="no")


def test_versions_are_refused_as_iceberg_does(lake):
    table = made(lake)
    location = table.metadata.location
    act = table.maintenance.rewrite_table_path
    with pytest.raises(ValidationError, match=r"Cannot find provided version file v99\.metadata"):
        act(location, "/b", start_version="v99.metadata.json")
    with pytest.raises(ValidationError, match=r"Start version\(' '\) cannot be empty\."):
        act(location, "/b", start_version=" ")
    with pytest.raises(ValidationError, match=r"End version\(''\) cannot be empty\."):
        act(location, "/b", end_version="")
    with pytest.raises(ValidationError, match=r"Staging location\(''\) cannot be empty\."):
        act(location, "/b", staging_location="")
    with pytest.raises(ValidationError, match="is newer than end version"):
        act(location, "/b", start_version="v5.metadata.json", end_version="v3.metadata.json")
    (folder_of(table) / "metadata" / "v2.metadata.json").unlink()
    with pytest.raises(NoSuchFileError, match=r"Version file .*v2\.metadata\.json does not exist"):
        act(location, "/b", end_version="v2.metadata.json")
    with pytest.raises(NoSuchFileError, match=r"v2\.metadata\.json does not exist"):
        act(location, "/b")


def test_two_spellings_of_one_file_do_not_become_one(lake, tmp_path):
    table = made(lake)
    file = next(iter(table.scan().plan_files())).file.file_path
    table.add_files([f"file://{file}"], check_duplicate_files=False)
    with pytest.raises(ValidationError, match="would both become"):
        table.maintenance.rewrite_table_path(table.metadata.location, str(tmp_path / "moved"))


def test_compressed_metadata_stays_compressed_and_unknown_members_stay(lake, tmp_path):
    table = made(lake, **{"write.metadata.compression-codec": "gzip"})
    metadata, _ = copied(table, tmp_path / "moved")
    assert metadata.name.endswith(".gz.metadata.json")
    assert ids(open_table(metadata)) == ids(table)


@pytest.mark.parametrize(("codec", "name"), [("zstd", b"zstandard"), ("snappy", b"snappy")])
def test_manifests_keep_their_codec(lake, tmp_path, codec, name):
    table = made(lake, **{"write.manifest.compression-codec": codec})
    metadata, _ = copied(table, tmp_path / "moved")
    assert ids(open_table(metadata)) == ids(table)
    for path in metadata.parent.glob("*.avro"):
        assert name in path.read_bytes()[:20_000], path


def test_members_that_icecomb_does_not_know_are_kept(lake, tmp_path):
    table = made(lake)
    path = path_of(table.metadata_location)
    document = json.loads(path.read_text())
    document["x-new"] = {"a": [1, 2.5]}
    document["snapshots"][0]["x-of-snapshot"] = "y"
    path.write_text(json.dumps(document))
    metadata, _ = copied(lake.load_table("db.t"), tmp_path / "moved")
    found = json.loads(metadata.read_text())
    assert found["x-new"] == {"a": [1, 2.5]}
    assert found["snapshots"][0]["x-of-snapshot"] == "y"
    assert set(found) == set(document)


def test_partition_values_of_all_types_are_kept(lake, tmp_path):
    rows = pa.table(
        {"id": pa.array([1, 2], pa.int64()), "f": pa.array([b"abc", None], pa.binary(3))}
    )
    table = lake.create_table("db.fixed", rows.schema)
    with table.update_spec() as change:
        change.add_identity("f")
    table.append(rows)
    metadata, _ = copied(table, tmp_path / "moved")
    assert ids(open_table(metadata)) == [1, 2]
