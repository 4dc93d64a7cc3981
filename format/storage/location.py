"""Comparison of locations: which of them name the same file, however they are spelled.

In metadata a location stays as it was written. Before files are added or deleted, it matters that
`/a/x`, `file:/a/x`, `file:///a//x` and `/a/b/../x` are one file. So are `hdfs:///x`, `hdfs://nn/x`
and `/x` if `fs.defaultFS` is the cluster `nn`. Links of local disks are followed by `linked_texts`
only.

On object stores `s3://b/x`, `s3a://b/x` and `s3n://b/x` are one file, and so are
`abfss://c@a.dfs.host/x` and `wasb://c@a.blob.host/x`. `s3a://b/a//x` is a key of its own for
S3FileIO, PyIceberg and icecomb, but `a/x` for Hadoop, whose paths have no empty or dotted parts.
These count as one file, too, so that no file is added twice and none is deleted that is needed.
Nothing in a key is decoded: `%20` is three characters for all.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import FileIOError, IcecombError, ValidationError
from icecomb.format.storage.storage_property import LOCAL_PREFIXES

if TYPE_CHECKING:
    import pyarrow as pa

    from icecomb.format.storage.file_io import FileIO


PARTS: Final = r"^(?P<prefix>(?:[A-Za-z][A-Za-z0-9+.\-]*:(?://[^/]*)?)?)(?P<path>(?s:.*))$"
"""A location's prefix (scheme and authority) and path, for `re` and for Arrow."""
_LOCAL: Final = re.compile(r"file:.*", re.IGNORECASE)
_HDFS: Final = re.compile(r"(?:hdfs|webhdfs|swebhdfs|viewfs):.*", re.IGNORECASE)
_STORE: Final = re.compile(
    r"(?P<scheme>s3|s3a|s3n|gs|gcs|abfs|abfss|wasb|wasbs):(?://(?P<authority>[^/]*))?",
    re.IGNORECASE,
)
_KINDS: Final = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "s3"),
    **dict.fromkeys(("gs", "gcs"), "gs"),
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs"), "abfs"),
}
_PARTS: Final = re.compile(PARTS)
_DOTS: Final = r"/\.{1,2}(?:/|$)"
_DOTTED: Final = re.compile(_DOTS)
_SLASHES: Final = re.compile("/{2,}")
_FEW: Final = 50
"""At most this many locations are compared sooner one by one than as a column."""
_AMBIGUOUS: Final = re.compile(r"[^:/]+://[^/]*/(?:.*/)?(?:/|\.{1,2}(?:/|$))", re.DOTALL)
_UNDECODED: Final = re.compile("[\ud800-\udfff]")
_LOCAL_SCHEME: Final = "file"


def plain_texts(
    locations: pa.Array | Iterable[str],
    properties: Mapping[str, str],
    *,
    any_cluster: bool = False,
) -> list[str]:
    """Return the canonical spelling of each location; see `plain_locations`."""
    import pyarrow as pa

    given = locations if isinstance(locations, pa.Array) else list(locations)
    if len(given) > _FEW:
        column = given if isinstance(given, pa.Array) else _array(given)
        plain = plain_locations(column, properties, any_cluster=any_cluster)
        return plain.to_pylist()  # type: ignore[no-any-return]
    texts = given.to_pylist() if isinstance(given, pa.Array) else given
    settings = _Settings(properties)
    return [_plain_text(_utf_8(text), settings, any_cluster=any_cluster) for text in texts]


def plain_paths(locations: Iterable[str], properties: Mapping[str, str]) -> list[str]:
    """Return the canonical paths of locations, whatever storage they are in."""
    return [re.sub(PARTS, r"\g<path>", text) for text in plain_texts(locations, properties)]


