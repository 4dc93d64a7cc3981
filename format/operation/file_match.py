"""Matching of a row filter against the files of manifests, in part or as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.array_build import FALSE
from icecomb.format.arrow.number_view import truths_of
from icecomb.format.expressions.column_doubts import ColumnDoubts, believed_spec
from icecomb.format.expressions.expression import AlwaysFalse, AlwaysTrue, BooleanExpression
from icecomb.format.expressions.manifest_metrics import METRICS, ManifestMetrics, partition_columns
from icecomb.format.expressions.metrics_evaluator import might_match, must_match, select_manifests
from icecomb.format.expressions.projection import ResidualEvaluator, project_inclusive
from icecomb.format.manifests.columns import ManifestColumns
from icecomb.format.manifests.manifest import ManifestContent
from icecomb.format.manifests.reader import read_each_columns
from icecomb.format.rows.values.metadata_columns import LINEAGE_IDS, bind_rows

if TYPE_CHECKING:
    from icecomb.format.manifests.manifest import ManifestFile
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.storage.file_io import FileIO

Mask = Any
"""A numpy array of booleans, one per row of a manifest."""


class FileMatcher:
    """A row filter, by column names, that is matched against the files of one table."""

    def __init__(
        self,
        io: FileIO,
        base: TableMetadata,
        expression: BooleanExpression,
        *,
        case_sensitive: bool = True,
    ) -> None:
        self._io = io
        self._base = base
        self._filter = bind_rows(base, base.schema(), expression, case_sensitive=case_sensitive)
        self._doubts = ColumnDoubts(base, base.schema())
        self._residuals: dict[tuple[int, frozenset[int]], ResidualEvaluator] = {}

    @property
    def statistics(self) -> tuple[str, ...]:
        """The manifest statistics that matching needs."""
        return () if isinstance(self._filter, (AlwaysTrue, AlwaysFalse)) else METRICS

    def read(
        self, manifests: Iterable[ManifestFile], also: Iterable[str] = ()
    ) -> Iterator[ManifestColumns]:
        """Read manifests in order, with `statistics` and the statistics named in `also`."""
        wanted = (*self.statistics, *also)
        return read_each_columns(self._io, manifests, self._base.spec_by_id, wanted)

    def might_contain(self, manifest: ManifestFile) -> bool:
        """Return whether a file of this manifest may match, judged by its partition summaries."""
        if isinstance(self._filter, AlwaysFalse):
            return False
        spec = self._base.spec_by_id(manifest.partition_spec_id)
        projected = project_inclusive(self._filter, believed_spec(spec, self._doubts.ids))
        return bool(select_manifests([manifest], spec, projected))

    def match(self, columns: ManifestColumns) -> tuple[Mask, Mask]:
        """Return masks of the files whose rows may match, and of those whose rows all match.

        For delete files, the rows that they delete count.
        """
        count = len(columns)
        might, must = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
        holds_deletes = columns.manifest.content is ManifestContent.DELETES
        doubted = self._doubts.of(columns)
        kind = _DeleteMetrics if holds_deletes else ManifestMetrics
        metrics = kind(columns, doubted | LINEAGE_IDS)
        for residual, rows in self._by_residual(columns, doubted):
            if isinstance(residual, AlwaysTrue):
                might[rows] = must[rows] = True
            elif not isinstance(residual, AlwaysFalse):
                might[rows] = _mask(might_match(residual, metrics))[rows]
                must[rows] = _mask(must_match(residual, metrics))[rows]
        return might, must

    def _by_residual(
        self, columns: ManifestColumns, doubted: frozenset[int]
    ) -> list[tuple[BooleanExpression, list[int]]]:
        spec = self._base.spec_by_id(columns.manifest.partition_spec_id)
        evaluator = self._residuals.get((spec.spec_id, doubted))
        if evaluator is None:
            evaluator = ResidualEvaluator(self._filter, believed_spec(spec, doubted))
            self._residuals[spec.spec_id, doubted] = evaluator
        residuals = evaluator.residuals(partition_columns(columns, spec), len(columns))
        groups: dict[int, list[int]] = {}
        for row, residual in enumerate(residuals):
            groups.setdefault(id(residual), []).append(row)
        return [(residuals[rows[0]], rows) for rows in groups.values()]


class _DeleteMetrics(ManifestMetrics):
    """Metrics of the rows that delete files delete.

    An equality delete file may hold columns that it does not compare: the rows that it deletes may
    have any values there.
    """

    def _pick(self, name: str, field_id: int) -> pa.Array:
        ids = self._columns.column("equality_ids").to_pylist()
        compared = pa.array([field_id in (found or ()) for found in ids], pa.bool_())
        found = super()._pick(name, field_id)
        return pc.if_else(compared, found, pa.scalar(None, found.type))


def _mask(array: Any) -> Mask:
    return truths_of(pc.fill_null(array, FALSE) if array.null_count else array)
