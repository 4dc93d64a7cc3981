"""References to the schema files of a table."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from icecomb.catalog.paimon.schema_files import SchemaFiles
from icecomb.catalog.paimon.snapshot import Snapshots


@dataclass(frozen=True, slots=True)
class SchemaUse:
    """The references to a schema.

    Attributes:
        users: What refers to it, such as `snapshot 3`; empty if nothing does.
    """

    schema_id: int
    users: tuple[str, ...]


def schema_use(files: SchemaFiles, snapshots: Snapshots) -> list[SchemaUse]:
    """Return the references to each schema: as latest, by snapshots, tags, manifests, files."""
    users: dict[int, dict[str, None]] = defaultdict(dict)
    numbers = files.ids()
    users[numbers[-1]]["the latest"] = None
    seen: set[str] = set()
    for snapshot in snapshots.retained():
        name = snapshot.location.rsplit("/", 1)[-1]
        users[snapshot.schema_id][name] = None
        for manifest, schema_id in snapshots.manifests(snapshot):
            if manifest in seen:
                continue
            seen.add(manifest)
            users[schema_id][f"a manifest of {name}"] = None
            for _, entry in snapshots.entries(manifest):
                users[entry.schema_id][f"data files of {name}"] = None
    return [SchemaUse(number, tuple(users[number])) for number in numbers]
