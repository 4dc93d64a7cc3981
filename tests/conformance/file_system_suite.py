"""What holds for every file system. One inherits the suite and gives it ``place``, a folder of its own, and ``io``."""

from __future__ import annotations

import pickle
import random
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from icecomb.format.errors import FileAlreadyExistsError, FileIOError, NoSuchFileError
from icecomb.format.storage.file_io import FileIO

NAMES = [
    "plain",
    "a b",
    "50%",
    "%2Fx",
    "a+b&c=d",
    "é中😀",
    "x;y",
    "q?#z",
    "{}[]",
    "'\"`",
    "%2e%2e",
    "*",
]


class FileSystemSuite:
    """The promises of `FileIO`."""

    @pytest.fixture
    def io(self):
        return FileIO()

    @staticmethod
    def names(io, place):
        """All files, those on their way included, without the folder's name."""
        return [each.location.removeprefix(f"{place}/") for each in io.list(place)]

    @pytest.mark.parametrize("name", NAMES)
    def test_a_name_stays_as_it_is(self, io, place, name):
        io.create(f"{place}/in {name}/{name}", name.encode())
        assert io.read(f"{place}/in {name}/{name}") == name.encode()
        assert self.names(io, place) == [f"in {name}/{name}"]
        assert io.folders(place) == [f"in {name}"]

    def test_create_never_overwrites(self, io, place):
        io.create(f"{place}/x", b"first")
        with pytest.raises(FileAlreadyExistsError) as caught:
            io.create(f"{place}/x", b"second")
        assert caught.value.context["path"] == f"{place}/x"
        assert io.read(f"{place}/x") == b"first"
        assert self.names(io, place) == ["x"]

    def test_of_many_creators_exactly_one_wins_and_its_bytes_are_there(self, io, place):
        barrier = threading.Barrier(8)
        won = []

        def create(content):
            barrier.wait()
            try:
                io.create(f"{place}/x", content)
            except FileAlreadyExistsError:
                return
            won.append(content)

        threads = [threading.Thread(target=create, args=(b"%d" % i * 100_000,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert io.read(f"{place}/x") == won[0]
        assert self.names(io, place) == ["x"]

    def test_a_stream_is_visible_only_after_its_clean_end(self, io, place):
        with io.create_stream(f"{place}/x") as stream:
            stream.write(b"abc")
            stream.write(memoryview(b"de"))
            stream.write(b"")
            stream.flush()
            assert not io.exists(f"{place}/x")
        assert io.read(f"{place}/x") == b"abcde"

    def test_a_stream_that_ends_in_an_error_leaves_nothing(self, io, place):
        io.create_folder(place)
        with pytest.raises(ZeroDivisionError), io.create_stream(f"{place}/x") as stream:  # noqa: PT012
            stream.write(b"x" * 100_000)
            _ = 1 // 0
        assert self.names(io, place) == []

    def test_a_stream_does_not_replace_a_file_that_appeared_meanwhile(self, io, place):
        with pytest.raises(FileAlreadyExistsError), io.create_stream(f"{place}/x") as stream:  # noqa: PT012
            stream.write(b"ours")
            io.create(f"{place}/x", b"theirs")
        assert io.read(f"{place}/x") == b"theirs"
        assert self.names(io, place) == ["x"]

    def test_a_missing_file_is_named(self, io, place):
        for call in (io.read, io.size, io.open_input):
            with pytest.raises(NoSuchFileError, match="nothing") as caught:
                call(f"{place}/nothing")
            assert isinstance(caught.value, FileNotFoundError)
        assert not io.exists(f"{place}/nothing")
        assert not io.is_folder(f"{place}/nothing")

    def test_a_folder_is_no_file(self, io, place):
        io.create_folder(place)
        assert not io.exists(place)
        for call in (io.size, io.open_input):
            with pytest.raises(FileIOError):
                call(place)

    @pytest.mark.parametrize("size", [0, 1, 300_000, 3_000_000])
    def test_any_range_is_read(self, io, place, size):
        data = bytes(i * 7 % 251 for i in range(1000)) * (size // 1000) + b"." * (size % 1000)
        io.create(f"{place}/x", data)
        assert io.read(f"{place}/x") == data
        with io.open_input(f"{place}/x") as file:
            assert file.size() == size
            for start, length in [
                (0, 10),
                (size - 8, 8),
                (size // 2, 100),
                (size // 2 + 50, 9),
                (3, size),
                (size, 5),
            ]:
                file.seek(max(start, 0))
                assert file.read(length) == data[max(start, 0) : max(start, 0) + length]
            file.seek(0)
            assert b"".join(iter(lambda: file.read(99_999), b"")) == data

    def test_a_long_file_is_read_on_and_on_and_from_elsewhere(self, io, place):
        data = random.Random(1).randbytes(30 << 20)
        io.create(f"{place}/x", data)
        with io.open_input(f"{place}/x") as file:
            for piece in (1_000_003, 8 << 20, 100 << 20):
                file.seek(5)
                assert b"".join(iter(lambda piece=piece: file.read(piece), b"")) == data[5:]
            for start in (0, 17 << 20, 3 << 20):
                file.seek(start)
                read = b"".join(file.read(3 << 20) for _ in range(5))
                assert read == data[start : start + len(read)]
                assert len(read) == min(15 << 20, len(data) - start)

    def test_arrow_reads_and_writes_by_it(self, io, place):
        system, path = io.filesystem(f"{place}/t.parquet")
        io.create_folder(place)
        table = pa.table({"n": range(100_000), "s": [str(i) for i in range(100_000)]})
        pq.write_table(table, path, filesystem=system, row_group_size=10_000)
        assert pq.read_table(path, filesystem=system, columns=["n"]) == table.select(["n"])
        assert (
            pq.ParquetFile(io.open_input(f"{place}/t.parquet")).read_row_group(7)["n"][0].as_py()
            == 70_000
        )
        _, folder = io.filesystem(place)
        (found,) = system.get_file_info(fs.FileSelector(folder))
        assert (found.path, found.size) == (path, io.size(f"{place}/t.parquet"))

    def test_delete_passes_over_missing_files(self, io, place):
        for name in "abc":
            io.create(f"{place}/{name}", b"")
        io.delete([f"{place}/a", f"{place}/none", f"{place}/b"])
        io.delete([])
        assert self.names(io, place) == ["c"]

    def test_delete_names_what_could_not_be_deleted_and_deletes_the_rest(self, io, place):
        io.create(f"{place}/folder/in", b"")
        io.create(f"{place}/file", b"")
        with pytest.raises(FileIOError, match="folder") as caught:
            io.delete([f"{place}/folder", f"{place}/file"])
        assert caught.value.context["failed"] == (f"{place}/folder",)
        assert self.names(io, place) == ["folder/in"]

    def test_discarded_files_take_empty_folders_that_were_made_for_them_along(self, io, place):
        io.create_folder(f"{place}/theirs")
        files = [f"{place}/{name}/x" for name in ("made/by/us", "theirs", "shared")]
        for file in (*files, f"{place}/shared/y"):
            with io.create_stream(file) as out:
                out.write(b"1")
        io.discard([*files, f"{place}/missing/x"])
        assert self.names(io, place) == ["shared/y"]
        assert not io.is_folder(f"{place}/made")
        assert io.is_folder(f"{place}/theirs")
        with pytest.raises(ZeroDivisionError), io.create_stream(f"{place}/failed/x") as out:
            out.write(b"1" * (1 // 0))
        assert not io.is_folder(f"{place}/failed")
        io.create(f"{place}/made/by/us/x", b"1")

    def test_a_folder_is_not_deleted_as_a_file_even_if_it_is_empty(self, io, place):
        io.create_folder(f"{place}/empty")
        with pytest.raises(FileIOError, match="empty"):
            io.delete(f"{place}/empty")
        assert io.folders(place) == ["empty"]

    def test_a_prepared_file_appears_when_it_is_published(self, io, place):
        io.create_folder(place)
        with io.prepare(f"{place}/x", b"1") as publish:
            assert not io.exists(f"{place}/x")
            publish()
            assert io.read(f"{place}/x") == b"1"
        with io.prepare(f"{place}/y", b"2"):
            pass
        with pytest.raises(ZeroDivisionError), io.prepare(f"{place}/z", b"3"):
            _ = 1 // 0
        with io.prepare(f"{place}/x", b"other") as publish, pytest.raises(FileAlreadyExistsError):
            publish()
        assert io.read(f"{place}/x") == b"1"
        assert self.names(io, place) == ["x"]

    def test_a_prepared_file_takes_the_place_of_another_where_that_is_said(self, io, place):
        io.create_folder(place)
        for content in (b"1", b"22"):
            with io.prepare(f"{place}/x", content, replace=True) as publish:
                publish()
            assert io.read(f"{place}/x") == content
        io.create_folder(f"{place}/folder")
        with (
            io.prepare(f"{place}/folder", b"3", replace=True) as publish,
            pytest.raises(FileIOError),
        ):
            publish()
        assert self.names(io, place) == ["x"]
        assert io.folders(place) == ["folder"]

    def test_files_made_side_by_side_are_there_at_the_end_or_when_they_are_looked_at(
        self, io, place
    ):
        numbers = range(20)
        with io.side_by_side(place):
            for number in numbers:
                io.create(f"{place}/{number}", b"%d" % number)
            assert io.read(f"{place}/19") == b"19"
            with io.create_stream(f"{place}/stream") as out:
                out.write(b"data")
            assert io.size(f"{place}/stream") == 4
            io.create(f"{place}/gone", b"")
            io.delete(f"{place}/gone")
        assert {name: io.read(f"{place}/{name}") for name in self.names(io, place)} == {
            **{str(number): b"%d" % number for number in numbers},
            "stream": b"data",
        }

    def test_the_end_of_a_side_by_side_block_raises_what_went_wrong_with_one(self, io, place):
        io.create(f"{place}/taken", b"old")

        def several():
            with io.side_by_side(place):
                for name in ("a", "taken", "b"):
                    io.create(f"{place}/{name}", b"new")

        with pytest.raises(FileAlreadyExistsError):
            several()
        assert io.read(f"{place}/taken") == b"old"
        assert set(self.names(io, place)) in ({"a", "b", "taken"}, {"a", "taken"})

    def test_listing_is_recursive_in_order_and_keeps_the_spelling(self, io, place):
        for name in ("b", "a/2", "a/1", "c/d/e"):
            io.create(f"{place}/{name}", b"xy")
        found = list(io.list(f"{place}/"))
        assert [each.location for each in found] == [
            f"{place}/{n}" for n in ("b", "a/1", "a/2", "c/d/e")
        ]
        assert {each.size for each in found} == {2}
        assert all(each.mtime_ms > 1_600_000_000_000 for each in found)
        assert list(io.list(f"{place}/none")) == []
        assert [each.location for each in io.list(f"{place}/b")] == [f"{place}/b"]

    def test_rename_does_not_overwrite(self, io, place):
        a, b = f"{place}/a", f"{place}/new/b"
        io.create(a, b"a")
        io.rename(a, b)
        assert io.read(b) == b"a"
        assert not io.exists(a)
        io.create(a, b"again")
        with pytest.raises(FileAlreadyExistsError):
            io.rename(a, b)
        assert (io.read(a), io.read(b)) == (b"again", b"a")
        with pytest.raises(NoSuchFileError, match="gone"):
            io.rename(f"{place}/gone", f"{place}/z")

    def test_a_folder_shows_what_is_in_it_and_not_what_is_below(self, io, place):
        for name in ("b.txt", "a.txt", "in/c.txt", "in/deep/d.txt", "also/e.txt"):
            io.create(f"{place}/shown/{name}", name.encode())
        for spelled in (f"{place}/shown", f"{place}/shown/"):
            found = io.entries(spelled)
            assert [s.location for s in found.files] == [
                f"{place}/shown/a.txt",
                f"{place}/shown/b.txt",
            ]
            assert [s.size for s in found.files] == [5, 5]
            assert list(found.folders) == ["also", "in"]
        listed = {s.location: s for s in io.list(f"{place}/shown")}
        assert all(listed[s.location] == s for s in found.files)
        nothing = io.entries(f"{place}/nowhere")
        assert (list(nothing.files), list(nothing.folders)) == ([], [])

    def test_folders_are_made_listed_and_deleted_when_empty(self, io, place):
        inner = f"{place}/a/b"
        assert not io.is_folder(inner)
        io.create_folder(inner)
        assert io.is_folder(inner)
        assert not io.exists(inner)
        io.create(f"{place}/a/file", b"x")
        io.create_folder(f"{place}/a/ä c")
        assert io.folders(f"{place}/a") == ["b", "ä c"]
        for taken in (inner, f"{place}/a/file"):
            with pytest.raises(FileAlreadyExistsError):
                io.create_folder(taken)
        assert not io.delete_folder(f"{place}/a")
        assert io.delete_folder(inner)
        for act in (io.delete_folder, io.folders):
            with pytest.raises(NoSuchFileError, match="a/b does not exist"):
                act(inner)
        assert io.read(f"{place}/a/file") == b"x"

    def test_of_many_creators_of_a_folder_exactly_one_succeeds(self, io, place):
        io.create_folder(place)
        barrier = threading.Barrier(4)
        won = []

        def create():
            barrier.wait()
            try:
                io.create_folder(f"{place}/f")
            except FileAlreadyExistsError:
                return
            won.append(1)

        threads = [threading.Thread(target=create) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert won == [1]
        assert io.folders(place) == ["f"]

    def test_it_travels_to_another_process(self, io, place):
        io.create(f"{place}/x", b"1")
        copy = pickle.loads(pickle.dumps(io))  # noqa: S301
        assert copy.read(f"{place}/x") == b"1"
