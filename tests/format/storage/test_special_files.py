"""Locations of FIFOs, sockets and devices: to read one would wait for ever, or never end."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icecomb.format.errors import FileAlreadyExistsError, FileIOError
from icecomb.format.storage.file_io import FileIO

KINDS = {"FIFO": "a FIFO", "socket": "a socket", "device": "a device", "link": "a FIFO"}
pytestmark = pytest.mark.timeout(60)


@pytest.fixture(params=KINDS)
def special(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Path, str]]:
    """A file of each kind, and what it is called."""
    place = tmp_path / "special"
    with socket.socket(socket.AF_UNIX) as listening:
        if request.param == "socket":
            monkeypatch.chdir(tmp_path)  # a socket's name is short
            listening.bind("special")
        elif request.param == "device":
            place.symlink_to(os.devnull)
        else:
            os.mkfifo(place if request.param == "FIFO" else tmp_path / "real")
        if request.param == "link":
            place.symlink_to(tmp_path / "real")
        yield place, KINDS[request.param]


@pytest.mark.parametrize("spelling", ["{}", "file:{}", "file://{}"])
@pytest.mark.parametrize(
    "ask",
    [
        lambda io, at: io.read(at),
        lambda io, at: io.open_input(at),
        lambda io, at: io.open_input(at, 4),
        lambda io, at: io.size(at),
        lambda io, at: io.rename(at, f"{at}2"),
    ],
    ids=["read", "open", "open with its size", "size", "rename"],
)
def test_what_is_no_file_is_refused_by_name(
    special: tuple[Path, str], ask: Callable[[FileIO, str], object], spelling: str
) -> None:
    place, kind = special
    location = spelling.format(place)
    with pytest.raises(FileIOError, match=f"it is {kind}") as refused:
        ask(FileIO({}), location)
    assert location in str(refused.value)
    assert os.path.lexists(place)


def test_a_name_that_is_taken_by_what_is_no_file_is_taken(special: tuple[Path, str]) -> None:
    place, _ = special
    io = FileIO({})
    assert io.exists(str(place))
    with pytest.raises(FileAlreadyExistsError):
        io.create(str(place), b"x")
    io.delete([str(place)])
    assert not io.exists(str(place))


@pytest.mark.parametrize("below", ["", "/ns", "/ns/table"])
def test_a_folder_below_what_is_none_is_refused_by_its_name(
    special: tuple[Path, str], below: str
) -> None:
    place, kind = special
    for create in (
        lambda io: io.create(f"{place}{below}/file", b"x"),
        lambda io: io.create_folder(f"{place}{below}/folder"),
    ):
        with pytest.raises(FileIOError, match=f"{place} is {kind}, not a folder"):
            create(FileIO({}))


def test_a_file_is_no_folder_either(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"")
    with pytest.raises(FileIOError, match="plain is a file, not a folder"):
        FileIO({}).create(f"{tmp_path}/plain/x", b"x")
    with pytest.raises(FileIOError, match="plain is a file, not a folder"):
        FileIO({}).create_folder(f"{tmp_path}/plain/x")


def test_a_folder_that_others_make_meanwhile_is_a_folder(tmp_path, monkeypatch):
    real, asked = os.mkdir, []

    def mkdir(path, *args, **more):
        asked.append(path)
        real(path, *args, **more)
        real(path, *args, **more)

    monkeypatch.setattr(os, "mkdir", mkdir)
    FileIO().create(f"{tmp_path}/new/file", b"1")
    assert asked == ["new"]
    assert (tmp_path / "new" / "file").read_bytes() == b"1"


def test_a_file_that_says_it_is_longer_than_any_of_metadata_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(4 << 30)
    with pytest.raises(FileIOError, match="is not read whole: it has 4294967296 bytes"):
        FileIO({}).read(str(tmp_path / "sparse"))
    monkeypatch.setenv("ICECOMB_MAX_UNPACKED_MIB", "1")
    (tmp_path / "long").write_bytes(bytes((1 << 20) + 1))
    with pytest.raises(FileIOError, match="ICECOMB_MAX_UNPACKED_MIB"):
        FileIO({}).read(str(tmp_path / "long"))


@pytest.mark.parametrize("special", ["/dev/zero", "FIFO"])
def test_a_file_that_is_exchanged_after_it_was_looked_at_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, special: str
) -> None:
    place, real = tmp_path / "v1.metadata.json", os.stat

    def exchanged(path: object, *args: Any, **more: Any) -> os.stat_result:
        found = real(path, *args, **more)  # type: ignore[arg-type]
        if str(path) == str(place) and stat.S_ISREG(found.st_mode):
            place.unlink()
            if special == "FIFO":
                os.mkfifo(place)
            else:
                place.symlink_to(special)
        return found

    io = FileIO({})
    for ask in (io.read, io.open_input, io.open_to_copy):
        place.unlink(missing_ok=True)
        place.write_bytes(b"{}")
        monkeypatch.setattr(os, "stat", exchanged)
        with pytest.raises(FileIOError, match=r"it is a (device|FIFO), not a file"):
            ask(str(place))
        monkeypatch.undo()


def test_a_file_is_copied_without_names_of_descriptors_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str, mode: str) -> None:
        raise FileNotFoundError(name, mode)

    monkeypatch.setattr(pa, "OSFile", missing)
    (tmp_path / "file").write_bytes(b"content")
    with FileIO({}).open_to_copy(str(tmp_path / "file")) as stream:
        assert stream.size() == 7
        assert stream.read_at(4, 3) == b"tent"


def test_a_file_that_grows_while_it_is_read_is_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "log").write_bytes(b"long")
    real = os.fstat

    def fstat(descriptor: int) -> os.stat_result:
        found = real(descriptor)
        with (tmp_path / "log").open("ab") as file:
            file.write(b"er")
        return found

    monkeypatch.setattr(os, "fstat", fstat)
    assert FileIO({}).read(str(tmp_path / "log")) == b"longer"
