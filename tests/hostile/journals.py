"""Parsers of what a migration keeps beside a table: its journal, and all pages of that."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pyarrow.parquet as pq

from icecomb.catalog.hive.thrift.entity import (
    FieldSchema,
    HivePartition,
    HiveTable,
    StorageDescriptor,
)
from icecomb.catalog.hive.thrift.partitions import PartitionGrant
from icecomb.catalog.migrate.choices import Choices
from icecomb.catalog.migrate.journal.journal import (
    Journal,
    Step,
    find_journals,
    keep_files,
    kept_files,
    start_journal,
)
from icecomb.format.errors import IcecombError
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.file_system import FileStatus
from tests.hostile.mutation import DEEP, JSON, changed_bytes
from tests.hostile.parser import Parser, Sound

STORAGE = StorageDescriptor(columns=(FieldSchema("id", "int"),), location="/x")
KEYED = HiveTable("db", "t", storage=STORAGE, partition_keys=(FieldSchema("p", "string"),))


def tried(*uses: Callable[[], object]) -> object:
    """Do all of it; a refusal is raised after the others were tried."""
    refused, found = None, []
    for use in uses:
        try:
            found.append(use())
        except IcecombError as error:  # noqa: PERF203 - each may be refused
            refused = error
    if refused is not None:
        raise refused
    return found


def begun(made: Sound, name: str) -> Journal:
    """A journal of its own, for one parser."""
    folder = Path(made.metadata).parents[1].with_name(f"of-{name}")
    folder.mkdir(exist_ok=True)
    partition = HivePartition("db", "t", values=("a",), storage=STORAGE)
    return start_journal(FileIO(), str(folder), KEYED, [partition], Choices())


def written(journal: Journal, name: str) -> Path:
    return Path(journal.location) / name


def opened(journal: Journal) -> Journal:
    """The journal as another process finds it: which remembers nothing of the files."""
    (found,) = find_journals(FileIO(), journal.home)
    return found


def journal(made: Sound) -> Parser:
    began = begun(made, "journal")
    path = written(began, "journal.json")

    def read(data: bytes) -> object:
        path.write_bytes(data)
        found = find_journals(FileIO(), began.home)
        return [(one.reverted, one.finalized, one.table, list(one.partitions())) for one in found]

    return Parser([path.read_bytes()], read, JSON, lambda: DEEP)


def journal_steps(made: Sound) -> Parser:
    """Each of its steps, with what asks for their facts."""
    began = begun(made, "steps")
    unique = "fa6506c3-7681-40c8-86dc-e36561f83385"
    facts = {"folder": f"{began.home}/metadata", "existing": [], "unique": unique}
    facts |= {"uuid": unique, "metadata-location": f"{began.home}/metadata/1.json"}
    facts |= {"snapshot-id": 7, "partitions": 1, "rows": 3, "pointer": "x"}
    facts |= {"added": [f"{began.home}/a"], "changed": [], "stated": [[f"{began.home}/a", 1, 2, 3]]}
    seeds = []
    for files in (2, [f"{began.home}/a"]):
        began.record(Step.VERIFIED, **facts, files=files)
        path = max(Path(began.location).glob("step-verified*.json"), key=lambda p: len(p.name))
        seeds.append(path.read_bytes())

    def read(data: bytes) -> object:
        for step in Step:
            written(began, f"step-{step.value}.json").write_bytes(data)
        # a journal that was found remembers the digests of what it read
        return tried(
            *(lambda one=step: opened(began).step(one) for step in Step),
            lambda: opened(began).steps(),
            lambda: opened(began).added(),
            lambda: opened(began).added_files(partitions=True),
            lambda: opened(began).metadata_files(later=True),
            lambda: opened(began).is_at_home,
        )

    # no facts are those of all steps
    return Parser(seeds, read, JSON, lambda: DEEP, refuses=True)


def journal_pages(made: Sound) -> Parser:
    """Partitions as the metastore had them, and the grants on them."""
    began = begun(made, "pages")
    grant = PartitionGrant(("a",), "", "u", 1, "SELECT", "g", 1, with_option=False)
    began.note_grants([grant])
    paths = [written(began, name) for name in ("partitions-00000.json", "grants.json")]
    seeds = [path.read_bytes() for path in paths]

    def read(data: bytes) -> object:
        path = paths[b"grants" in data]
        path.write_bytes(data)
        found = opened(began)
        return tried(found.grants if b"grants" in data else lambda: list(found.partitions()))

    return Parser(seeds, read, JSON, lambda: DEEP)


def taken_pages(made: Sound) -> Parser:
    """The values of partitions whose entries were dropped."""
    began = begun(made, "taken")
    began.note_taken([HivePartition("db", "t", values=("a", "\u00e9"), storage=STORAGE)])
    path = written(began, "taken-00000.json")

    def read(data: bytes) -> object:
        path.write_bytes(data)
        return tried(lambda: list(opened(began).taken()), lambda: opened(began).taken_told())

    return Parser([path.read_bytes()], read, JSON, lambda: DEEP)


def journal_digests(made: Sound) -> Parser:
    """The list of digests, as an entry confirms it that has the digest of whatever is there."""
    began = begun(made, "digests")
    began.seal()
    path = written(began, "digests.json")

    def read(data: bytes) -> object:
        path.write_bytes(data)
        found = opened(began).confirmed(hashlib.sha256(data).hexdigest())
        return found and list(found.partitions())

    return Parser([path.read_bytes()], read, JSON, lambda: DEEP)


def kept_statuses(made: Sound) -> Parser:
    """The files that were planned, in Parquet."""
    began = begun(made, "files")
    keep_files(began, [[FileStatus(f"/x/{n}", n, n, n) for n in range(5)]])
    path = written(began, "files-00000.parquet")
    seed = path.read_bytes()
    out = BytesIO()
    pq.write_table(pq.read_table(BytesIO(seed)), out, compression="none")

    def read(data: bytes) -> object:
        path.write_bytes(data)
        return list(kept_files(opened(began)))

    return Parser([seed, out.getvalue()], read, (changed_bytes,), lambda: map(str.encode, "ab"))
