"""Hints for attributes of other libraries' tables: the names they have in icecomb."""

from __future__ import annotations

from typing import Final

_SCAN: Final = "table.scan().{}()"
_MANAGE: Final = "with table.manage_snapshots() as manage: manage.{}(...)"
_INSTEAD: Final = {
    **{name: _SCAN.format(name) for name in ("to_arrow", "to_pandas", "to_duckdb", "plan_files")},
    **{name: _SCAN.format(name) for name in ("to_arrow_batch_reader", "to_polars", "count")},
    **{name: _MANAGE.format(name) for name in ("create_tag", "create_branch")},
    "append_files": "table.add_files([...])",
    "drop": "catalog.drop_table(table.identifier)",
    "format_version": "table.metadata.format_version",
    "remove_properties": "with table.update_properties() as update: update.remove(key)",
    "rename": "catalog.rename_table(table.identifier, new_name)",
    "rollback": _MANAGE.format("rollback_to_snapshot"),
    "set_properties": "with table.update_properties() as update: update.set(key, value)",
    "update": 'table.merge(rows, on="t.id = s.id").when_matched_update({...}).execute()',
    "update_location": "with table.transaction() as change: change.update_location(...)",
    "upgrade_table_version": 'with table.update_properties() as u: u.set("format-version", "2")',
    "uuid": "table.metadata.table_uuid",
    "vacuum": "with table.expire_snapshots() as expire: expire.older_than(...)",
}


def unknown_attribute(name: str) -> AttributeError:
    """Return the error for an attribute that a table does not have."""
    instead = _INSTEAD.get(name)
    hint = f"; write {instead}" if instead else ""
    return AttributeError(f"a table has no attribute {name!r}{hint}", name=name)
