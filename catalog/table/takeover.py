"""Plans of taking a table over: a frozen value with findings, or the error of its blockers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from icecomb.catalog.report.finding import Finding, Severity
from icecomb.catalog.table.definition import TableDefinition
from icecomb.format.errors import IcecombError
from icecomb.format.property.table_property import GC_ENABLED, NAME_MAPPING
from icecomb.format.shell_command import shell_command
from icecomb.format.spec.name_mapping import NameMapping
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema


@dataclass(frozen=True, slots=True)
class TakeoverPlan:
    """A plan of an Iceberg table on another table's data files; planning changes nothing.

    Attributes:
        table: The other table's name in messages.
        location: The table's folder.
        schema: The Iceberg schema.
        spec: The Iceberg partition spec, identity on the old partition columns.
        findings: All findings, blockers first.
    """

    table: str
    location: str
    schema: Schema
    spec: PartitionSpec
    findings: tuple[Finding, ...]

    def __post_init__(self) -> None:
        order = list(Severity)
        found = sorted(self.findings, key=lambda finding: order.index(finding.severity))
        object.__setattr__(self, "findings", tuple(found))

    @property
    def blockers(self) -> tuple[Finding, ...]:
        """The findings that stop it."""
        return tuple(f for f in self.findings if f.severity is Severity.BLOCKER)

    def definition(
        self, properties: Mapping[str, str], mapping: NameMapping, last_column_id: int
    ) -> TableDefinition:
        """Return the Iceberg table to create; maintenance deletes none of its files.

        Args:
            properties: The other table's properties.
            mapping: The mapping of names in its files.
            last_column_id: The highest field id in the files, dropped fields included.
        """
        own = {NAME_MAPPING.key: mapping.to_json(), GC_ENABLED.key: "false"}
        return TableDefinition(
            self.schema,
            partition_spec=self.spec,
            properties={**properties, **own},
            last_column_id=last_column_id,
        )


class BlockedError(IcecombError):
    """A refusal of a plan with blockers; nothing was changed. ``plan`` has all of them."""

    _REFUSED: ClassVar[str]
    _LISTING: ClassVar[tuple[str, ...]]

    def __init__(self, plan: TakeoverPlan) -> None:
        first, *others = plan.blockers
        more = f" (and {len(others)} more)" if others else ""
        super().__init__(
            f"{plan.table} cannot be {self._REFUSED}: {first.message}{more}",
            hint=f"{(first.remedy or '').rstrip('.')}; "
            f"`{shell_command(*self._LISTING, plan.table)}` lists everything.",
            table=plan.table,
            blockers=[finding.message for finding in plan.blockers],
        )
        self.plan = plan
