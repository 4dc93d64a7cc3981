"""The rows of partitions wherever they are: in files of another spec they lie beside others."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.expressions.expression import (
    BooleanExpression,
    EqualTo,
    IsNaN,
    IsNull,
    conjunction,
    disjunction,
)
from icecomb.format.expressions.term import Reference, UnboundTransform
from icecomb.format.manifests.manifest import DataFile, ManifestContent, ManifestFile
from icecomb.format.spec.partition import PartitionSpec, partition_key
from icecomb.format.spec.transform import IdentityTransform, VoidTransform

if TYPE_CHECKING:
    from icecomb.format.expressions.term import Term
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.partition import PartitionField
    from icecomb.format.spec.schema import Schema

OTHER_SPEC_HINT: Final = (
    "rewrite_data_files with the option rewrite-all=true writes the files under the current "
    "partitioning; then repeat the change"
)


def partition_rows(
    metadata: TableMetadata, schema: Schema, files: Iterable[DataFile]
) -> BooleanExpression:
    """Return the filter that matches the rows of the partitions of data files of any spec."""
    found = {(file.spec_id, partition_key(file.partition)): file for file in files}
    return disjunction(
        _rows_of(metadata.spec_by_id(file.spec_id), schema, file.partition)
        for file in found.values()
    )


def has_other_specs(manifests: Iterable[ManifestFile], spec_ids: Iterable[int]) -> bool:
    """Return whether there are data files of other specs than some."""
    known = frozenset(spec_ids)
    return any(
        manifest.content is ManifestContent.DATA
        and manifest.partition_spec_id not in known
        and manifest.has_live_files()
        for manifest in manifests
    )


def _rows_of(spec: PartitionSpec, schema: Schema, values: tuple[Any, ...]) -> BooleanExpression:
    return conjunction(
        _compared(_term(field, schema), value)
        for field, value in zip(spec.fields, values, strict=True)
        if not isinstance(field.transform, VoidTransform)
    )


def _term(field: PartitionField, schema: Schema) -> Term:
    name = schema.find_column_name(field.source_id)
    assert name is not None  # noqa: S101 - a column that files are written by
    column = Reference(name)
    if isinstance(field.transform, IdentityTransform):
        return column
    return UnboundTransform(field.transform, column)


def _compared(term: Term, value: Any) -> BooleanExpression:
    if value is None:
        return IsNull(term)
    if isinstance(value, float) and math.isnan(value):
        return IsNaN(term)
    return EqualTo(term, value)
