"""Which paths are a table's own: only these are deleted because a file beside the table names them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from icecomb.format.errors import ConfigurationError
from icecomb.format.evolution.pending_update import PendingUpdate
from icecomb.format.evolution.property_update import UpdateLocation, UpdateProperties
from icecomb.format.evolution.replacement import TableReplacement
from icecomb.format.property.table_property import FORMER_FOLDERS
from icecomb.format.spec.change.update import update_table_metadata
from icecomb.format.spec.metadata import TableMetadata, new_table_metadata
from icecomb.format.spec.own_folders import OwnFolders, former_folders
from icecomb.format.spec.partition import UNPARTITIONED_PARTITION_SPEC
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.types import LongType, NestedField

SCHEMA = Schema((NestedField(1, "id", LongType()),))


def metadata_of(location: str, properties: Mapping[str, str]) -> TableMetadata:
    return new_table_metadata(
        SCHEMA, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, location, properties, now_ms=0
    )


def own(location: str, **properties: str) -> OwnFolders:
    named = {key.replace("_", "-").replace("--", "."): value for key, value in properties.items()}
    return OwnFolders(metadata_of(location, named), {})


def test_files_in_the_location_and_the_folders_of_properties_are_own():
    folders = own("file:/lake/t", write__data__path="/fast/t/", write__metadata__path="/meta/t")
    inside = ["/lake/t/data/a", "file:///lake//t/x", "/fast/t/a", "file:/meta/t/b", "/lake/t/./a"]
    outside = ["/lake/t2/a", "/lake/t/../u/a", "/lake/t", "/fast", "s3://lake/t/a", "/meta/tt/b"]
    assert folders.outside(inside + outside) == frozenset(outside)
    named = own("s3://b/t", write__object_storage__path="s3a://c/o")
    outside = ["s3://c/t/a", "/t/a", "s3://b/t/../u"]
    assert named.outside(["s3a://b/t/a", "s3://c/o/x", *outside]) == frozenset(outside)


def test_metadata_files_and_manifests_are_told_by_their_names():
    folders = own("/lake/t")
    files = ["v1.metadata.json", "00001-x.gz.metadata.json", "v2.metadata.json.gz"]
    lists = ["snap-1-1-u.avro", "u-m0.avro"]
    others = ["thesis.odt", "a.json", "data.avro", "v1.metadata.json.odt"]
    within = [f"/lake/t/metadata/{name}" for name in (*files, *lists, *others)]
    elsewhere = [f"/home/me/{name}" for name in (*files, *lists)]
    assert folders.metadata_files(within + elsewhere) == within[:3]
    assert folders.manifests(within + elsewhere) == within[3:5]


def test_former_folders_are_own_too():
    folders = own("/lake/t", icecomb__former_folders='["/old/t", "s3://b/u/"]')
    assert folders.outside(["/old/t/a", "s3a://b/u/a", "/old/u/a"]) == {"/old/u/a"}


def test_a_link_in_a_folder_leads_out_of_it(tmp_path: Path):
    table, home = tmp_path / "t", tmp_path / "home"
    (table / "data").mkdir(parents=True)
    home.mkdir()
    (table / "data" / "link").symlink_to(home)
    (tmp_path / "other").symlink_to(table)
    planted, real = f"{table}/data/link/thesis.odt", f"{table}/data/a"
    (table / "own").symlink_to(home / "thesis.odt")  # whoever deletes it deletes the link
    for location in (f"{table}", f"{tmp_path}/other", f"{tmp_path}/other/"):
        files = [planted, real, f"{tmp_path}/other/b", f"{table}/own"]
        assert own(location).outside(files) == {planted}


def updated(base: TableMetadata, change: PendingUpdate) -> TableMetadata:
    return update_table_metadata(base, change.apply(base).updates, base_location="x")


def test_who_changes_a_folder_keeps_the_old_one_as_the_tables_own():
    empty = metadata_of("/lake/t", {})
    assert FORMER_FOLDERS.key not in updated(empty, UpdateLocation("/lake/u")).properties
    data = updated(empty, UpdateProperties().set("write.data.path", "/fast/a"))
    assert FORMER_FOLDERS.key not in data.properties
    inside = updated(data, UpdateProperties().set("write.data.path", "/lake/t/b"))
    assert FORMER_FOLDERS.of(inside.properties) == ("/fast/a",)
    moved = updated(inside, UpdateLocation("/lake/u"))
    assert FORMER_FOLDERS.of(moved.properties) == ("/fast/a", "/lake/t")
    removed = updated(moved, UpdateProperties().remove("write.data.path"))
    assert FORMER_FOLDERS.of(removed.properties) == ("/fast/a", "/lake/t")
    replaced = updated(
        removed,
        TableReplacement(
            SCHEMA, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, location="/lake/v"
        ),
    )
    assert FORMER_FOLDERS.of(replaced.properties) == ("/fast/a", "/lake/t", "/lake/u")
    assert OwnFolders(replaced, {}).outside(["/fast/a/x", "/lake/u/x", "/lake/w/x"]) == {
        "/lake/w/x"
    }


def test_more_folders_than_a_metastore_can_hold_are_not_kept():
    few = former_folders(
        metadata_of("/lake/t", {}), ["/a/k=1", "/lake/t/k=2", "/a/k=3", "/a/k=1/x"]
    )
    assert few == {FORMER_FOLDERS.key: '["/a/k=1", "/a/k=3"]'}
    assert former_folders(metadata_of("/lake/t", {}), (f"/a/k={n}" for n in range(1000))) == {}


@pytest.mark.parametrize("said", ["/a", "[1]", '{"a": "b"}', '[""]'])
def test_a_list_that_is_none_is_refused(said: str):
    with pytest.raises(ConfigurationError, match="cannot be"):
        FORMER_FOLDERS.of({FORMER_FOLDERS.key: said})
