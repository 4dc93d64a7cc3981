"""Commands that fix findings, as words.

A command is offered only if `Table.maintenance` has the action, and the table allows it; so none
is printed that does not exist, or would be refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from icecomb.format.errors import IcecombError
from icecomb.format.property.table_property import GC_ENABLED

if TYPE_CHECKING:
    from icecomb.catalog.table.table import Table
    from icecomb.format.spec.metadata import TableMetadata

Words = tuple[str, ...]


def name_of(table: Table) -> str:
    """Return a table's name for commands; its folder if the name would be misread."""
    pointer = table._pointer.name  # noqa: SLF001 - a table opened by its folder is called by it
    if "/" in pointer:
        return pointer
    parts = table.name()
    if any("." in part or "/" in part or not part for part in parts):
        return table.location()
    return ".".join(parts)


class Remedies:
    """The commands for one table; actions that it does not allow are not offered."""

    def __init__(self, table: Table) -> None:
        self._actions = table.maintenance
        self.name = name_of(table)
        pointer = table._pointer  # noqa: SLF001 - no other knows
        self._is_writable = _passes(pointer.check_writable, table)
        may_delete = GC_ENABLED.of(table.properties) and _passes(table._check_deletable, table)  # noqa: SLF001 - no other knows
        self._may_delete = may_delete

    def expire_snapshots(self, *options: str) -> Words | None:
        """Return a dry run of an expiration."""
        return self._action("expire_snapshots", options) if self._may_delete else None

    def remove_orphan_files(self) -> Words | None:
        """Return a dry run of a clean-up."""
        return self._action("remove_orphan_files") if self._may_delete else None

    def rewrite_manifests(self, spec_id: int, default_spec_id: int) -> Words | None:
        """Return a rewrite of the manifests of a spec."""
        options = () if spec_id == default_spec_id else ("--spec-id", str(spec_id))
        return self._action("rewrite_manifests", options)

    def rewrite_data_files(
        self, options: Mapping[str, str] | None = None, *, strategy: str | None = None
    ) -> Words | None:
        """Return a rewrite of data files, with their deletes applied."""
        words = () if strategy is None else ("--strategy", strategy)
        for key, value in (options or {}).items():
            words = (*words, "--option", f"{key}={value}")
        return self._action("rewrite_data_files", words)

    def convert_equality_deletes(self) -> Words | None:
        """Return a conversion of equality to position deletes; else a rewrite that applies them."""
        return self._action("convert_equality_deletes") or self.apply_deletes()

    def rewrite_position_delete_files(self) -> Words | None:
        """Return a rewrite of files of position deletes; else a rewrite that applies them."""
        return self._action("rewrite_position_delete_files") or self.apply_deletes()

    def apply_deletes(self) -> Words | None:
        """Return a rewrite of files that have deletes, without the deleted rows."""
        return self.rewrite_data_files(
            {"delete-file-threshold": "1", "remove-dangling-deletes": "true"}
        )

    def _action(self, action: str, options: Sequence[str] = ()) -> Words | None:
        if not self._is_writable or not hasattr(self._actions, action):
            return None
        name = ("--", self.name) if self.name.startswith("-") else (self.name,)
        return ("maintain", action.replace("_", "-"), *options, *name)


def break_lock(lock_id: int) -> Words:
    """Return the command that releases a lock whose holder is dead."""
    return ("locks", "break", str(lock_id), "--yes")


def _passes(check: Callable[[TableMetadata], None], table: Table) -> bool:
    try:
        check(table.metadata)
    except IcecombError:
        return False
    return True
