"""File-system tables in a bucket whose answers get lost: the truth is told, and rows are there once."""

from __future__ import annotations

import uuid
from collections import Counter
from functools import partial

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import (
    CommitStateUnknownError,
    FileStateUnknownError,
    IcecombError,
    UnsupportedError,
)
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.object_store import creation
from tests.peers.s3_proxy import FAULTS, S3Proxy

pytestmark = pytest.mark.gate("carries out some thirty commits")

SCHEMA = pa.schema([("id", pa.int64())])
LENGTH = 12
"""Commits of a table, so that none gets long."""


def row(number):
    return pa.table({"id": pa.array([number], pa.int64())}, schema=SCHEMA)


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(creation, "FIRST_S", 0.001)


@pytest.fixture
def proxy(s3):
    proxy = S3Proxy(s3.endpoint)
    yield proxy
    proxy.close()


@pytest.fixture
def settings(s3, proxy):
    return {**proxy.settings(s3.settings), "s3.request-timeout": "10"}


class Lake:
    """A catalog behind the proxy, and one that looks past it."""

    def __init__(self, s3, settings):
        place = {"type": "hadoop", "warehouse": f"s3://{s3.bucket()}/wh"}
        self.catalog = load_catalog("faulty", **place, **settings)
        self.direct = load_catalog("direct", **place, **s3.settings)
        self.catalog.create_namespace("db")

    def new_table(self):
        self.name = f"db.t{uuid.uuid4().hex[:12]}"
        self.catalog.create_table(self.name, SCHEMA)
        self.known = []

    def rows(self):
        return sorted(self.direct.load_table(self.name).scan().to_arrow()["id"].to_pylist())


@pytest.fixture
def lake(s3, settings):
    return Lake(s3, settings)


def append(table, lake, number):
    table.append(row(number))


def delete(table, lake, number):
    table.delete(f"id = {lake.known[0]}")


def said(act):
    """What an operation says of itself."""
    try:
        act()
    except CommitStateUnknownError:
        return "unknown"
    except IcecombError:
        return "failed"
    return "done"


def _after(operation, rows, number):
    return sorted([*rows, number]) if operation is append else rows[1:]


def _faults(names, *, every):
    """What becomes of the request of each position: what only looks has no effect that could be lost.

    Without `every` the writing requests take turns, and the last one, which commits, meets each kind.
    """
    turn, found = 0, []
    for position, name in enumerate(names):
        if name == "PutObject" and (every or "PutObject" not in names[position + 1 :]):
            found.append((position, FAULTS))
        elif name == "PutObject":
            found.append((position, [FAULTS[turn % len(FAULTS)]]))
            turn += 1
        else:
            found.append((position, [FAULTS[position % len(FAULTS)]]))
    return found


