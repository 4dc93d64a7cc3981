"""Choice of the manifests that a filter on a metadata table needs, before any of them is read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from icecomb.format.errors import ValidationError
from icecomb.format.expressions.bound import BoundPredicate, BoundTransform
from icecomb.format.expressions.expression import (
    AlwaysFalse,
    AlwaysTrue,
    BooleanExpression,
    replaced,
)
from icecomb.format.expressions.metrics_evaluator import select_manifests
from icecomb.format.inspect.metadata_schema import CONTENT_ID, SPEC_ID_ID, STATUS_ID
from icecomb.format.manifests.manifest import (
    DataFileContent,
    ManifestContent,
    ManifestEntryStatus,
    ManifestFile,
)
from icecomb.format.manifests.manifest_union import each_new_manifests
from icecomb.format.rows.read.row_filter import row_mask
from icecomb.format.spec.arrow_schema import type_to_pyarrow
from icecomb.format.spec.column_history import unlike_in_table

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.format.storage.file_io import FileIO


def each_manifest(io: FileIO, snapshots: Iterator[Snapshot]) -> Iterator[list[ManifestFile]]:
    """Yield the manifests of each of several snapshots that no earlier one had."""
    for _, manifests in each_new_manifests(io, snapshots):
        yield list(manifests)


def spec_of(manifest: ManifestFile, metadata: TableMetadata) -> PartitionSpec:
    """Return the partition spec of a manifest."""
    spec = metadata.specs().get(manifest.partition_spec_id)
    if spec is None:
        raise ValidationError(
            f"{manifest.manifest_path} has partition spec {manifest.partition_spec_id}, "
            "which the table does not have",
            hint="The metadata is damaged: read an older snapshot or metadata file.",
            path=manifest.manifest_path,
        )
    return spec


def choose_manifests(
    manifests: Sequence[ManifestFile],
    row_filter: BooleanExpression,
    metadata: TableMetadata,
    partition_ids: Mapping[int, int],
    *,
    only_partitions: bool = False,
) -> list[ManifestFile]:
    """Return the manifests that can hold an entry which a bound filter without `Not` selects.

    Args:
        partition_ids: The partition field ids, by the ids of the same fields in the metadata
            table.
        only_partitions: Whether rows are partitions, for which only partition values are known.
    """
    if isinstance(row_filter, AlwaysTrue):
        return list(manifests)
    groups: dict[tuple[int, ManifestContent, frozenset[int]], list[ManifestFile]] = {}
    for manifest in manifests:
        key = (manifest.partition_spec_id, manifest.content, _statuses(manifest))
        groups.setdefault(key, []).append(manifest)
    unlike = unlike_in_table(metadata, metadata.schema())
    kept: set[int] = set()
    for (spec_id, content, statuses), members in groups.items():
        spec = spec_of(members[0], metadata)
        known = {} if only_partitions else _known(spec_id, content, statuses)
        sure = {f.field_id: f.source_id not in unlike for f in spec.fields}
        asked = _on_partition(row_filter, sure, known, partition_ids)
        if not isinstance(asked, AlwaysFalse):
            kept.update(map(id, select_manifests(members, spec, asked)))
    return [manifest for manifest in manifests if id(manifest) in kept]


def weakened(row_filter: BooleanExpression, field_ids: Collection[int]) -> BooleanExpression:
    """Return the part of a filter about these columns, which is true for every row it selects."""
    return replaced(
        row_filter, BoundPredicate, lambda p: p if p.term.field_id in field_ids else AlwaysTrue()
    )


def _statuses(manifest: ManifestFile) -> frozenset[int]:
    status = ManifestEntryStatus
    found = (
        (status.ADDED, manifest.has_added_files()),
        (status.EXISTING, manifest.has_existing_files()),
        (status.DELETED, manifest.has_deleted_files()),
    )
    return frozenset(status.value for status, there in found if there)


def _known(
    spec_id: int, content: ManifestContent, statuses: frozenset[int]
) -> dict[int, list[int]]:
    deletes = [DataFileContent.POSITION_DELETES.value, DataFileContent.EQUALITY_DELETES.value]
    is_data = content is ManifestContent.DATA
    return {
        CONTENT_ID: [DataFileContent.DATA.value] if is_data else deletes,
        SPEC_ID_ID: [spec_id],
        STATUS_ID: sorted(statuses),
    }


def _on_partition(
    row_filter: BooleanExpression,
    fields: Mapping[int, bool],
    known: Mapping[int, Sequence[int]],
    partition_ids: Mapping[int, int],
) -> BooleanExpression:
    """Reduce a filter to a condition on the partitions of one spec, given other known values.

    Args:
        fields: The spec's field ids, and whether the stored values are of the fields' types.
    """

    def answer(predicate: BoundPredicate) -> BooleanExpression:
        number = predicate.term.field_id
        partition_id = partition_ids.get(number)
        if partition_id is not None and partition_id in fields:
            term = predicate.term
            if isinstance(term, BoundTransform) or not fields[partition_id]:
                return AlwaysTrue()
            field = replace(term.field, field_id=partition_id)
            return replace(predicate, term=replace(term, field=field))  # type: ignore[type-var]
        kind = type_to_pyarrow(predicate.term.reference.field_type)
        if partition_id is not None:
            values = pa.nulls(1, kind)
        elif number in known:
            values = pa.array(known[number], kind)
        else:
            return AlwaysTrue()
        holds = row_mask(predicate, {number: values}, len(values)).true_count
        return AlwaysTrue() if holds else AlwaysFalse()

    return replaced(row_filter, BoundPredicate, answer)
