"""HDFS as a `pyarrow.fs` file system, for Arrow's own readers and writers. Paths are locations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import fs

from icecomb.format.errors import FileMissingError, UnsupportedError
from icecomb.format.storage.file_system import exists_already

if TYPE_CHECKING:
    from icecomb.format.storage.hdfs.file_system import HdfsFileSystem


class HdfsArrowHandler(fs.FileSystemHandler):  # type: ignore[misc]
    """See `pyarrow.fs.FileSystemHandler`. Nothing overwrites or appends: files are immutable."""

    def __init__(self, files: HdfsFileSystem) -> None:
        self._files = files

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HdfsArrowHandler) and other._files is self._files

    def __hash__(self) -> int:
        return id(self._files)

    def get_type_name(self) -> str:
        """`hdfs`."""
        return "hdfs"

    def normalize_path(self, path: str) -> str:
        """Locations stay as they are."""
        return path

    def get_file_info(self, paths: Sequence[str]) -> list[fs.FileInfo]:
        """One for each path."""
        return [self._info(path) for path in paths]

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        """What is in a folder, and below it if asked."""
        web, address = self._files.cluster(selector.base_dir)
        try:
            entries = web.entries(address.path, selector.base_dir)
        except FileMissingError:
            if selector.allow_not_found:
                return []
            raise
        found = []
        for entry in entries:
            path = f"{selector.base_dir.rstrip('/')}/{entry.name}"
            kind = fs.FileType.Directory if entry.is_folder else fs.FileType.File
            size = None if entry.is_folder else entry.size
            found.append(fs.FileInfo(path, kind, size=size, mtime_ns=entry.mtime_ms * 1_000_000))
            if entry.is_folder and selector.recursive:
                found += self.get_file_info_selector(fs.FileSelector(path, recursive=True))
        return found

    def create_dir(self, path: str, recursive: bool) -> None:  # noqa: ARG002, FBT001
        """Make a folder; one that exists is left as it is."""
        web, address = self._files.cluster(path)
        web.make_folder(address.path, path)

    def delete_dir(self, path: str) -> None:
        """Delete a folder and all in it."""
        web, address = self._files.cluster(path)
        web.delete(address.path, path, recursive=True)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:  # noqa: FBT001, FBT002
        """Delete all in a folder."""
        web, address = self._files.cluster(path)
        try:
            entries = web.entries(address.path, path)
        except FileMissingError:
            if missing_dir_ok:
                return
            raise
        for entry in entries:
            web.delete(f"{address.path}/{entry.name}", path, recursive=True)

    def delete_root_dir_contents(self) -> None:
        """Refused."""
        raise UnsupportedError(
            "All of a cluster is never deleted",
            hint="name the folder whose files are to be deleted",
        )

    def delete_file(self, path: str) -> None:
        """Delete one file."""
        self._files.delete([path])

    def move(self, src: str, dest: str) -> None:
        """Rename a file, replacing nothing."""
        self._files.rename(src, dest)

    def copy_file(self, src: str, dest: str) -> None:
        """Copy a file through this process."""
        with self._files.open_input(src) as source, self._files.create_stream(dest) as out:
            while piece := source.read(8 << 20):
                out.write(piece)

    def open_input_stream(self, path: str) -> pa.NativeFile:
        """For reading on and on."""
        return self._files.open_input(path)

    def open_input_file(self, path: str) -> pa.NativeFile:
        """For reading ranges."""
        return self._files.open_input(path)

    def open_output_stream(self, path: str, metadata: Mapping[str, str] | None) -> pa.NativeFile:  # noqa: ARG002
        """A new file; it appears when the stream is closed."""
        if self._files.exists(path):
            raise exists_already(path)
        return pa.PythonFile(_Output(self._files, path), mode="w")

    def open_append_stream(self, path: str, metadata: Mapping[str, str] | None) -> pa.NativeFile:  # noqa: ARG002
        """Refused."""
        raise UnsupportedError(
            f"Cannot append to {path}: files of tables are immutable",
            hint="write another file",
            path=path,
        )

    def _info(self, path: str) -> fs.FileInfo:
        web, address = self._files.cluster(path)
        try:
            status = web.status(address.path, path)
        except FileMissingError:
            return fs.FileInfo(path, fs.FileType.NotFound)
        if status.is_folder:
            return fs.FileInfo(path, fs.FileType.Directory)
        return fs.FileInfo(
            path, fs.FileType.File, size=status.size, mtime_ns=status.mtime_ms * 1_000_000
        )


class _Output:
    """`create_stream` as an object that is closed."""

    def __init__(self, files: HdfsFileSystem, path: str) -> None:
        self._context: Any = files.create_stream(path)
        self._stream = self._context.__enter__()
        self._position = 0
        self.closed = False

    def writable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Bytes written."""
        return self._position

    def write(self, data: Any) -> int:
        """Send a piece."""
        self._position += len(data)
        return int(self._stream.write(data))

    def flush(self) -> None:
        """Do nothing: every piece is sent at once."""

    def close(self) -> None:
        """Publish the file."""
        if not self.closed:
            self.closed = True
            self._context.__exit__(None, None, None)
