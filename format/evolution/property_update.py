"""Changing the properties and the location of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from icecomb.format.errors import ValidationError
from icecomb.format.evolution.pending_update import Commit, PendingUpdate
from icecomb.format.requirement import AssertTableUUID
from icecomb.format.table_property import check_not_reserved, check_properties
from icecomb.format.update import (
    Changes,
    RemovePropertiesUpdate,
    SetLocationUpdate,
    SetPropertiesUpdate,
    UpgradeFormatVersionUpdate,
)

if TYPE_CHECKING:
    from typing_extensions import Self

    from icecomb.format.metadata import TableMetadata
    from icecomb.format.update import TableUpdate

_FORMAT_VERSION: Final = "format-version"


class UpdateProperties(PendingUpdate):
    """Sets and removes properties; setting `format-version` upgrades the table.

    Args:
        commit: See `PendingUpdate`.
    """

    def __init__(self, commit: Commit | None = None) -> None:
        super().__init__(commit)
        self._set: dict[str, str] = {}
        self._removed: dict[str, None] = {}

    def set(self, key: str, value: str) -> Self:
        """Set a property.

        Raises:
            ValidationError: It is removed in the same update, is reserved, or cannot have that
                value.
        """
        if key in self._removed:
            raise ValidationError(f"Cannot set and remove property {key!r} at once")
        if key != _FORMAT_VERSION:
            check_properties({key: value})
        elif not str(value).isdecimal():
            raise ValidationError(f"Property {key!r} is {value!r}, not a number")
        self._set[key] = value
        return self

    def remove(self, key: str) -> Self:
        """Remove a property; one that is not there is passed over.

        Raises:
            ValidationError: It is set in the same update, or reserved.
        """
        if key in self._set:
            raise ValidationError(f"Cannot set and remove property {key!r} at once")
        check_not_reserved((key,))
        self._removed[key] = None
        return self

    def apply(self, base: TableMetadata) -> Changes:
        """See `PendingUpdate.apply`."""
        kept = {key: value for key, value in self._set.items() if key != _FORMAT_VERSION}
        updates: list[TableUpdate] = []
        if _FORMAT_VERSION in self._set:
            updates.append(UpgradeFormatVersionUpdate(int(self._set[_FORMAT_VERSION])))
        if self._removed:
            updates.append(RemovePropertiesUpdate(tuple(self._removed)))
        if kept:
            updates.append(SetPropertiesUpdate(kept))
        return Changes((AssertTableUUID(base.table_uuid),), tuple(updates))


class UpdateLocation(PendingUpdate):
    """Moves the base location for new files; existing ones stay where they are.

    Args:
        location: The new folder.
        commit: See `PendingUpdate`.

    Raises:
        ValidationError: The location is empty.
    """

    def __init__(self, location: str, commit: Commit | None = None) -> None:
        super().__init__(commit)
        if not location:
            raise ValidationError("A table needs a location")
        self._location = location

    def apply(self, base: TableMetadata) -> Changes:
        """See `PendingUpdate.apply`."""
        return Changes((AssertTableUUID(base.table_uuid),), (SetLocationUpdate(self._location),))
