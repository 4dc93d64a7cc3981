"""What is particular to local files; what every file system promises is in `tests/conformance`."""

from __future__ import annotations

import os
import pickle
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from icecomb.format.cancellation import Cancellation, cancellable, check_wanted
from icecomb.format.errors import (
    ConfigurationError,
    FileAlreadyExistsError,
    FileIOError,
    NoSuchFileError,
    OperationCanceledError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.local import LocalFileSystem


def names(folder):
    return sorted(path.name for path in folder.iterdir())


SPELLINGS = ["{0}", "file:{0}", "file://{0}", "file://localhost{0}"]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_of_a_local_location_names_the_same_file(tmp_path, spelling):
    io = FileIO()
    io.create(spelling.format(tmp_path / "sub" / "a b%20c#?é.txt"), b"hello")
    assert (tmp_path / "sub" / "a b%20c#?é.txt").read_bytes() == b"hello"
    assert io.read(spelling.format(tmp_path / "sub" / "a b%20c#?é.txt")) == b"hello"
    assert io.size(spelling.format(tmp_path / "sub" / "a b%20c#?é.txt")) == 5
    assert [status.location for status in io.list(spelling.format(tmp_path))] == [
        spelling.format(tmp_path / "sub" / "a b%20c#?é.txt")
    ]


@pytest.mark.parametrize(
    "location", ["relative/x", "file://host/x", "file:x", "file://x", "", "/a\0b"]
)
def test_a_location_that_is_not_an_absolute_path_is_refused(location):
    with pytest.raises(ValidationError):
        FileIO().exists(location)


@pytest.mark.parametrize("location", ["oss://bucket/x", "obs://bucket/x", "cosn:/x"])
def test_an_unknown_scheme_is_named(location):
    with pytest.raises(UnsupportedError, match=location.split(":")[0]):
        FileIO().read(location)


def test_a_path_without_a_scheme_is_where_fs_defaultfs_says(tmp_path, monkeypatch):
    (tmp_path / "x").write_bytes(b"here")
    place = str(tmp_path / "x")
    for default in ("file:///", "", "FILE:/"):
        assert FileIO({"fs.defaultFS": default}).read(place) == b"here"
    with pytest.raises(UnsupportedError, match="oss") as refused:
        FileIO({"fs.defaultFS": "oss://bucket"}).read(place)
    assert f"write file://{place} for a local file" in refused.value.hint
    assert FileIO({"fs.defaultFS": "oss://bucket"}).read(f"file://{place}") == b"here"
    # nobody listens there: it is not the local file that is read
    nowhere = "hdfs://127.0.0.1:2"
    with pytest.raises(FileIOError):
        FileIO({"fs.defaultFS": nowhere, "dfs.namenode.http-address": "127.0.0.1:2"}).read(place)
    (tmp_path / "core-site.xml").write_text(
        "<configuration><property><name>fs.defaultFS</name><value>oss://bucket</value></property>"
        "</configuration>"
    )
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    with pytest.raises(UnsupportedError, match="oss"):
        FileIO().read(place)
    assert FileIO({"fs.defaultFS": "file:///"}).read(place) == b"here"


def test_folders_are_listed_after_those_in_them_however_deep(tmp_path, monkeypatch):
    monkeypatch.setenv("ICECOMB_MAX_FOLDER_LEVELS", "1300")
    deep = str(tmp_path)
    for name in ["b", "a", *["d"] * 1200]:
        (Path(deep) / "x").mkdir()
        deep = f"{deep}/{name}"
        Path(deep).mkdir()
    found = list(FileIO().folder_tree(str(tmp_path)))
    assert len(found) == len({*found}) == 1 + 2 * 1202
    places = {folder: place for place, folder in enumerate(found)}
    assert all(places[f] < places[f.rpartition("/")[0]] for f in found if f != str(tmp_path))
    assert list(FileIO().folder_tree(f"{tmp_path}/none")) == []
    for folder in found[:-1]:
        Path(folder).rmdir()  # who removes it by recursion, as pytest, could not


def test_a_stream_that_ends_in_an_error_leaves_nothing(tmp_path):
    io = FileIO()
    with pytest.raises(FileNotFoundError, match="elsewhere"), io.create_stream(str(tmp_path / "x")):
        (tmp_path / "elsewhere").read_bytes()
    assert names(tmp_path) == []


def test_a_full_disk_leaves_nothing(tmp_path):
    io = FileIO()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(FileIOError, match="Cannot write"):
            io.create(str(tmp_path / "x"), b"x" * 2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert names(tmp_path) == []


def test_new_files_have_the_permissions_of_any_other_new_file(tmp_path):
    FileIO().create(str(tmp_path / "ours"), b"")
    (tmp_path / "other").touch()
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_ranges_are_read_through_arrow(tmp_path):
    io = FileIO()
    io.create(str(tmp_path / "x"), b"0123456789")
    with io.open_input(f"file:{tmp_path}/x") as file:
        file.seek(4)
        assert file.read(3) == b"456"
    system, path = io.filesystem(f"file:{tmp_path}/x")
    assert system.get_file_info(path).size == 10


def test_delete_passes_over_missing_files_and_takes_hadoops_checksum_along(tmp_path):
    io = FileIO()
    for name in ("a", ".a.crc", "b", "c"):
        (tmp_path / name).write_bytes(b"")
    io.delete([f"file:{tmp_path}/a", f"{tmp_path}/none", str(tmp_path / "b" / "below")])
    io.delete(str(tmp_path / "b"))
    assert names(tmp_path) == ["c"]


def test_delete_names_what_could_not_be_deleted_and_deletes_the_rest(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(FileIOError, match="folder") as caught:
        FileIO().delete([str(tmp_path / "folder"), str(tmp_path / "file")])
    assert caught.value.context["failed"] == (str(tmp_path / "folder"),)
    assert names(tmp_path) == ["folder"]


def test_a_stale_checksum_of_a_file_that_is_gone_does_not_survive_a_new_file(tmp_path):
    (tmp_path / ".hint.crc").write_bytes(b"stale")
    FileIO().create(str(tmp_path / "hint"), b"1")
    assert names(tmp_path) == ["hint"]


def test_listing_is_recursive_and_keeps_the_spelling(tmp_path):
    io = FileIO()
    for name in ("b", "a/2", "a/1", "c/d/e"):
        io.create(str(tmp_path / name), b"xy")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    found = list(io.list(f"file://{tmp_path}/"))
    assert [s.location for s in found] == [
        f"file://{tmp_path}/{n}" for n in ("b", "a/1", "a/2", "c/d/e")
    ]
    assert {s.size for s in found} == {2}
    assert found[0].mtime_ms == (tmp_path / "b").stat().st_mtime_ns // 1_000_000
    assert list(io.list(str(tmp_path / "none"))) == []
    assert [s.location for s in io.list(str(tmp_path / "b"))] == [str(tmp_path / "b")]


def test_rename_does_not_overwrite(tmp_path):
    io = FileIO()
    a, b = str(tmp_path / "a"), f"file:{tmp_path}/new/b"
    io.create(a, b"a")
    io.rename(a, b)
    assert io.read(b) == b"a"
    assert not io.exists(a)
    io.create(a, b"again")
    with pytest.raises(FileAlreadyExistsError):
        io.rename(a, b)
    assert (io.read(a), io.read(b)) == (b"again", b"a")
    with pytest.raises(NoSuchFileError, match="gone"):
        io.rename(str(tmp_path / "gone"), str(tmp_path / "z"))


def test_a_file_io_travels_to_another_process(tmp_path):
    io = FileIO({"key": "value"})
    io.create(str(tmp_path / "x"), b"1")
    copy = pickle.loads(pickle.dumps(io))  # noqa: S301
    assert copy.properties == {"key": "value"}
    assert copy.read(str(tmp_path / "x")) == b"1"


def test_folders_are_made_listed_and_deleted_when_empty(tmp_path):
    io = FileIO()
    place = f"file:{tmp_path}/a/b"
    assert not io.is_folder(place)
    io.create_folder(place)
    assert io.is_folder(place)
    assert not io.exists(place)
    (tmp_path / "a" / "file").write_text("x")
    (tmp_path / "a" / "link").symlink_to(tmp_path)
    io.create_folder(f"{tmp_path}/a/ä c")
    assert io.folders(f"{tmp_path}/a") == ["b", "ä c"]
    with pytest.raises(FileAlreadyExistsError):
        io.create_folder(place)
    with pytest.raises(FileAlreadyExistsError):
        io.create_folder(f"{tmp_path}/a/file")
    assert not io.delete_folder(f"{tmp_path}/a")
    assert io.delete_folder(place)
    for act in (io.delete_folder, io.folders):
        with pytest.raises(NoSuchFileError, match="a/b does not exist"):
            act(place)
    assert (tmp_path / "a" / "file").read_text() == "x"


def test_a_file_that_was_created_though_the_answer_was_lost_is_a_success(tmp_path, monkeypatch):
    """As on NFS, which repeats the request and then says that the name is taken."""
    link = os.link

    def lost(source, target, **options):
        link(source, target, **options)
        link(source, target, **options)

    monkeypatch.setattr(os, "link", lost)
    FileIO().create(str(tmp_path / "a"), b"1")
    assert (tmp_path / "a").read_bytes() == b"1"
    with pytest.raises(FileAlreadyExistsError):
        FileIO().create(str(tmp_path / "a"), b"2")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


class Disk:
    """What reached the disk, in order: `sync` of a file or folder, `name` given to a file."""

    def __init__(self, monkeypatch):
        self.events = []
        sync, link, replace = os.fsync, os.link, os.replace

        def watched_sync(descriptor):
            found = os.fstat(descriptor)
            self.events.append(("sync", found.st_ino, found.st_size))
            sync(descriptor)

        def named(real):
            def watched(source, target, **options):
                status = os.stat(source, dir_fd=options.get("src_dir_fd"))
                self.events.append(("name", status.st_ino, Path(target).name))
                real(source, target, **options)

            return watched

        monkeypatch.setattr(os, "fsync", watched_sync)
        monkeypatch.setattr(os, "link", named(link))
        monkeypatch.setattr(os, "replace", named(replace))

    def is_safe(self, path):
        """Whether its bytes were on the disk before its name, and its name when all was over."""
        named = [event[0] == "name" and event[2] == Path(path).name for event in self.events]
        at = named.index(True)
        whole = ("sync", self.events[at][1], Path(path).stat().st_size)
        folder = Path(path).parent.stat().st_ino
        after = [event[1] for event in self.events[at:] if event[0] == "sync"]
        return whole in self.events[:at] and folder in after


@pytest.fixture
def disk(monkeypatch):
    return Disk(monkeypatch)


@pytest.mark.parametrize("replace", [False, True])
def test_a_power_cut_leaves_files_whole_or_not_there(tmp_path, disk, replace):
    io, path = FileIO({"local.sync-data-files": "false"}), str(tmp_path / "x")
    if replace:
        (tmp_path / "x").write_bytes(b"an older one")
    with io.prepare(path, b"data", replace=replace) as publish:
        publish()
    assert disk.is_safe(path)
    disk.events.clear()
    io.create(f"{path}2", b"data")
    assert disk.is_safe(f"{path}2")


def test_a_power_cut_keeps_a_file_under_one_of_its_names(tmp_path, disk):
    io = FileIO()
    io.create(str(tmp_path / "a" / "x"), b"data")
    disk.events.clear()
    io.rename(str(tmp_path / "a" / "x"), str(tmp_path / "b" / "x"))
    synced = [event[1] for event in disk.events if event[0] == "sync"]
    both = [(tmp_path / name).stat().st_ino for name in ("b", "a")]
    assert [inode for inode in synced if inode in both] == both


def test_folders_that_are_made_on_the_way_are_on_the_disk_too(tmp_path, disk):
    FileIO().create(str(tmp_path / "a" / "b" / "x"), b"")
    FileIO().create_folder(str(tmp_path / "c" / "d"))
    synced = {event[1] for event in disk.events if event[0] == "sync"}
    for folder in (tmp_path, tmp_path / "a", tmp_path / "a" / "b", tmp_path / "c"):
        assert folder.stat().st_ino in synced


@pytest.mark.parametrize("text", ["true", "false", "TRUE", "maybe"])
def test_a_setting_says_whether_rows_are_on_the_disk_when_they_are_visible(tmp_path, disk, text):
    io = FileIO({"local.sync-data-files": text})
    if text == "maybe":
        with pytest.raises(ConfigurationError, match="sync-data-files cannot be 'maybe'"):
            io.exists(str(tmp_path / "rows"))
        return
    with io.create_stream(str(tmp_path / "rows")) as out:
        out.write(b"data")
    assert disk.is_safe(tmp_path / "rows") is (text.lower() == "true")


def test_a_disk_that_fails_to_store_is_an_error_and_shows_no_file(tmp_path, monkeypatch):
    def fails(_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(FileIOError, match=f"Cannot write {tmp_path}/x: Input/output error"):
        FileIO().create(str(tmp_path / "x"), b"data")
    assert names(tmp_path) == []


def test_a_file_system_that_syncs_no_folders_is_served(tmp_path, monkeypatch):
    real = os.fsync

    def picky(descriptor):
        if Path(f"/proc/self/fd/{descriptor}").is_dir():
            raise OSError(22, "Invalid argument")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", picky)
    FileIO().create(str(tmp_path / "x"), b"data")
    assert FileIO().read(str(tmp_path / "x")) == b"data"


def test_the_topmost_folder_is_there_already():
    with pytest.raises(FileAlreadyExistsError):
        FileIO().create_folder("file:///")


def test_each_item_is_worked_on_in_order_and_where_requests_take_long_ahead(tmp_path, monkeypatch):
    io, place, begun = FileIO(), str(tmp_path), []

    def work(number):
        begun.append(number)
        return number * 2

    found = io.each(place, work, range(100))
    assert (next(found), begun) == (0, [0])
    monkeypatch.setattr(LocalFileSystem, "at_once", 4)
    barrier = threading.Barrier(4)
    together = io.each(place, lambda number: (barrier.wait(30), number)[1], range(8))
    assert list(together) == list(range(8))
    assert list(io.each(place, work, range(100))) == [2 * number for number in range(100)]
    begun.clear()
    found = io.each(place, work, range(100), 2)
    assert next(found) == 0
    assert len(begun) <= 3
    found.close()
    with pytest.raises(ZeroDivisionError):
        list(io.each(place, lambda number: 1 // number, (1, 0, 1)))


@pytest.mark.parametrize("slow", [False, True])
def test_what_may_not_be_needed_is_asked_ahead_only_where_requests_are_slow(
    tmp_path, monkeypatch, slow
):
    monkeypatch.setattr(LocalFileSystem, "at_once", 4)
    monkeypatch.setattr(LocalFileSystem, "has_slow_requests", slow)
    begun = []
    found = FileIO().each(str(tmp_path), begun.append, range(9), needs_all=False)
    next(found)
    found.close()
    assert (len(begun) > 1) == slow


def test_work_on_each_item_ends_when_it_is_not_wanted_any_more(tmp_path, monkeypatch):
    monkeypatch.setattr(LocalFileSystem, "at_once", 2)
    cancellation = Cancellation()
    cancellation.cancel()
    with cancellable(cancellation), pytest.raises(OperationCanceledError):
        list(FileIO().each(str(tmp_path), lambda _: check_wanted(), (1, 2)))


def test_a_name_that_is_not_utf_8_is_the_same_file_to_every_call(tmp_path):
    """Names are bytes: those of an umlaut in ISO-8859-1, as a locale of that encoding writes them."""
    location = os.fsdecode(os.fsencode(tmp_path) + b"/\xfcber.parquet")
    io = FileIO()
    io.create(location, b"rows")
    assert (tmp_path / location).read_bytes() == b"rows"
    with io.open_input(location) as file:
        assert file.read() == b"rows"
    assert [one.location for one in io.list(str(tmp_path))] == [location]
    with pytest.raises(ValidationError, match="is not UTF-8"):
        io.filesystem(location)
    io.delete([location])
    assert names(tmp_path) == []


def test_a_name_that_the_locale_cannot_encode_is_refused_by_name(tmp_path):
    code = (
        "import sys; from icecomb.format.storage.file_io import FileIO\n"
        "try: FileIO().create(sys.argv[1] + '/\\u00fc', b'')\n"
        "except Exception as error: print(type(error).__name__, ascii(str(error)))"
    )
    environment = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    command = [sys.executable, "-c", code, str(tmp_path)]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.startswith('ValidationError "ascii, which encodes the names of files')