def plain_locations(
    locations: pa.Array, properties: Mapping[str, str], *, any_cluster: bool = False
) -> pa.Array:
    """Return texts that are equal where locations name the same file.

    On storage of unknown kinds every text names a file of its own.

    Args:
        any_cluster: Whether equal paths on different clusters or in different buckets are equal,
            too. Needed to decide whether a file may be deleted: a cluster may have several names,
            and a bucket access points.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    settings = _Settings(properties)
    parts = pc.extract_regex(locations.cast(pa.string()), PARTS)
    prefixes, paths = pc.struct_field(parts, "prefix"), pc.struct_field(parts, "path")
    out = locations.cast(pa.string())
    for prefix in prefixes.unique().to_pylist():
        meant = prefix or settings.default()
        start = _start(meant, settings, any_cluster=any_cluster)
        if start is None:
            continue
        rows = pc.equal(prefixes, prefix)
        chosen = paths.filter(rows)
        if settings.is_mounted(meant):
            plain = pa.array(
                [_mounted(meant + p, settings, any_cluster) for p in chosen.to_pylist()]
            )
        else:
            plain = pc.binary_join_element_wise(start, _plain_paths(chosen), "")
        out = pc.replace_with_mask(out, rows, plain.cast(out.type))
    return out


def _plain_text(location: str, settings: _Settings, *, any_cluster: bool) -> str:
    """Return what `plain_locations` does for one location."""
    parts = _PARTS.match(location)
    assert parts is not None  # it matches every text  # noqa: S101
    meant = parts["prefix"] or settings.default()
    start = _start(meant, settings, any_cluster=any_cluster)
    if start is None:
        return location
    path = parts["path"]
    if settings.is_mounted(meant):
        return _mounted(meant + path, settings, any_cluster)
    path = _SLASHES.sub("/", path)
    return start + (posixpath.normpath(path) if _DOTTED.search(path) else path)


def _start(meant: str, settings: _Settings, *, any_cluster: bool) -> str | None:
    """Return the canonical spelling of a scheme and authority; None if their kind is unknown."""
    if _LOCAL.fullmatch(meant):
        return ""
    if _HDFS.fullmatch(meant):
        return _cluster(meant, settings, any_cluster=any_cluster)
    store = _STORE.fullmatch(meant)
    return None if store is None else _bucket(store, settings, any_cluster=any_cluster)


def linked_texts(
    locations: pa.Array | Iterable[str], properties: Mapping[str, str], *, names: bool = True
) -> list[str]:
    """Return texts that are equal where locations name the same file, also by a local link.

    Args:
        names: Whether a link is followed that is the file itself, too: who deletes a file deletes
            the link.
    """
    real = cache(_real)

    def followed(path: str) -> str:
        above, _, name = path.rpartition("/")
        if not (above or name) or "\0" in path:
            return path
        found = f"{real(above or '/').rstrip('/')}/{name}"
        if not names:
            return found
        return _real(found) if os.path.islink(found) else found  # noqa: PTH114 - fast

    plain = plain_texts(locations, properties)
    return [_encodable(followed(text)) if text.startswith("/") else text for text in plain]


def _encodable(path: str) -> str:
    """Return a path to which a link led, without bytes that are not UTF-8; no other has a NUL."""
    return path if path.isascii() else _UNDECODED.sub(lambda one: f"\0{ord(one[0]):x}", path)


def _array(locations: Iterable[str]) -> pa.Array:
    import pyarrow as pa

    given = list(locations)
    try:
        return pa.array(given, pa.string())
    except UnicodeEncodeError as error:
        raise _not_utf_8(str(error.object)) from None


def _utf_8(location: str) -> str:
    if not location.isascii() and _UNDECODED.search(location):
        raise _not_utf_8(location)
    return location


def _not_utf_8(location: str) -> ValidationError:
    return ValidationError(
        f"The location {location!r} is not UTF-8: no metadata can name it",
        hint="Rename the file or the folder.",
        path=location,
    )


def _real(path: str) -> str:
    try:
        return os.path.realpath(path)
    except OSError as error:  # a link became something else meanwhile
        raise FileIOError(
            f"Where {path} leads to cannot be told: {error.strerror}",
            hint="Look who changes the folders, and repeat it.",
            path=path,
        ) from error


def outside(
    folders: Iterable[str],
    locations: Iterable[str],
    properties: Mapping[str, str],
    *,
    names: bool = True,
) -> frozenset[str]:
    """Return the files that are in none of the folders, however their paths are spelled.

    A folder of a local disk that is a link is where it leads; for `names` see `linked_texts`.
    """
    starts = tuple(f"{one.rstrip('/')}/" for one in linked_texts(folders, properties))
    given = list(locations)
    paths = linked_texts(given, properties, names=names)
    pairs = zip(given, paths, strict=True)
    return frozenset(name for name, path in pairs if not path.startswith(starts))


def led_out(folder: str, locations: Iterable[str], properties: Mapping[str, str]) -> frozenset[str]:
    """Return the files that links below a local folder lead out of it; elsewhere none.

    The folder may be a link itself; the files are below it, as their paths say.
    """
    is_local = plain_texts([folder], properties)[0].startswith("/")
    return outside([folder], locations, properties) if is_local else frozenset()


def is_ambiguous(location: str) -> bool:
    """Return whether Hadoop finds another object at an object store's location than others do."""
    return _STORE.match(location) is not None and _AMBIGUOUS.match(location) is not None


def hadoop_location(location: str) -> str:
    """Return an object store's location as Hadoop reads it: without empty and dotted parts."""
    parts = re.fullmatch(PARTS, location)
    if parts is None or not is_ambiguous(location):
        return location
    return parts["prefix"] + posixpath.normpath(re.sub("/{2,}", "/", parts["path"]))


