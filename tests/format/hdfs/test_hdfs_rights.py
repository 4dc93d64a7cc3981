"""Who may read and change what is made on HDFS, and how often it is kept: as Hadoop's own client decides it.

Expected values of umasks are those of `FsPermission.getUMask` of Hadoop 3.5.
"""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import ConfigurationError
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.storage_property import HDFS_BLOCK_SIZE, HDFS_UMASK


@pytest.mark.parametrize(
    ("said", "umask"),
    [
        ("022", 0o022),
        ("00022", 0o022),
        (" 027 ", 0o027),
        ("000", 0),
        ("u=rwx,g=rx,o=", 0o027),
        ("u=rwx,g=rwx,o=rx", 0o002),
        ("ug=rwx,o=rx", 0o002),
        ("u=rwx,g=rwx", 0o007),
        ("u=rwx,,g=x", 0o067),
        ("a=rwx", 0),
        ("a+rx,u+w", 0o522),
        ("g+w", 0o757),
        ("go-w", 0o777),
        ("u+-r", 0o777),
        ("+", 0o777),
    ],
)
def test_a_umask_is_what_hadoop_reads_in_it(said, umask):
    assert HDFS_UMASK.of({"fs.permissions.umask-mode": said}) == umask
    assert HDFS_UMASK.of({"dfs.umaskmode": said}) == umask


@pytest.mark.parametrize(
    "said",
    ["", "0", "22", "18", "888", "1022", "+022", "u=rwX", "u=rwx g=rx", "u=rwx,g=rx,o=;", "rwx"],
)
def test_a_umask_that_hadoop_refuses_is_refused(said):
    with pytest.raises(ConfigurationError, match=r"fs\.permissions\.umask-mode cannot be"):
        HDFS_UMASK.of({"fs.permissions.umask-mode": said})


def test_a_block_size_may_have_a_suffix_as_hadoops():
    sizes = [HDFS_BLOCK_SIZE.of({"dfs.blocksize": said}) for said in ("64m", "128M", "1g", "65536")]
    assert sizes == [64 << 20, 128 << 20, 1 << 30, 65536]
    assert HDFS_BLOCK_SIZE.of({"dfs.block.size": "1k"}) == 1024
    for said in ("64 m", "64mb", "0x100", "0"):
        with pytest.raises(ConfigurationError, match="such as 256m"):
            HDFS_BLOCK_SIZE.of({"dfs.blocksize": said})


@pytest.mark.parametrize(
    ("settings", "file", "folder", "copies"),
    [
        ({}, "644", "755", (None, None)),
        ({"fs.permissions.umask-mode": "077"}, "600", "700", (None, None)),
        ({"dfs.umaskmode": "u=rwx,g=rwx,o=rx"}, "664", "775", (None, None)),
        ({"dfs.replication": "2", "dfs.blocksize": "64m"}, "644", "755", ("2", str(64 << 20))),
    ],
)
def test_all_that_is_made_has_the_rights_and_copies_of_the_settings(
    memory, memory_settings, settings, file, folder, copies
):
    """A table of folders: data, manifests, metadata and hint, by their drafts; a folder by its own draft."""
    properties = {"type": "hadoop", "warehouse": "hdfs://lake/w", **memory_settings, **settings}
    with load_catalog("lake", **properties) as catalog:
        catalog.create_namespace("s")
        rows = pa.table({"id": [1]})
        catalog.create_table("s.t", rows.schema).append(rows)
    assert {"/w/s/t/metadata/version-hint.text", "/w/s"} <= {*memory.files, *memory.modes}
    for made in memory.files.values():
        asked = made.asked
        assert (asked["permission"], asked["unmaskedpermission"]) == (file, "666")
        assert (asked.get("replication"), asked.get("blocksize")) == copies
    assert {*memory.modes.values()} == {(folder, "777")}


def test_rights_that_cannot_be_read_make_nothing(memory, memory_settings):
    with pytest.raises(ConfigurationError, match="umask-mode"):
        FileIO({**memory_settings, "fs.permissions.umask-mode": "22"}).create("hdfs://lake/x", b"1")
    assert not memory.files


