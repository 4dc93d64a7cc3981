"""The input of findings: a table, its counted files, and the commands for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from icecomb.format.inspect.file_census import CensusLimits
from icecomb.format.maintenance.rewrite_options import RewriteOptions, Strategy
from icecomb.format.property.table_property import NAME_MAPPING

if TYPE_CHECKING:
    from icecomb.catalog.health.command import Remedies
    from icecomb.catalog.health.table_health import TableFacts
    from icecomb.format.inspect.file_census import FileCensus
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.storage.file_io import FileIO


@dataclass(frozen=True, slots=True)
class Examined:
    """The known facts of a table from which findings are derived.

    Attributes:
        rewrite: The options that a rewrite of its data files would have.
        census: The counted files of its current snapshot.
        now_ms: The end of ages, in milliseconds since the epoch.
    """

    metadata: TableMetadata
    io: FileIO
    rewrite: RewriteOptions
    census: FileCensus
    facts: TableFacts
    remedies: Remedies
    now_ms: int

    @property
    def old_spec_ids(self) -> list[int]:
        """The specs of files other than the one of new files."""
        default = self.metadata.default_spec_id
        return [number for number in self.census.partitions if number != default]


def rewrite_of(metadata: TableMetadata) -> RewriteOptions:
    """Return the options that a rewrite of a table's data files would have."""
    return RewriteOptions.read({}, Strategy.BIN_PACK, metadata.properties)


def limits_of(metadata: TableMetadata, rewrite: RewriteOptions) -> CensusLimits:
    """Return the limits of small files of a table, and the further counts to take."""
    order = metadata.default_sort_order_id
    return CensusLimits(
        small=rewrite.min_file_bytes,
        sort_order_id=order if metadata.sort_order().fields else None,
        by_snapshot=bool(NAME_MAPPING.of(metadata.properties)),
    )
