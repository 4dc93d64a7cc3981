"""Statistics files that others computed, set and removed (PyIceberg's `update_statistics`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.argument import MAX_LONG, checked_int, json_of_pyiceberg, name_of_type
from icecomb.format.errors import ValidationError
from icecomb.format.evolution.pending_update import Commit, PendingUpdate
from icecomb.format.spec.change.requirement import AssertTableUUID
from icecomb.format.spec.change.update import (
    Changes,
    RemoveStatisticsUpdate,
    SetStatisticsUpdate,
)
from icecomb.format.spec.metadata import existing_snapshot

if TYPE_CHECKING:
    from typing_extensions import Self

    from icecomb.format.spec.metadata import TableMetadata

_MEMBERS: Final = {
    "snapshot-id": int,
    "statistics-path": str,
    "file-size-in-bytes": int,
    "file-footer-size-in-bytes": int,
    "blob-metadata": list,
}
"""The required members of a statistics file (spec: Table Statistics), and their types in JSON."""


class UpdateStatistics(PendingUpdate):
    """An update that sets and removes statistics files of snapshots, in the order of the calls.

    Args:
        commit: See `PendingUpdate`.
    """

    def __init__(self, commit: Commit | None = None) -> None:
        super().__init__(commit)
        self._updates: list[SetStatisticsUpdate | RemoveStatisticsUpdate] = []

    def set_statistics(self, statistics_file: Any) -> Self:
        """Set the statistics file of a snapshot, in place of the one it has; the file is not read.

        Args:
            statistics_file: PyIceberg's `StatisticsFile`, or a mapping of the members that the
                specification names, as in `metadata.statistics`.

        Raises:
            ValidationError: If it is something else, or a member is missing or of another type.
        """
        given = json_of_pyiceberg(statistics_file)
        found = statistics_file if given is None else given
        if not isinstance(found, Mapping):
            raise ValidationError(
                f"A statistics file is a mapping, not {name_of_type(statistics_file)}",
                hint=f"Give its {', '.join(_MEMBERS)}.",
            )
        for name, kind in _MEMBERS.items():
            if type(found.get(name)) is not kind:
                raise ValidationError(
                    f"The {name} of a statistics file cannot be {found.get(name)!r}",
                    hint=f"Give its {', '.join(_MEMBERS)}, as metadata.statistics has them.",
                )
        stated = {name: value for name, value in found.items() if value is not None}
        try:
            copied = json.loads(json.dumps(stated))
        except (TypeError, ValueError) as error:
            raise ValidationError(
                f"A statistics file has members that JSON does not have: {error}",
                hint="Give it as metadata.statistics has it.",
            ) from error
        self._updates.append(SetStatisticsUpdate(copied))
        return self

    def remove_statistics(self, snapshot_id: int) -> Self:
        """Remove the statistics file of a snapshot, if it has one; the file itself stays.

        Raises:
            ValidationError: If it is not a number.
        """
        self._updates.append(
            RemoveStatisticsUpdate(checked_int("snapshot id", snapshot_id, most=MAX_LONG))
        )
        return self

    def apply(self, base: TableMetadata) -> Changes:
        """Implement `PendingUpdate.apply`.

        Raises:
            NoSuchSnapshotError: If a snapshot that gets statistics does not exist.
        """
        for update in self._updates:
            if isinstance(update, SetStatisticsUpdate):
                said = f"Cannot set statistics: the table at {base.location} has"
                existing_snapshot(base, update.statistics["snapshot-id"], said)
        if not self._updates:
            return Changes()
        return Changes((AssertTableUUID(base.table_uuid),), tuple(self._updates))
