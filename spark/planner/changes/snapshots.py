"""Selection of the snapshots of a changelog."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import NoSuchSnapshotError, ValidationError
from icecomb.format.spec.ancestry import ancestors_of
from icecomb.format.spec.snapshot import Operation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot

START: Final = "start-snapshot-id"
END: Final = "end-snapshot-id"
START_TIME: Final = "start-timestamp"
END_TIME: Final = "end-timestamp"
RANGE_OPTIONS: Final = (START, END, START_TIME, END_TIME)
"""The options that select snapshots; others are ignored."""


def changed_snapshots(metadata: TableMetadata, options: Mapping[str, str]) -> list[Snapshot]:
    """Return the selected snapshots, oldest first, but `replace` ones: they change no rows."""
    given = {key: _whole(key, options[key]) for key in RANGE_OPTIONS if key in options}
    for one, other in ((START, START_TIME), (END, END_TIME)):
        if one in given and other in given:
            raise ValidationError(
                f"{one} and {other} are both given", hint="give at most one of them"
            )
    if START_TIME in given and END_TIME in given and given[START_TIME] >= given[END_TIME]:
        raise ValidationError(
            f"Cannot set {START_TIME} to be greater than {END_TIME} for changelogs, or the same: "
            f"{given[START_TIME]}, {given[END_TIME]}",
            hint="give the earlier time first",
        )
    for key in (START, END):
        if key in given and not metadata.has_snapshot(given[key]):
            raise NoSuchSnapshotError(
                f"{key} {given[key]}: the table has no such snapshot",
                hint="look for its id in the snapshots of the table; it may have expired",
            )
    line = list(ancestors_of(metadata, given.get(END, metadata.current_snapshot_id)))
    if END_TIME in given:
        line = [s for s in line if s.timestamp_ms <= given[END_TIME]]
    if START_TIME in given:
        line = [s for s in line if s.timestamp_ms > given[START_TIME]]
    if START in given:
        ids = [snapshot.snapshot_id for snapshot in line]
        if given[START] not in ids:
            raise ValidationError(
                f"{START} {given[START]} is not an ancestor of the end",
                hint="give an ancestor of the end: see ancestors_of",
            )
        line = line[: ids.index(given[START])]
    return [s for s in reversed(line) if s.operation != Operation.REPLACE]


def older_than_lineage(metadata: TableMetadata, snapshot: Snapshot) -> Snapshot | None:
    """Return the commit or its parent, if rows of it have no ids; None if all rows have."""
    parent = metadata.snapshot_by_id(snapshot.parent_snapshot_id or -1)
    return next((s for s in (parent, snapshot) if s is not None and s.first_row_id is None), None)


def _whole(key: str, text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,19}", text):
        raise ValidationError(f"{key} must be an integer, not {text!r}", hint="give it as digits")
    return int(text)