def check_table_location(location: str) -> None:
    """Refuse a folder that engines would not agree on; see `is_ambiguous`."""
    if is_ambiguous(location):
        raise ValidationError(
            f"A table cannot be at {location}: for engines that write through Hadoop that is "
            f"{hadoop_location(location)}",
            hint="Choose a location without empty and dotted parts.",
            path=location,
        )


class _Settings:
    """Hadoop's settings, read once for many locations."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._given = properties

    @cached_property
    def all(self) -> Mapping[str, str]:
        """The settings of Hadoop's files and those given."""
        from icecomb.format.storage.hdfs.address import hadoop_properties

        return hadoop_properties(self._given)

    def default(self) -> str:
        """Return the scheme that Hadoop assumes for a path without one, and its colon."""
        from icecomb.format.storage.hdfs.address import default_scheme

        return f"{default_scheme(self.all)}:"

    def is_mounted(self, meant: str) -> bool:
        """Return whether each path of a cluster has to be looked up in a mount table."""
        from icecomb.format.storage.hdfs.address import is_mounted

        if not _HDFS.fullmatch(meant):
            return False
        try:
            return is_mounted(f"{meant}/", self.all)
        except IcecombError:
            return meant.lower().startswith("viewfs:")

    def resolved(self, location: str) -> tuple[str, str] | None:
        """Return the cluster and the path of a location; None if the settings do not tell."""
        from icecomb.format.storage.hdfs.address import cluster_of, resolve_location

        try:
            address = resolve_location(location, self.all)
        except IcecombError:
            return None
        return cluster_of(address, self.all), address.path


def _plain_paths(paths: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    paths = pc.replace_substring_regex(paths, "/{2,}", "/")
    dotted = pc.match_substring_regex(paths, _DOTS)
    if not pc.any(dotted).as_py():
        return paths
    plain = [posixpath.normpath(path) for path in paths.filter(dotted).to_pylist()]
    return pc.replace_with_mask(paths, dotted, pa.array(plain, paths.type))


def _cluster(prefix: str, settings: _Settings, *, any_cluster: bool) -> str:
    if any_cluster:
        return "hdfs:"
    found = settings.resolved(prefix + "/")
    return prefix.lower() if found is None else found[0]


def _bucket(found: re.Match[str], settings: _Settings, *, any_cluster: bool) -> str:
    """Return one name for a bucket or container, whichever interface a location uses."""
    kind, authority = _KINDS[found["scheme"].lower()], found["authority"]
    if any_cluster:
        return f"{kind}:"
    if not authority:
        default = _STORE.match(settings.all.get("fs.defaultFS", ""))
        same = default is not None and _KINDS[default["scheme"].lower()] == kind
        authority = default["authority"] if same and default is not None else ""
    if kind == "abfs":
        container, at, host = authority.partition("@")
        host = re.sub(r"\.blob\.", ".dfs.", host.lower(), count=1)
        authority = f"{container}{at}{host}"
    return f"{kind}://{authority}"


def _mounted(location: str, settings: _Settings, any_cluster: bool) -> str:  # noqa: FBT001
    found = settings.resolved(location)
    if found is None:
        return location
    cluster, path = found
    return ("hdfs:" if any_cluster else cluster) + posixpath.normpath(path)


def check_local_names(io: FileIO, by: str, locations: Sequence[str] | pa.Array) -> None:
    """Refuse local files named by a file on other storage, unless `local.allowed-prefixes`.

    Who can write to a table's folder on a cluster could otherwise have any file of whoever
    maintains the table read, and its rows written into the table by a rewrite.
    """
    if io.scheme_of(by) == _LOCAL_SCHEME:
        return
    # most are spelled alike
    start = f"{by.partition('/')[0]}/"
    if isinstance(locations, Sequence):
        others = [one for one in locations if not one.startswith(start)]
    else:
        others = _otherwise(locations, start)
    local = [one for one in others if io.scheme_of(one) == _LOCAL_SCHEME]
    if not local:
        return
    refused = outside(LOCAL_PREFIXES.of(io.properties), local, {})
    for location in filter(refused.__contains__, local):
        raise ValidationError(
            f"{by} names a file of this machine: {location}",
            hint="Its writer may not be trusted; if it is a file of the table, name its folder "
            f"in the catalog's {LOCAL_PREFIXES.key}.",
            path=location,
        )


def _otherwise(locations: pa.Array, start: str) -> list[str]:
    """Return the distinct locations that do not begin with a text."""
    import pyarrow.compute as pc

    alike = pc.starts_with(locations, start)
    if pc.all(alike).as_py() is not False:
        return []
    found: list[str] = pc.unique(locations.filter(pc.invert(alike))).to_pylist()
    return found
