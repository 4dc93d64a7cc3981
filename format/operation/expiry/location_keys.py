"""Locations hashed to integers, to find the files that metadata names in little memory.

A file is identified by its path; scheme and authority are compared if the path is found, as in
Iceberg, where files of one path under two prefixes may or may not be the same. Locations are first
normalized (`linked_texts`); local symbolic links are resolved, also those to files. Each
location becomes eight bytes: a collision can only make an unneeded file look needed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from icecomb.format.errors import ValidationError
from icecomb.format.storage.hdfs.address import hadoop_properties, resolve_location
from icecomb.format.storage.location import PARTS, linked_texts

if TYPE_CHECKING:
    import pyarrow as pa

Keys = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

EQUAL_SCHEMES: Final[Mapping[str, str]] = {"s3n,s3a": "s3"}
"""The schemes that Iceberg takes for equal by default."""
_PARTS: Final = re.compile(r"(?:(?P<scheme>[^:]+):)?(?://(?P<authority>[^/]*))?")


@dataclass(frozen=True, slots=True)
class LocationKeys:
    """The keys of some locations, one row per location.

    Attributes:
        unnamed: Whether no scheme was written: such a location matches any scheme.
        open: Whether a scheme but no authority was written: such a location matches any
            authority.
        prefixes: The distinct prefixes (scheme and authority), and the index of each row's
            prefix.
    """

    path: Keys
    scheme: Keys
    whole: Keys
    unnamed: Mask
    open: Mask
    prefixes: tuple[tuple[str, ...], npt.NDArray[np.int64]]
    paths: list[str]


_Read: TypeAlias = "tuple[list[str], Keys, list[tuple[str, str]], Keys, list[str]]"
"""Prefixes as written, each row's index of them, those meant, each row's index, and paths."""


class Spelling:
    """The rules by which locations are read and compared.

    Args:
        equal_schemes: Schemes, separated by commas, mapped to the one that they are equal to.
        equal_authorities: The same for authorities.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        equal_schemes: Mapping[str, str] | None = None,
        equal_authorities: Mapping[str, str] | None = None,
    ) -> None:
        self._properties = properties
        schemes = {**flat("equal_schemes", EQUAL_SCHEMES), **flat("equal_schemes", equal_schemes)}
        self._schemes = schemes
        self._authorities = flat("equal_authorities", equal_authorities)

    def keys(self, locations: pa.Array) -> LocationKeys:
        """Return the keys of some locations."""
        written, rows, kinds, kind_of, paths = self._read(locations)
        path_keys = np.fromiter(map(hash, paths), np.int64, len(paths))
        return LocationKeys(
            path_keys,
            _joined(path_keys, np.array([hash(s) for s, _ in kinds], np.int64)[kind_of]),
            _joined(path_keys, np.array([hash(kind) for kind in kinds], np.int64)[kind_of]),
            np.array([not prefix for prefix in written], np.bool_)[rows],
            np.array([bool(p) and not _split(p)[1] for p in written], np.bool_)[rows],
            (tuple(f"{s}://{a}" if s else "file:" for s, a in kinds), kind_of),
            paths,
        )

    def check_resolved(self, locations: pa.Array, keys: LocationKeys) -> None:
        """Refuse locations of mount tables whose files are unknown here."""
        names, rows = keys.prefixes
        for row, name in enumerate(names):
            if name.startswith("viewfs:"):
                location = locations[int((rows == row).argmax())].as_py()
                resolve_location(location, hadoop_properties(self._properties))

    def identities(self, locations: Sequence[str]) -> list[int]:
        """Return numbers that are equal where locations name the same file or folder."""
        import pyarrow as pa

        found: list[int] = self.keys(pa.array(locations, pa.string())).whole.tolist()
        return found

    def are_same(self, one: str, other: str) -> bool:
        """Return whether two locations name the same file or folder."""
        return len(set(self.identities([one, other]))) == 1

    def paths(self, locations: pa.Array) -> list[str]:
        """Return the paths of some locations, without scheme and authority."""
        return self._read(locations)[-1]

    def _read(self, locations: pa.Array) -> _Read:
        import pyarrow as pa
        import pyarrow.compute as pc

        parts = pc.extract_regex(locations.cast(pa.string()), PARTS)
        before = pc.struct_field(parts, "prefix").dictionary_encode()
        written = before.dictionary.to_pylist()
        rows = before.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        meant = pa.array([self._meant(prefix) for prefix in written], pa.string())
        spelled = pc.binary_join_element_wise(
            meant.take(pa.array(rows)), pc.struct_field(parts, "path"), ""
        )
        plain = pa.array(linked_texts(spelled, self._properties), pa.string())
        parts = pc.extract_regex(plain, PARTS)
        after = pc.struct_field(parts, "prefix").dictionary_encode()
        kinds = [_split(prefix) for prefix in after.dictionary.to_pylist()]
        kind_of = after.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        paths = pc.struct_field(parts, "path").to_pylist()
        return written, rows, kinds, kind_of, paths

    def _meant(self, prefix: str) -> str:
        """Return a prefix with its scheme and authority replaced by those they are equal to."""
        if not prefix:
            return prefix
        scheme, authority = _split(prefix)
        scheme = self._schemes.get(scheme, scheme)
        found = _PARTS.match(prefix)
        if found is None or found["authority"] is None:
            return f"{scheme}:"
        return f"{scheme}://{self._authorities.get(authority, authority)}"


def flat(what: str, equal: Mapping[str, str] | None) -> dict[str, str]:
    """Convert `{"a,b": "c"}` to `{"a": "c", "b": "c"}`, in lower case."""
    found: dict[str, str] = {}
    for names, target in (equal or {}).items():
        if not isinstance(names, str) or not isinstance(target, str):
            raise ValidationError(
                f"{what} maps strings to a string, not {names!r} to {target!r}",
                hint="Write {'s3n,s3a': 's3'}.",
            )
        for name in names.split(","):
            key, value = name.strip().lower(), target.strip().lower()
            if found.setdefault(key, value) != value:
                raise ValidationError(
                    f"{what} says that {key} equals both {found[key]} and {value}",
                    hint="Name each once.",
                )
    return found


def _split(prefix: str) -> tuple[str, str]:
    found = _PARTS.match(prefix.lower())
    return ("", "") if found is None else (found["scheme"] or "", found["authority"] or "")


def _joined(paths: Keys, others: Keys) -> Keys:
    with np.errstate(over="ignore"):
        joined: Keys = (paths * np.int64(-7046029254386353131)) ^ others
    return joined
