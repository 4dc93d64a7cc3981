"""Where the files of a relocated table are, and where they go."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol

from icecomb.format.argument import checked_text
from icecomb.format.errors import ValidationError
from icecomb.format.storage.location import PARTS, is_ambiguous, plain_texts

if TYPE_CHECKING:
    from icecomb.format.errors import NoSuchFileError


class Route(Protocol):
    """Where the files of a table are, and where they go."""

    @property
    def change(self) -> LocationChange:
        """The prefix that is replaced in locations."""

    def found(self, location: str) -> str:
        """Return where the file of a location in the metadata is now."""

    def kept(self, location: str, what: str) -> str:
        """Return the new location of a file that stays as it is."""

    def rewritten(self, location: str, what: str) -> str:
        """Return the new location of a file that is rewritten; raises as `kept`."""

    def put(self, location: str, content: bytes) -> str:
        """Create the new file in several threads; return where it is to be copied from."""

    def missing(self, location: str, what: str, error: NoSuchFileError) -> None:
        """Note that a file is missing, or raise the error."""


@dataclass(frozen=True, slots=True)
class MovedFile:
    """A file of the table at its new location.

    Attributes:
        source: Where it is to be copied from: the file itself, or a rewritten one.
        size: Its length in bytes as its manifest states it; None if none does.
    """

    what: str
    source: str
    target: str
    size: int | None = None
    is_rewritten: bool = False


@dataclass(slots=True)
class Relocated:
    """The files that a relocation found or wrote.

    Attributes:
        files: All files to be copied, those that name others after these; the metadata file
            last.
    """

    files: list[MovedFile] = field(default_factory=list)
    manifests: int = 0
    deletes: int = 0


_DOTTED: Final = re.compile(r"/\.{1,2}(?:/|$)")
_ODD: Final = re.compile(rf"//|{_DOTTED.pattern}")


class LocationChange:
    """A prefix of locations, and the one that takes its place.

    Schemes and authorities that mean the same storage are equal. Paths are compared element by
    element; outside of object stores, empty and dotted elements are resolved before, while an
    object's key with a dotted element is under no prefix, as a copy would lead out of its folder.
    """

    def __init__(self, source: str, target: str, properties: Mapping[str, str]) -> None:
        for what, given in (("Source", source), ("Target", target)):
            if not checked_text(f"{what.lower()} prefix", given).strip():
                raise ValidationError(
                    f"{what} prefix('{given}') cannot be empty.",
                    hint="Give a folder, such as the location of the table.",
                )
        if source.rstrip("/") == target.rstrip("/"):
            raise ValidationError(
                f"Source prefix cannot be the same as target prefix ({source})",
                hint="To bring a table back where its files are, register its metadata file.",
            )
        self.source = source
        self.target = target
        self._storage = lru_cache(maxsize=256)(lambda prefix: _storage(prefix, properties))
        prefix, path = self._split(source)
        self._source_storage, self._path = self._storage(prefix), path.rstrip("/")

    def rest(self, location: str) -> str | None:
        """Return what follows the prefix in a location, or None if it is not under it."""
        prefix, path = self._split(location)
        if self._storage(prefix) != self._source_storage or not path.startswith(self._path):
            return None
        rest = path[len(self._path) :]
        if rest in {"", "/"}:
            return ""
        return rest if rest.startswith("/") and not _DOTTED.search(rest) else None

    def _split(self, location: str) -> tuple[str, str]:
        found = re.fullmatch(PARTS, location)
        prefix, path = ("", location) if found is None else (found["prefix"], found["path"])
        if _ODD.search(path) and not is_ambiguous(f"{self._storage(prefix)}{path}"):
            end = "/" if path.endswith("/") else ""
            path = posixpath.normpath(re.sub("/{2,}", "/", path)) + end
        return prefix, path

    def moved(self, location: str, what: str) -> str:
        """Return the location with the other prefix; `what` is there, for the error."""
        rest = self.rest(location)
        if rest is None:
            raise ValidationError(
                f"Encountered {what} {location} not under the source prefix {self.source}",
                hint="A path with . or .. may lead to any folder: make sure of who wrote the table."
                if _DOTTED.search(location)
                else "Give a source prefix that all files of the table have in common.",
                path=location,
            )
        return joined(self.target, rest)


def joined(prefix: str, rest: str) -> str:
    """Return a prefix with what follows it: empty, or a slash and more."""
    return prefix.rstrip("/") + rest if rest else prefix


def _storage(prefix: str, properties: Mapping[str, str]) -> str:
    """Return one text for all schemes and authorities that mean the same storage."""
    return plain_texts([f"{prefix}/"], properties)[0]