ALL = pytest.mark.full("every fault at every writing request")


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("operation", "attempts", "every"),
    [
        (append, 1, False),
        *(pytest.param(*case, True, marks=ALL) for case in ((append, 1), (append, 4), (delete, 1))),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_whatever_becomes_of_a_request_of_a_commit_the_truth_is_told(
    s3, proxy, operation, attempts, every, capsys
):
    """With one attempt each fault is final; with more it is mended, wherever it can be."""
    lake = Lake(
        s3,
        {
            **proxy.settings(s3.settings),
            "s3.request-timeout": "10",
            "io.object-store.max-attempts": str(attempts),
        },
    )
    number, outcomes, problems, used = 100, Counter(), [], LENGTH

    def prepare():
        nonlocal used
        if used >= LENGTH or not lake.known:
            lake.new_table()
            lake.known, used = [1, 2], 0
            lake.catalog.load_table(lake.name).append(
                pa.table({"id": pa.array(lake.known, pa.int64())}, schema=SCHEMA)
            )
        used += 1
        return lake.catalog.load_table(lake.name)

    table = prepare()
    with proxy.fresh():
        operation(table, lake, number)
        names = [each.name for each in proxy.requests]
    lake.known = lake.rows()
    for position, faults in _faults(names, every=every):
        for fault in faults:
            number += 1
            table = prepare()
            seen = []

            def choose(request, position=position, fault=fault, seen=seen):
                seen.append(request)
                return fault if len(seen) == position + 1 else ""

            with proxy.fresh():
                proxy.choose = choose
                outcome = said(partial(operation, table, lake, number))
            before, after = lake.known, _after(operation, lake.known, number)
            found = lake.rows()
            late = lake.rows() if proxy.release() else found
            fine = {
                "done": found == after == late,
                "failed": found == before == late,
                "unknown": found in (before, after) and late in (before, after),
            }[outcome]
            if not fine:
                problems.append(
                    f"{position} {names[position]} {fault}: {outcome}, {before} {found} {late}"
                )
            outcomes[outcome] += 1
            lake.known = late
    with capsys.disabled():
        print(f"\n{operation.__name__}, {attempts} attempts: {dict(outcomes)} of {names}")
    assert problems == []
    assert outcomes["done"]
    if attempts > 1:
        assert outcomes.keys() == {"done"}
    else:
        # an append sends some requests side by side: which one meets the fault is open
        assert outcomes["unknown"] or operation is append
        assert outcomes["failed"]


def test_a_late_request_of_a_commit_that_was_given_up_leaves_the_outcome_unknown(proxy, s3):
    lake = Lake(s3, {**proxy.settings(s3.settings), "io.object-store.max-attempts": "2"})
    lake.new_table()
    table = lake.catalog.load_table(lake.name)
    with proxy.fresh():
        proxy.choose = lambda asked: (
            "late" if asked.name == "PutObject" and asked.path.endswith("v2.metadata.json") else ""
        )
        with pytest.raises(CommitStateUnknownError):
            table.append(row(1))
    assert lake.rows() == []
    # both attempts arrive, and all that the commit refers to is there still
    assert proxy.release() == 2
    assert lake.rows() == [1]
    lake.catalog.load_table(lake.name).append(row(2))
    assert lake.rows() == [1, 2]


def test_a_refusal_after_a_lost_answer_is_no_proof(proxy, s3, settings):
    io = FileIO({**settings, "io.object-store.max-attempts": "3"})
    place = f"s3://{s3.bucket()}/x"
    answers = iter(["late", "403 AccessDenied"])
    with proxy.fresh():
        proxy.choose = lambda asked: next(answers, "") if asked.name == "PutObject" else ""
        with pytest.raises(FileStateUnknownError):
            io.create(place, b"1")
    proxy.release()
    assert io.read(place) == b"1"


def test_another_writers_object_is_no_success_of_ours(proxy, s3, settings):
    io, direct = FileIO(settings), FileIO(s3.settings)
    place = f"s3://{s3.bucket()}/x"

    def choose(asked):
        if asked.name == "PutObject" and not direct.exists(place):
            direct.create(place, b"theirs")
            return "refuse"
        return ""

    with proxy.fresh():
        proxy.choose = choose
        with pytest.raises(FileExistsError):
            io.create(place, b"our's!")
    assert direct.read(place) == b"theirs"


def test_a_store_that_replaces_objects_holds_no_file_system_tables(proxy, s3, settings):
    place = {"type": "hadoop", "warehouse": f"s3://{s3.bucket()}/wh"}
    catalog = load_catalog("old", **place, **settings)
    with proxy.fresh():
        proxy.choose = lambda asked: "replace" if asked.conditional else ""
        catalog.create_namespace("db")
        with pytest.raises(UnsupportedError, match="replaces objects") as refused:
            catalog.create_table("db.t", SCHEMA)
        assert "metastore" in refused.value.hint
    load_catalog("direct", **place, **s3.settings).create_table("db.t", SCHEMA)
    with proxy.fresh():
        proxy.choose = lambda asked: "replace" if asked.conditional else ""
        table = load_catalog("old", **place, **settings).load_table("db.t")
        assert table.scan().count() == 0
        with pytest.raises(UnsupportedError, match="replaces objects"):
            table.append(row(1))
    listed = s3.client().list_objects_v2(Bucket=place["warehouse"].split("/")[2])
    assert not any("_icecomb_probe" in each["Key"] for each in listed["Contents"])
