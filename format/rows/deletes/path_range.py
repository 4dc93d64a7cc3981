"""The data files that a position delete file names, as far as its bounds tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_NO_PATHS: Final = (0, 16)
"""The lengths of what is not a whole path: writers truncate bounds to 16 characters
(`write.metadata.metrics.default`)."""


@dataclass(frozen=True, slots=True)
class PathRange:
    """The paths of data files that a delete file may name.

    Attributes:
        lower: A path that is not above any of them, in UTF-8; None if unknown.
        upper: The beginning of a path that is not below any of them; None if unknown.
        only: The only path, if there is one.
    """

    lower: bytes | None
    upper: bytes | None
    only: str | None = None

    def covers(self, path: bytes) -> bool:
        """Return whether the delete file may name a data file."""
        if self.lower is not None and path < self.lower:
            return False
        # some writers truncate upper bounds without raising them
        return self.upper is None or path <= self.upper or path.startswith(self.upper)


def path_range(lower: bytes | None, upper: bytes | None) -> PathRange:
    """Return what the bounds of the column `file_path` say, as far as they can be right.

    Others say nothing: a delete file that is taken for one about other data files would bring
    deleted rows back.
    """
    first, last = _text(lower), _text(upper)
    lower, upper = lower if first is not None else None, upper if last is not None else None
    if lower is not None and upper is not None and lower > upper:
        return PathRange(None, None)
    is_whole = first is not None and first == last and len(first) not in _NO_PATHS
    return PathRange(lower, upper, first if is_whole else None)


def _text(bound: bytes | None) -> str | None:
    try:
        return None if bound is None else bound.decode()
    except UnicodeDecodeError:
        return None
