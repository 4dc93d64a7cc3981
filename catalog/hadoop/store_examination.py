"""Examination of the object store under a warehouse: identity, rights, clock, conditions."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from icecomb.catalog.report.finding import Finding, Severity
from icecomb.format.errors import FileIOError, IcecombError
from icecomb.format.storage.object_store.file_system import (
    ObjectFileSystem,
    probe_object,
    replaces_nothing,
)
from icecomb.format.storage.storage_property import OBJECT_STORE_ATTEMPTS

if TYPE_CHECKING:
    from icecomb.format.storage.file_io import FileIO
    from icecomb.format.storage.object_store.client import StoreFacts
    from icecomb.format.storage.object_store.file_system import ObjectPlace

_CALLS: Final = 3
_SLOW_S: Final = 0.5
_REFUSED_S: Final = 15 * 60
"""S3 refuses requests of clocks that differ by more (seconds)."""
_SKEWED_S: Final = 60


def examine_store(io: FileIO, warehouse: str, *, in_folders: bool) -> Iterator[Finding]:
    """Examine a warehouse's bucket and folder; a test object is created and deleted.

    Args:
        in_folders: Whether tables there are committed by creating files.
    """
    try:
        system = io.served_by(warehouse)
        if not isinstance(system, ObjectFileSystem):
            return
        place = system.place(warehouse.rstrip("/"))
        facts = place.client.facts(warehouse)
    except IcecombError as error:
        yield Finding(Severity.PROBLEM, "object store", error.message, error.hint)
        return
    yield from _said(facts, warehouse)
    try:
        yield _latency(place, warehouse)
    except IcecombError as error:
        yield Finding(Severity.PROBLEM, "read", error.message, error.hint)
        return
    attempts = OBJECT_STORE_ATTEMPTS.of(io.properties)
    yield from _written(place, warehouse, attempts, in_folders=in_folders)


def _said(facts: StoreFacts, warehouse: str) -> Iterator[Finding]:
    region = f", region {facts.region}" if facts.region else ""
    yield Finding(Severity.OK, "object store", f"{warehouse} is at {facts.where}{region}")
    yield Finding(Severity.OK, "identity", f"{facts.who}, from {facts.source}")
    for remark in facts.remarks:
        said, _, remedy = remark.rpartition(": ")
        yield Finding(Severity.WARNING, "object store", said, remedy)
    ahead = facts.clock_ahead_s
    if ahead is None:
        return
    direction = "ahead of" if ahead > 0 else "behind"
    said = f"this machine's clock is {abs(ahead):.0f} s {direction} the store's"
    remedy = "set it by NTP: requests of clocks that differ by 15 minutes are refused"
    if abs(ahead) >= _REFUSED_S:
        yield Finding(Severity.PROBLEM, "clock", said, remedy)
    elif abs(ahead) >= _SKEWED_S:
        yield Finding(Severity.WARNING, "clock", said, remedy)
    else:
        yield Finding(Severity.OK, "clock", said)


def _latency(place: ObjectPlace, warehouse: str) -> Finding:
    prefix = f"{place.key}/" if place.key else ""
    taken = []
    for _ in range(_CALLS):
        started = time.perf_counter()
        for _page in islice(place.client.pages(prefix, warehouse, below=False), 1):
            break
        taken.append(time.perf_counter() - started)
    seconds = statistics.median(taken)
    said = f"{warehouse} can be listed; that takes {seconds * 1000:.1f} ms"
    if seconds > _SLOW_S:
        return Finding(
            Severity.WARNING, "read", said, "work nearer to the store, in the bucket's region"
        )
    return Finding(Severity.OK, "read", said)


def _written(
    place: ObjectPlace, warehouse: str, attempts: int, *, in_folders: bool
) -> Iterator[Finding]:
    client = place.client
    try:
        with probe_object(client, place.key, warehouse.rstrip("/"), attempts) as (key, location):
            yield Finding(Severity.OK, "write", f"objects can be written in {warehouse}")
            yield _conditional(
                replaces_nothing(client, key, location, attempts), in_folders=in_folders
            )
            client.read(key, location)
            refused = client.delete([key], location)
    except FileIOError as error:
        subject = "delete" if error.message.startswith("Cannot delete") else "write"
        yield Finding(Severity.PROBLEM, subject, error.message, error.hint)
        return
    if refused:
        reason = next(iter(refused.values()))
        yield Finding(
            Severity.PROBLEM,
            "delete",
            f"Cannot delete {location}: {reason}",
            "allow it to this key or role: otherwise expired and failed files stay forever",
        )
    else:
        yield Finding(Severity.OK, "delete", f"objects can be deleted in {warehouse}")


def _conditional(honoured: bool, *, in_folders: bool) -> Finding:  # noqa: FBT001
    if honoured:
        return Finding(
            Severity.OK, "conditional write", "the store does not replace objects: commits are safe"
        )
    said = "the store replaces objects despite a conditional write (If-None-Match: *)"
    if in_folders:
        return Finding(
            Severity.PROBLEM,
            "conditional write",
            f"{said}: of two commits at once one would be lost",
            "keep these tables in a metastore, or update the store's software",
        )
    return Finding(
        Severity.WARNING,
        "conditional write",
        f"{said}: names of files are unique, so commits of a metastore's tables are safe",
        "do not use catalogs with type=hadoop there",
    )
