"""Which paths are a table's own: only these are deleted because a file beside the table names them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

import pytest

from icecomb.format.errors import ConfigurationError, ValidationError
from icecomb.format.evolution.pending_update import PendingUpdate
from icecomb.format.evolution.property_update import UpdateLocation, UpdateProperties
from icecomb.format.evolution.replacement import TableReplacement
from icecomb.format.property.property import registered
from icecomb.format.property.table_property import FORMER_FOLDERS
from icecomb.format.spec.change.update import update_table_metadata
from icecomb.format.spec.metadata import TableMetadata, new_table_metadata
from icecomb.format.spec.own_folders import OwnFolders, confirmed, former_folders, outside_text
from icecomb.format.spec.partition import UNPARTITIONED_PARTITION_SPEC
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.types import LongType, NestedField
from icecomb.format.storage import storage_property
from icecomb.format.storage.storage_property import OWN_PREFIXES
from tests.peers.other_user import give_away

SCHEMA = Schema((NestedField(1, "id", LongType()),))


def metadata_of(location: str, properties: Mapping[str, str]) -> TableMetadata:
    return new_table_metadata(
        SCHEMA, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, location, properties, now_ms=0
    )


def own(*vouched: str) -> OwnFolders:
    return OwnFolders(vouched, metadata_of("/victim", {"write.data.path": "/victim/2"}), {})


def test_files_in_the_folders_that_the_catalog_vouches_for_are_own():
    folders = own("file:/lake/t", "/fast/t/", "/meta/t")
    inside = ["/lake/t/data/a", "file:///lake//t/x", "/fast/t/a", "file:/meta/t/b", "/lake/t/./a"]
    outside = ["/lake/t2/a", "/lake/t/../u/a", "/lake/t", "/fast", "s3://lake/t/a", "/meta/tt/b"]
    assert folders.outside(inside + outside) == frozenset(outside)
    dotted = ["/lake/t2/a", "/lake/t"]
    assert own("/lake/u/../t/").outside(["/lake/t/a", *dotted]) == frozenset(dotted)
    named = own("s3://b/t", "s3a://c/o")
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


NAMED = {
    "write.data.path": "/fast/t/",
    "write.metadata.path": "s3://b/m",
    FORMER_FOLDERS.key: '["/old/t"]',
}


@pytest.mark.parametrize(
    ("vouched", "allowed", "location", "found"),
    [
        pytest.param(["/lake/t"], "", "/lake/t", ["/lake/t"], id="the catalog's"),
        pytest.param(["/lake/t"], "", "/victim", ["/lake/t"], id="not what metadata says"),
        pytest.param(["/lake/t"], "", "/", ["/lake/t"], id="nor the root"),
        pytest.param([], "", "/lake/t", [], id="nobody vouches for any"),
        pytest.param(["/lake/t"], "/fast", "/lake/t", ["/lake/t", "/fast/t/"], id="allowed"),
        pytest.param(["/lake/t"], "/fast/t", "/lake/t", ["/lake/t", "/fast/t/"], id="itself"),
        pytest.param(["/lake/t"], "/fas,/fast/u", "/lake/t", ["/lake/t"], id="others allowed"),
        pytest.param(
            ["/lake/t"], "s3a://b/, /old", "/", ["/lake/t", "s3://b/m", "/old/t"], id="several"
        ),
        pytest.param(["/lake/t"], "/", "/", ["/lake/t", "/fast/t/", "/old/t"], id="no root, ever"),
        pytest.param(
            ["", "/", "file:///", "/lake/..", "hdfs://nn/", "s3://b"], "", "/", [], id="root"
        ),
        pytest.param(["hdfs://nn/t", "/home"], "", "/", ["hdfs://nn/t"], id="local, table is not"),
        pytest.param(["/t", "s3://b/t"], "", "/", ["/t", "s3://b/t"], id="remote, table is local"),
        pytest.param(["s3://b/t"], "/old", "/", ["s3://b/t", "/old/t"], id="local and allowed"),
    ],
)
def test_what_folders_are_a_tables_own(
    vouched: list[str], allowed: str, location: str, found: list[str]
):
    metadata = metadata_of(location, NAMED)
    settings = {"own-folders.allowed-prefixes": allowed} if allowed else {}
    assert list(OwnFolders(vouched, metadata, settings).folders) == found


def test_no_folder_that_has_the_warehouse_in_it_is_a_tables_own():
    metadata = metadata_of("/", {})
    vouched = ["/lake/db/t", "/lake", "file:/lake/wh", "/lake/wh/../", "/lake/wh2"]
    folders = OwnFolders(vouched, metadata, {"warehouse": "/lake/wh/"}).folders
    assert list(folders) == ["/lake/db/t", "/lake/wh2"]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        pytest.param("/lake/t", True, id="the catalog's"),
        pytest.param("file:///lake/t/", True, id="the same, spelled otherwise"),
        pytest.param("/lake/t/sub", False, id="below"),
        pytest.param("/victim", False, id="the metadata named it before"),
        pytest.param("/lake", False, id="above"),
        pytest.param("/new", True, id="whoever commits names it"),
    ],
)
def test_a_commit_vouches_for_the_folders_that_it_names_itself(wanted: str, found: bool):  # noqa: FBT001
    before = ["/victim/", "/lake", "/lake/t/sub", "file:///lake/t/"]
    assert confirmed([wanted], ["/lake/t", ""], before, {}) == ({wanted} if found else set())


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


def test_below_a_folder_of_the_table_nobody_s_link_leads_to_more_folders(tmp_path: Path):
    """A commit may have vouched for the folder before a writer of the table exchanged it."""
    table, home = tmp_path / "t", tmp_path / "home"
    for folder in (table, home):
        folder.mkdir()
    (table / "x").symlink_to(home)
    files = [f"{home}/thesis.odt", f"{table}/x/thesis.odt"]
    for vouched in ([f"{table}", f"{table}/x"], [f"{table}/x", f"file:{table}/"]):
        assert own(*vouched).outside([*files, f"{table}/a"]) == {*files}


@pytest.mark.parametrize("place", ["{}", "{}/", "file:{}/below", "{}/../link/a/b"])
def test_a_folder_behind_a_link_is_the_tables_if_the_user_made_the_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
):
    link, real = tmp_path / "link", tmp_path / "real"
    (real / "below").mkdir(parents=True)
    link.symlink_to("real")
    vouched = place.format(link)
    found = vouched.removeprefix("file:").replace("/../link", "").replace("/link", "/real")
    assert own(vouched, "/lake/t").folders == {
        vouched: f"{found.rstrip('/')}/",
        "/lake/t": "/lake/t/",
    }
    give_away(link, monkeypatch)
    assert list(own(vouched, "/lake/t").folders) == ["/lake/t"]
    settings = {"own-folders.allowed-prefixes": str(tmp_path)}
    named = metadata_of("/lake/t", {"write.data.path": str(link)})
    assert list(OwnFolders(["/lake/t"], named, settings).folders) == ["/lake/t"]


@pytest.mark.parametrize(
    ("folder", "allowed"),
    [
        ("/lake/t/data", True),
        ("file:///lake/t/", True),
        ("/victim/data", False),
        ("/lake/t2/data", False),
        ("/lake/t/../u", False),
        ("s3://lake/t/data", False),
        ("/fast/t/data", True),
    ],
)
def test_new_files_are_written_to_the_tables_folders_only(folder: str, allowed: bool):  # noqa: FBT001
    metadata = metadata_of("/victim", {"write.data.path": "/fast/t/"})
    found = OwnFolders(["/lake/t"], metadata, {"own-folders.allowed-prefixes": "/fast"})
    refused = pytest.raises(ValidationError, match=f"db.t: new files would go to {folder}, which")
    with nullcontext() if allowed else refused:
        found.check_new_files("db.t", [folder])


def test_new_files_may_be_behind_links_of_the_user_in_the_table(tmp_path: Path):
    (tmp_path / "data").symlink_to("/elsewhere")
    own(str(tmp_path)).check_new_files("db.t", [f"{tmp_path}/data"])
    (tmp_path / "other").symlink_to(tmp_path / "t")
    own(f"{tmp_path}/t").check_new_files("db.t", [f"{tmp_path}/other/data"])


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


@pytest.mark.parametrize("key", ["own-folders.allowed-prefixes", "local.allowed-prefixes"])
@pytest.mark.parametrize("said", ["", " ", "5", "['/a']", "a", "/a, b", "..", "s3:", "s3://"])
def test_what_names_no_folder_is_refused_as_one_below_which_folders_are_the_tables(
    key: str, said: str
):
    """It would match nothing, and nobody would be told."""
    read = registered(vars(storage_property).values())[key]
    with pytest.raises(ConfigurationError, match=f"{key} cannot be") as caught:
        read.of({key: said})
    assert "absolute" in str(caught.value.hint)
    assert read.of({key: "/a, file:///b,s3://c"}) == ("/a", "file:///b", "s3://c")
    assert read.of({key: "hdfs:///a, file:/b,"}) == ("hdfs:///a", "file:/b")


def test_an_odd_list_of_folders_is_refused_though_nothing_is_written_elsewhere():
    with pytest.raises(ConfigurationError, match="cannot be 'relative'"):
        OwnFolders(["/lake/t"], metadata_of("/lake/t", {}), {OWN_PREFIXES.key: "relative"})


def test_the_ten_folders_with_most_files_outside_are_named_and_all_files_are_counted():
    files = [f"/a/{n:02}/{k}" for n in range(12) for k in range(n + 1)]
    shown = ", ".join(f"/a/{n:02} ({n + 1})" for n in range(11, 1, -1))
    told = f"78 files outside of the table's folders: {shown} and 2 more folders (3)"
    assert outside_text(files) == told
    assert outside_text(files[-12:]) == "12 files outside of the table's folders: /a/11 (12)"
