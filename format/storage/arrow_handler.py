"""A `pyarrow.fs` file system on top of a `FileSystem`, for Arrow's readers; paths are locations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import fs

from icecomb.format.errors import NoSuchFileError, UnsupportedError
from icecomb.format.storage.file_system import check_levels, exists_already, is_missing

if TYPE_CHECKING:
    from icecomb.format.storage.file_system import FileSystem


class ArrowHandler(fs.FileSystemHandler):  # type: ignore[misc]
    """A `pyarrow.fs.FileSystemHandler` that never overwrites or appends: files are immutable."""

    def __init__(self, files: FileSystem, type_name: str) -> None:
        self._files = files
        self._type_name = type_name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArrowHandler) and other._files is self._files

    def __hash__(self) -> int:
        return id(self._files)

    def get_type_name(self) -> str:
        """Return the name this handler was created with."""
        return self._type_name

    def normalize_path(self, path: str) -> str:
        """Return the location unchanged."""
        return path

    def get_file_info(self, paths: Sequence[str]) -> list[fs.FileInfo]:
        """Return the status of each path."""
        return [self._info(path) for path in paths]

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        """List a folder, and the folders below it if the selector is recursive."""
        folder = selector.base_dir.rstrip("/")
        if not self._files.is_folder(folder):
            if selector.allow_not_found:
                return []
            raise is_missing(folder)
        found: list[fs.FileInfo] = []
        left = [folder]
        while left:
            inner = left.pop()
            check_levels(folder, inner)
            entries = self._files.entries(inner)
            found += [_file(one.location, one.size, one.mtime_ms) for one in entries.files]
            below = [f"{inner}/{name}" for name in entries.folders]
            found += [fs.FileInfo(path, fs.FileType.Directory) for path in below]
            left += below if selector.recursive else ()
        return found

    def create_dir(self, path: str, recursive: bool) -> None:  # noqa: ARG002, FBT001
        """Create a folder unless it exists."""
        if not self._files.is_folder(path):
            self._files.create_folder(path)

    def delete_dir(self, path: str) -> None:
        """Delete a folder and everything in it."""
        self.delete_dir_contents(path, missing_dir_ok=True)
        with suppress(NoSuchFileError):
            self._files.delete_folder(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:  # noqa: FBT001, FBT002
        """Delete everything in a folder."""
        if not missing_dir_ok and not self._files.is_folder(path):
            raise is_missing(path)
        self._files.delete([status.location for status in self._files.list(path)])
        for name in self._files.entries(path).folders:
            self.delete_dir(f"{path.rstrip('/')}/{name}")

    def delete_root_dir_contents(self) -> None:
        """Refuse to delete everything."""
        raise UnsupportedError(
            "A whole storage is never deleted",
            hint="Name the folder whose files are to be deleted.",
        )

    def delete_file(self, path: str) -> None:
        """Delete one file."""
        self._files.delete([path])

    def move(self, src: str, dest: str) -> None:
        """Rename a file without overwriting."""
        self._files.rename(src, dest)

    def copy_file(self, src: str, dest: str) -> None:
        """Copy a file through this process."""
        with self._files.open_input(src) as source, self._files.create_stream(dest) as out:
            while piece := source.read(8 << 20):
                out.write(piece)

    def open_input_stream(self, path: str) -> pa.NativeFile:
        """Open a file for sequential reads."""
        return self._files.open_input(path)

    def open_input_file(self, path: str) -> pa.NativeFile:
        """Open a file for random access."""
        return self._files.open_input(path)

    def open_output_stream(self, path: str, metadata: Mapping[str, str] | None) -> pa.NativeFile:  # noqa: ARG002
        """Create a file that appears when the stream is closed."""
        if self._files.exists(path):
            raise exists_already(path)
        return pa.PythonFile(_Output(self._files, path), mode="w")

    def open_append_stream(self, path: str, metadata: Mapping[str, str] | None) -> pa.NativeFile:  # noqa: ARG002
        """Refuse to append."""
        raise UnsupportedError(
            f"Cannot append to {path}: files of tables are immutable",
            hint="Write another file.",
            path=path,
        )

    def _info(self, path: str) -> fs.FileInfo:
        if self._files.is_folder(path):
            return fs.FileInfo(path, fs.FileType.Directory)
        try:
            return fs.FileInfo(path, fs.FileType.File, size=self._files.size(path))
        except NoSuchFileError:
            return fs.FileInfo(path, fs.FileType.NotFound)


def _file(path: str, size: int, mtime_ms: int) -> fs.FileInfo:
    return fs.FileInfo(path, fs.FileType.File, size=size, mtime_ns=mtime_ms * 1_000_000)


class _Output:
    """A file-like object around the `create_stream` context manager."""

    def __init__(self, files: FileSystem, path: str) -> None:
        self._context: Any = files.create_stream(path)
        self._stream = self._context.__enter__()
        self._position = 0
        self.closed = False

    def writable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self._position

    def write(self, data: Any) -> int:
        """Send a chunk."""
        self._position += len(data)
        return int(self._stream.write(data))

    def flush(self) -> None:
        """Do nothing: every chunk is sent immediately."""

    def close(self) -> None:
        """Publish the file."""
        if not self.closed:
            self.closed = True
            self._context.__exit__(None, None, None)
