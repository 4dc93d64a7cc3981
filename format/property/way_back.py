"""Tables that a migration made of a Hive table's files, and that can still become it again.

Until `icecomb migrate finalize` they keep ``gc.enabled=false``: the Hive table's files stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from icecomb.format.errors import ValidationError
from icecomb.format.property.table_property import GC_ENABLED
from icecomb.format.shell_command import shell_command

MIGRATED: Final = "migrated"
"""The property of tables that a migration made, Iceberg Java's, too (MigrateTableSparkAction)."""


def has_way_back(properties: Mapping[str, str]) -> bool:
    """Return whether properties say that a table can still become a Hive table again."""
    return properties.get(MIGRATED) == "true" and not _may_delete(properties)


def deletion_remedy(properties: Mapping[str, str], name: str = "TABLE") -> str:
    """Return what makes the deletion of files possible where ``gc.enabled`` is false."""
    if has_way_back(properties):
        return (
            "They are still the Hive table's, to which a revert goes back: "
            f"`{shell_command('migrate', 'finalize', name)}` gives that up, and allows it."
        )
    return f"Set {GC_ENABLED.key} to true when no other table uses its files."


def check_way_back_kept(name: str, before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Refuse to allow the deletion of files that the way back to a Hive table needs."""
    if has_way_back(before) and _may_delete(after):
        raise ValidationError(
            f"{GC_ENABLED.key} of {name} cannot be true yet: it was migrated, and maintenance "
            "would delete files that `icecomb migrate revert` needs",
            hint=f"`{shell_command('migrate', 'finalize', name)}` gives up the way back, and sets "
            "it.",
            table=name,
        )


def _may_delete(properties: Mapping[str, str]) -> bool:
    # A value that cannot be read is refused where files are to be deleted.
    return properties.get(GC_ENABLED.key, "true").strip().lower() != "false"
