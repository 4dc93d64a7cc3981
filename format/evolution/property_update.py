"""Changes of the properties and the location of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from icecomb.format.argument import checked_text, property_texts
from icecomb.format.errors import ValidationError
from icecomb.format.evolution.pending_update import Commit, PendingUpdate
from icecomb.format.property.table_property import (
    FOLDER_PATHS,
    check_not_reserved,
    check_properties,
)
from icecomb.format.spec.change.requirement import AssertTableUUID
from icecomb.format.spec.change.update import (
    Changes,
    RemovePropertiesUpdate,
    SetLocationUpdate,
    SetPropertiesUpdate,
    UpgradeFormatVersionUpdate,
    update_table_metadata,
)
from icecomb.format.spec.own_folders import former_folders, named_folders
from icecomb.format.storage.location import check_table_location

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Self

    from icecomb.format.spec.change.update import TableUpdate
    from icecomb.format.spec.metadata import TableMetadata

_FORMAT_VERSION: Final = "format-version"
_NAMING_FOLDERS: Final = frozenset(each.key for each in FOLDER_PATHS)


def check_version(text: str) -> None:
    """Check that a format version is a number."""
    if not (text.isascii() and text.isdigit()):
        raise ValidationError(
            f"Property {_FORMAT_VERSION!r} is {text!r}, not a number", hint="Set it to 1, 2 or 3."
        )


class UpdateProperties(PendingUpdate):
    """An update that sets and removes properties; setting `format-version` upgrades the table.

    Args:
        commit: See `PendingUpdate`.
    """

    def __init__(self, commit: Commit | None = None) -> None:
        super().__init__(commit)
        self._set: dict[str, str] = {}
        self._removed: dict[str, None] = {}

    def set(self, key: str, value: Any) -> Self:
        """Set a property; numbers and the like are converted to text, see `property_texts`.

        Raises:
            ValidationError: If it is removed in the same update, is reserved, or cannot have that
                value.
        """
        key = checked_text("name of a property", key)
        given = property_texts("property", {key: value})
        if key in self._removed:
            raise ValidationError(
                f"Cannot set and remove property {key!r} at once",
                hint="Do one of the two, or make two updates.",
            )
        if key == _FORMAT_VERSION:
            check_version(given[key])
        else:
            check_properties(given)
        self._set.update(given)
        return self

    def remove(self, key: str) -> Self:
        """Remove a property; a missing one is ignored.

        Raises:
            ValidationError: If it is set in the same update, or reserved.
        """
        key = checked_text("name of a property", key)
        if key in self._set:
            raise ValidationError(
                f"Cannot set and remove property {key!r} at once",
                hint="Do one of the two, or make two updates.",
            )
        check_not_reserved((key,))
        self._removed[key] = None
        return self

    def apply(self, base: TableMetadata) -> Changes:
        kept = {key: value for key, value in self._set.items() if key != _FORMAT_VERSION}
        updates: list[TableUpdate] = []
        if _FORMAT_VERSION in self._set:
            updates.append(UpgradeFormatVersionUpdate(int(self._set[_FORMAT_VERSION])))
        if self._removed:
            updates.append(RemovePropertiesUpdate(tuple(self._removed)))
        if kept:
            updates.append(SetPropertiesUpdate(kept))
        if not {*kept, *self._removed}.isdisjoint(_NAMING_FOLDERS):
            updates += keeping_folders(base, updates)
        return Changes((AssertTableUUID(base.table_uuid),), tuple(updates))


class UpdateLocation(PendingUpdate):
    """An update that moves the base location for new files; existing files are not moved."""

    def __init__(self, location: str, commit: Commit | None = None) -> None:
        super().__init__(commit)
        if not checked_text("location of a table", location):
            raise ValidationError(
                "A table needs a location",
                hint="Name a folder, such as hdfs://cluster/warehouse/db.db/t.",
            )
        check_table_location(location)
        self._location = location

    def apply(self, base: TableMetadata) -> Changes:
        moved = (SetLocationUpdate(self._location),)
        updates = (*moved, *keeping_folders(base, moved))
        return Changes((AssertTableUUID(base.table_uuid),), updates)


def keeping_folders(base: TableMetadata, updates: Iterable[TableUpdate]) -> list[TableUpdate]:
    """Return the update that records the folders which other updates take from the table."""
    if not (base.snapshots or base.metadata_log):
        return []  # no file was written there
    after = update_table_metadata(base, updates)
    noted = former_folders(after, named_folders(base))
    return [SetPropertiesUpdate(noted)] if noted else []
