"""Options of one write, with Iceberg's names; tables have no property for them."""

from __future__ import annotations

from typing import Final

from icecomb.format.property.property import flag, optional_number

OUTPUT_SPEC: Final = optional_number("output-spec-id", "Partition spec of new files.")
USE_TABLE_LAYOUT: Final = flag(
    "use-table-distribution-and-ordering",
    "Whether rows are distributed and sorted as the table's properties and order say.",
    default=True,
)