@pytest.mark.parametrize(
    ("zones", "trash"),
    [
        ([], "/user/alice/.Trash"),
        (["/zone"], "/zone/.Trash/alice"),
        (["/zone/in"], "/user/alice/.Trash"),
        (None, "/user/alice/.Trash"),
    ],
)
def test_the_trash_is_private_and_in_the_encryption_zone(memory, memory_settings, zones, trash):
    io = FileIO({**memory_settings, "hdfs.trash": "true"})
    memory.zones = zones
    for name in ("x", "y"):
        memory.put(f"/zone/t/{name}", b"1")
    io.delete(["hdfs://lake/zone/t/x", "hdfs://lake/zone/t/y"])
    kept = f"{trash}/Current/zone/t"
    assert sorted(memory.files) == [f"{kept}/x", f"{kept}/y"]
    made = {path: mode for path, mode in memory.modes.items() if ".Trash" in path}
    assert made[trash] == made[kept] == ("700", "700")
    assert memory.calls.count("GETTRASHROOT") <= 2


DEFAULT_ACL = "default:user::rwx,default:group::r-x,default:group:shared:rwx,default:other::---"


def looked_at(hdfs, path):
    """Rights, ACL, copies and block size of a file or folder."""

    def asked(operation):
        return json.loads(hdfs.request("GET", f"{path}?op={operation}"))

    status = asked("GETFILESTATUS")["FileStatus"]
    acl = sorted(asked("GETACLSTATUS")["AclStatus"]["entries"])
    return status["permission"], acl, status["replication"], status["blockSize"]


def with_acl(hdfs, path):
    """Make a folder of alice, and one in it that others share by a default ACL."""
    for folder in (path, f"{path}/acl"):
        hdfs.request("PUT", f"{folder}?op=MKDIRS&permission=755", "alice")
    spec = f"user::rwx,group::r-x,other::---,{DEFAULT_ACL}"
    hdfs.request("PUT", f"{path}/acl?op=SETACL&aclspec={spec}", "alice")


def test_the_rights_on_a_real_cluster_are_those_of_umask_and_default_acls(hdfs, place):
    settings = {"fs.permissions.umask-mode": "027", "dfs.replication": "2", "dfs.blocksize": "2m"}
    io = FileIO({**hdfs.client_settings, **settings, "hdfs.user": "alice"})
    path = place.removeprefix(hdfs.uri)
    with_acl(hdfs, path)
    for folder in (path, f"{path}/acl"):
        io.create(f"{hdfs.uri}{folder}/x", b"1")
        io.create_folder(f"{hdfs.uri}{folder}/f")
    acl = ["group::r-x", "group:shared:rwx"]
    assert looked_at(hdfs, f"{path}/x") == ("640", [], 2, 2 << 20)
    assert looked_at(hdfs, f"{path}/acl/x") == ("660", acl, 2, 2 << 20)
    assert looked_at(hdfs, f"{path}/f")[0] == "750"
    assert looked_at(hdfs, f"{path}/acl/f")[0] == "770"


@pytest.mark.full("compares both engines with Hadoop's own client, a JVM for each command")
@pytest.mark.parametrize("umask", ["022", "077", "u=rwx,g=rwx,o="])
@pytest.mark.parametrize("engine", ["webhdfs", "native"])
def test_what_is_made_is_as_hadoops_own_client_makes_it(hdfs, place, engine, umask, monkeypatch):
    monkeypatch.setenv("HADOOP_USER_NAME", "alice")
    given = {"fs.permissions.umask-mode": umask, "dfs.replication": "2", "dfs.blocksize": "2m"}
    theirs, ours = (f"{place.removeprefix(hdfs.uri)}/{who}" for who in ("theirs", "ours"))
    for path in (theirs, ours):
        with_acl(hdfs, path)
    files, folders = ("x", "acl/x", "f/x", "acl/f/x"), ("f", "acl/f")
    options = [f"-D{key}={value}" for key, value in given.items()]
    hdfs.shell(*options, "-mkdir", *(f"{theirs}/{name}" for name in folders), user="alice")
    hdfs.shell(*options, "-touchz", *(f"{theirs}/{name}" for name in files), user="alice")
    io = FileIO({**hdfs.client_settings, **given, "hdfs.engine": engine})
    for name in folders:
        io.create_folder(f"{hdfs.uri}{ours}/{name}")
    for name in files:
        io.create(f"{hdfs.uri}{ours}/{name}", b"")
    for name in (*folders, *files):
        assert looked_at(hdfs, f"{ours}/{name}") == looked_at(hdfs, f"{theirs}/{name}"), name
    # the name node gives folders above a new file the rights of the one that is there
    io.create(f"{hdfs.uri}{ours}/acl/folders/above/x", b"1")
    assert looked_at(hdfs, f"{ours}/acl/folders/above")[0] == "750"
    rights = looked_at(hdfs, f"{ours}/acl/folders/above/x")
    assert rights[:2] == looked_at(hdfs, f"{ours}/acl/x")[:2]
