"""Rewriting of manifests: fewer ones, sorted by partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from icecomb.format.argument import checked_int, checked_members
from icecomb.format.errors import ValidationError
from icecomb.format.operation.rewrite_manifests import RewriteManifests
from icecomb.format.spec.snapshot import MAIN_BRANCH

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from icecomb.catalog.table.table import Table


@dataclass(frozen=True, slots=True)
class RewrittenManifests:
    """Numbers of replaced and new manifests.

    Attributes:
        rewritten_manifests_count: Replaced manifests.
        added_manifests_count: New manifests.
    """

    rewritten_manifests_count: int
    added_manifests_count: int


def rewrite_manifests(
    table: Table,
    *,
    spec_id: int | None,
    sort_by: Iterable[str],
    branch: str | None,
    snapshot_properties: Mapping[str, str] | None,
) -> RewrittenManifests:
    """Run `Maintenance.rewrite_manifests`."""
    default = table.metadata.default_spec_id
    wanted = default if spec_id is None else checked_int("spec_id", spec_id)
    if wanted not in table.specs():
        name = ".".join(table.name())
        raise ValidationError(
            f"Table {name} has no partition spec {wanted}",
            hint=f"It has: {', '.join(map(str, sorted(table.specs())))}.",
        )
    if branch not in {None, MAIN_BRANCH} and branch not in table.refs():
        name = ".".join(table.name())
        raise ValidationError(
            f"Table {name} has no branch {branch!r} whose manifests could be rewritten",
            hint="table.refs() lists the existing ones.",
        )
    rewrite = RewriteManifests(table.io, snapshot_properties, branch or MAIN_BRANCH)
    rewrite.rewrite_if(lambda manifest: manifest.partition_spec_id == wanted)
    rewrite.sort_by(checked_members("sort_by", sort_by, str))
    table.commit(rewrite)
    return RewrittenManifests(rewrite.replaced_manifest_count(), rewrite.created_manifest_count())
