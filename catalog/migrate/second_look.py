"""Whether a Hive table still is as it was planned: asked just before what was planned is done.

A plan takes its time, and Hive's and Spark's writers go on meanwhile: a table of the files of two
moments would have rows that were never together, and files that are gone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.migrate.context import Workplace
from icecomb.catalog.migrate.migration_plan import MigrationPlan
from icecomb.catalog.migrate.partition_pages import PartitionPages
from icecomb.catalog.migrate.source_files import PlaceFiles, list_places
from icecomb.format.errors import MigrationError

ROUNDS: Final = 3
"""How often a table is planned whose writers do not stop."""


def is_unchanged(
    place: Workplace,
    table: HiveTable,
    plan: MigrationPlan,
    partitions: PartitionPages,
    threads: int,
) -> bool:
    """Look again whether table, partitions and files are as they were.

    Args:
        place: Where.
        table: The Hive table as it was.
        plan: What was seen in its folders.
        partitions: What the metastore said of them.
        threads: How many folders are read at once.
    """
    if place.entry.load() != table or not partitions.is_current():
        return False
    places = [found.place for found in plan.listed]
    listed = list_places(place.io, places, place.progress, threads)
    own = f"{plan.location.rstrip('/')}/metadata/"
    return [_without(own, found) for found in listed] == [
        _without(own, found) for found in plan.listed
    ]


def keeps_changing(place: Workplace) -> MigrationError:
    """The error after the last round."""
    name = f"{place.database}.{place.name}"
    return MigrationError(
        f"{name} changed during each of {ROUNDS} attempts",
        hint="stop its writers, then try again",
        table=name,
    )


def _without(folder: str, found: PlaceFiles) -> PlaceFiles:
    nested = (status for status in found.nested if not status.location.startswith(folder))
    return replace(found, nested=tuple(nested))
