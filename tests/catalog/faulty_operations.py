"""Operations of a catalog behind a faulty network, and what must be true after each of them.

The truth is read past the catalog: raw Thrift, and the JSON of the metadata file.
"""

from __future__ import annotations

import gzip
import json
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import pyarrow as pa
from hmsclient import HMSClient
from hmsclient.genthrift.hive_metastore import ttypes
from needed_files import needed_files, path
from thrift_proxy import ThriftProxy

from icecomb.catalog.commit.commit_status import CommitState
from icecomb.catalog.hive.catalog import HiveCatalog
from icecomb.catalog.hive.thrift.known_server import ValueCheck
from icecomb.catalog.metastore import find
from icecomb.catalog.unknown_commit import commit_status, fence
from icecomb.format.errors import CommitStateUnknownError, IcecombError
from icecomb.format.holding import Holding

QUICK: Final = {
    "commit.status-check.min-wait-ms": "5",
    "commit.status-check.num-retries": "2",
    "commit.retry.min-wait-ms": "5",
}
SETTINGS: Final = {
    "hive.metastore.client.socket.timeout": "60",
    "iceberg.hive.lock-creation-min-wait-ms": "5",
    **{f"table-default.{key}": value for key, value in QUICK.items()},
    **{f"view-default.{key}": value for key, value in QUICK.items()},
}
ALTER: Final = "alter_table_with_environment_context"


class World:
    """A namespace, our catalog behind a proxy, and what looks at it from outside.

    Args:
        metastore: The real one.
        direct: A catalog that reaches it without the proxy.
        lock_enabled: Which mode tables are in.
        version: The format version of new tables.
        settings: More properties of the catalog behind the proxy.
    """

    def __init__(
        self,
        metastore: Any,
        direct: HiveCatalog,
        *,
        lock_enabled: bool,
        cold: bool = False,
        version: str = "2",
        **settings: str,
    ) -> None:
        self.direct = direct
        self.cold = cold
        self.proxy = ThriftProxy(metastore.port)
        locks = {"iceberg.engine.hive.lock-enabled": str(lock_enabled).lower()}
        place = {"uri": self.proxy.uri, "warehouse": str(metastore.warehouse)}
        self.version = version
        versioned = {**SETTINGS, "table-default.format-version": version}
        self.catalog = HiveCatalog("faulty", {**place, **locks, **versioned, **settings})
        self.namespace = f"n{uuid.uuid4().hex[:10]}"
        direct.create_namespace(self.namespace)
        self._raw = HMSClient(host="127.0.0.1", port=metastore.port)
        self._raw.open()
        if embedded := find("127.0.0.1", metastore.port):
            self._raw.set_ugi("raw", [embedded.secret])

    def close(self) -> None:
        self.catalog.close()
        self.proxy.close()
        self._raw.close()
        for name in self.direct.client.table_names(self.namespace):
            self.direct.client.drop_table(self.namespace, name)
        self.direct.drop_namespace(self.namespace)

    def new_name(self) -> str:
        return f"{self.namespace}.t{uuid.uuid4().hex[:12]}"

    def arm(self, position: int | None, how: str = "") -> None:
        """Makes the next operation start from a known state, with a fault in it."""
        self.proxy.begin()
        with Holding() as held:
            known = self.catalog.client.servers[self.catalog.client.pin(held)]
            known.check = None if self.cold else ValueCheck.ATOMIC
            known.lock_expiry_s, known.lock_expiry_asked = 300.0, not self.cold
        self.proxy.begin()
        if position is not None:
            self.proxy.fail_at(position, how)

    def entry(self, name: str) -> ttypes.Table | None:
        """The metastore's own words about a name."""
        try:
            return self._raw.get_table(*name.split("."))
        except ttypes.NoSuchObjectException:
            return None

    def location(self, name: str) -> str | None:
        entry = self.entry(name)
        return entry.parameters["metadata_location"] if entry else None

    def metadata(self, name: str) -> dict[str, Any] | None:
        """The JSON that the metastore points at."""
        location = self.location(name)
        return None if location is None else self.parse(location)

    def parse(self, location: str) -> dict[str, Any]:
        """The JSON of a metadata file."""
        data = self.read(location)
        plain = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        parsed: dict[str, Any] = json.loads(plain)
        return parsed

    def read(self, location: str) -> bytes:
        """A file, past our own code."""
        return path(location).read_bytes()

    def missing(self, locations: set[str]) -> set[str]:
        """Which files of a table's folder are not there, looked at past our own code."""
        return {one for one in locations if not path(one).is_file()}

    def check_files(self, name: str) -> None:
        """Everything that a table or view refers to is there, and it loads."""
        entry = self.entry(name)
        if entry is None:
            return
        if entry.tableType == "VIRTUAL_VIEW":
            assert self.direct.load_view(name).metadata_location == self.location(name)
            return
        table = self.direct.load_table(name)
        assert table.metadata_location == self.location(name)
        assert self.missing(needed_files(table)) == set()

    def check_no_lock(self, name: str) -> None:
        """No lock is held once the releases in the background are done."""
        for thread in threading.enumerate():
            if thread.name == f"release of {name}":
                thread.join()
        assert self.direct.client.locks(*name.split(".")) == []


@dataclass
class Outcome:
    """What an operation said of itself: "done", "failed" (nothing happened) or "unknown"."""

    said: str
    error: IcecombError | None = None


def attempt(work: Callable[[], object]) -> Outcome:
    try:
        work()
    except CommitStateUnknownError as error:
        return Outcome("unknown", error)
    except IcecombError as error:
        return Outcome("failed", error)
    return Outcome("done")


class Operation:
    """One kind of change. A case is `prepare`, then `act` with a fault, then `judge`."""

    def __init__(self, world: World) -> None:
        self.world = world

    def prepare(self) -> None:
        """Before each case, without faults."""

    def act(self) -> None:
        """Through the faulty network."""
        raise NotImplementedError

    def happened(self) -> bool:
        """Whether it did, told from outside; everything that there is must be whole."""
        raise NotImplementedError

    @property
    def names(self) -> list[str]:
        """The tables or views that are concerned."""
        raise NotImplementedError

    def verdict(self, error: CommitStateUnknownError) -> CommitState | None:  # noqa: ARG002
        """What `icecomb commit settle` says of an unknown outcome; None if it is not for that."""
        return None

    def fence(self) -> None:
        """Makes a late commit impossible."""
        raise NotImplementedError


def _commit_state(operation: Operation, error: CommitStateUnknownError) -> CommitState:
    (name,) = operation.names
    new = str(error.context["new"])
    return commit_status(operation.world.direct, name, new, expectation_sent=True).state


class Commit(Operation):
    """A change of a table that is there; a new one now and then, so that none gets long."""

    length = 12
    properties: ClassVar[dict[str, str]] = {}

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.name = ""
        self.used = self.length
        self.mark = ""
        self.rows: list[int] = []
        self.row = 0

    @property
    def names(self) -> list[str]:
        return [self.name]

    def prepare(self) -> None:
        if self.used >= self.length or self.world.entry(self.name) is None:
            self.name, self.used, self.rows = self.world.new_name(), 0, []
            schema = pa.schema([("id", pa.int64())])
            self.world.catalog.create_table(self.name, schema, properties=self.properties)
        self.used += 1
        self.mark = f"c{uuid.uuid4().hex[:8]}"
        self.table = self.world.catalog.load_table(self.name)

    def verdict(self, error: CommitStateUnknownError) -> CommitState:
        return _commit_state(self, error)

    def fence(self) -> None:
        fence(self.world.direct, self.name)


class SetProperty(Commit):
    def act(self) -> None:
        with self.table.update_properties() as update:
            update.set(self.mark, "x")

    def happened(self) -> bool:
        metadata = self.world.metadata(self.name)
        assert metadata is not None
        return self.mark in metadata["properties"]


class Append(Commit):
    def prepare(self) -> None:
        super().prepare()
        self.row += 1

    def act(self) -> None:
        self.table.append(pa.table({"id": pa.array([self.row], pa.int64())}))

    def happened(self) -> bool:
        metadata = self.world.metadata(self.name)
        assert metadata is not None
        found = self.world.direct.load_table(self.name).scan().to_arrow()["id"].to_pylist()
        assert len(metadata.get("snapshots", [])) == len(found)
        new = sorted(set(found) - set(self.rows))
        # Exactly once, and of those before none is gone.
        assert sorted(found) == sorted([*self.rows, *new])
        assert new in ([], [self.row])
        self.rows += new
        return self.row in found


class Transact(Append):
    """Rows, properties and a column in one commit."""

    def act(self) -> None:
        with self.table.transaction() as transaction:
            transaction.set_properties({self.mark: "x"})
            transaction.append(pa.table({"id": pa.array([self.row], pa.int64())}))

    def happened(self) -> bool:
        done = super().happened()
        metadata = self.world.metadata(self.name)
        assert metadata is not None
        assert (self.mark in metadata["properties"]) == done
        return done


class DeleteRow(Commit):
    """A row less by merge-on-read: in version 3 another vector of the only data file each time."""

    def prepare(self) -> None:
        super().prepare()
        if self.used == 1:
            self.rows = list(range(self.length + 1))
            with self.table.transaction() as both:
                both.set_properties({"write.delete.mode": "merge-on-read"})
                both.append(pa.table({"id": pa.array(self.rows, pa.int64())}))
        self.row = self.rows[-1]

    def act(self) -> None:
        self.table.delete(f"id = {self.row}")

    def happened(self) -> bool:
        table = self.world.direct.load_table(self.name)
        found = table.scan().to_arrow()["id"].to_pylist()
        assert found in (self.rows, self.rows[:-1])
        (task,) = table.scan().plan_files()
        assert task.file.record_count - len(found) == sum(f.record_count for f in task.delete_files)
        assert len(task.delete_files) <= 1 or table.metadata.format_version < 3
        done = found != self.rows
        self.rows = found
        return done


class SetPropertyAndDiscard(SetProperty):
    """Each commit deletes the metadata file that falls out of the log."""

    def prepare(self) -> None:
        super().prepare()
        forgetful = {
            "write.metadata.delete-after-commit.enabled": "true",
            "write.metadata.previous-versions-max": "1",
        }
        self.table.transaction().set_properties(forgetful).commit_transaction()


class Expire(Commit):
    """The files of the first snapshot are deleted, once it is certain that it is gone."""

    length = 1

    def prepare(self) -> None:
        super().prepare()
        self.table.append(pa.table({"id": pa.array([1], pa.int64())}))
        self.first = self.table.metadata.snapshots[0].snapshot_id
        self.table.overwrite(pa.table({"id": pa.array([2], pa.int64())}))

    def act(self) -> None:
        with self.table.expire_snapshots() as expire:
            expire.by_id(self.first)

    def happened(self) -> bool:
        metadata = self.world.metadata(self.name)
        assert metadata is not None
        found = self.world.direct.load_table(self.name).scan().to_arrow()["id"].to_pylist()
        assert found == [2]
        return self.first not in [one["snapshot-id"] for one in metadata["snapshots"]]


class RewriteManifests(Commit):
    length = 1

    def prepare(self) -> None:
        super().prepare()
        for row in (1, 2):
            self.table.append(pa.table({"id": pa.array([row], pa.int64())}))

    def act(self) -> None:
        self.table.rewrite_manifests()

    def happened(self) -> bool:
        table = self.world.direct.load_table(self.name)
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2]
        return len(table.snapshots()) == 3


class Replace(Commit):
    def act(self) -> None:
        schema = pa.schema([("id", pa.int64()), (self.mark, pa.string())])
        self.world.catalog.create_or_replace_table(self.name, schema)

    def happened(self) -> bool:
        metadata = self.world.metadata(self.name)
        assert metadata is not None
        (schema,) = (
            one for one in metadata["schemas"] if one["schema-id"] == metadata["current-schema-id"]
        )
        return self.mark in [field["name"] for field in schema["fields"]]


class ReplaceWithRows(Replace):
    """The rows are the new table's only ones, and come with it."""

    def act(self) -> None:
        schema = pa.schema([("id", pa.int64()), (self.mark, pa.string())])
        with self.world.catalog.replace_table_transaction(self.name, schema) as new:
            new.append(pa.table({"id": pa.array([1], pa.int64()), self.mark: [self.mark]}))

    def happened(self) -> bool:
        done = super().happened()
        if done:
            found = self.world.direct.load_table(self.name).scan().to_arrow()
            assert found[self.mark].to_pylist() == [self.mark]
        return done


class Create(Operation):
    def prepare(self) -> None:
        self.name = self.world.new_name()

    @property
    def names(self) -> list[str]:
        return [self.name]

    def act(self) -> None:
        self.world.catalog.create_table(self.name, pa.schema([("id", pa.int64())]))

    def happened(self) -> bool:
        return self.world.entry(self.name) is not None


class CreateWithRows(Create):
    def act(self) -> None:
        schema = pa.schema([("id", pa.int64())])
        with self.world.catalog.create_table_transaction(self.name, schema) as new:
            new.append(pa.table({"id": pa.array([1], pa.int64())}))

    def happened(self) -> bool:
        if not super().happened():
            return False
        assert self.world.direct.load_table(self.name).scan().to_arrow().num_rows == 1
        return True


class Register(Create):
    def __init__(self, world: World) -> None:
        super().__init__(world)
        made = world.catalog.create_table(world.new_name(), pa.schema([("id", pa.int64())]))
        self.file = made.append(pa.table({"id": pa.array([1], pa.int64())})) or ""
        self.file = made.metadata_location

    def act(self) -> None:
        self.world.catalog.register_table(self.name, self.file)

    def happened(self) -> bool:
        assert not self.world.missing({self.file})
        if not super().happened():
            return False
        assert self.world.location(self.name) == self.file
        return True


class Rename(Register):
    """The tables share their files, so that each case makes only an entry."""

    def prepare(self) -> None:
        self.source, self.name = self.world.new_name(), self.world.new_name()
        self.world.direct.register_table(self.source, self.file)

    @property
    def names(self) -> list[str]:
        return [self.source, self.name]

    def act(self) -> None:
        self.world.catalog.rename_table(self.source, self.name)

    def happened(self) -> bool:
        there = super().happened()
        assert (self.world.location(self.source) is None) == there
        return there


class Drop(Register):
    def prepare(self) -> None:
        super().prepare()
        self.world.direct.register_table(self.name, self.file)

    def act(self) -> None:
        self.world.catalog.drop_table(self.name)

    def happened(self) -> bool:
        return not super().happened()


class Purge(Create):
    def prepare(self) -> None:
        super().prepare()
        super().act()

    def act(self) -> None:
        self.world.catalog.purge_table(self.name)

    def happened(self) -> bool:
        return not super().happened()


class CreateView(Create):
    def act(self) -> None:
        self.world.catalog.create_view(
            self.name, pa.schema([("id", pa.int64())]), {"hive": "SELECT 1 AS id"}
        )


class ReplaceView(CreateView):
    def prepare(self) -> None:
        super().prepare()
        super().act()
        self.mark = f"c{uuid.uuid4().hex[:8]}"

    def act(self) -> None:
        self.world.catalog.replace_view(
            self.name, pa.schema([(self.mark, pa.int64())]), {"hive": f"SELECT 1 AS {self.mark}"}
        )

    def verdict(self, error: CommitStateUnknownError) -> CommitState:
        return _commit_state(self, error)

    def fence(self) -> None:
        fence(self.world.direct, self.name)

    def happened(self) -> bool:
        entry = self.world.entry(self.name)
        assert entry is not None
        metadata = self.world.parse(entry.parameters["metadata_location"])
        done = metadata["schemas"][-1]["fields"][0]["name"] == self.mark
        assert (self.mark in entry.viewOriginalText) == done
        return done


class SetViewProperty(ReplaceView):
    def act(self) -> None:
        self.world.catalog.load_view(self.name).update_properties({self.mark: "x"})

    def happened(self) -> bool:
        entry = self.world.entry(self.name)
        assert entry is not None
        done = self.mark in self.world.parse(entry.parameters["metadata_location"])["properties"]
        assert (self.mark in entry.parameters) == done
        return done


class RenameView(CreateView):
    def prepare(self) -> None:
        super().prepare()
        super().act()
        self.source, self.name = self.name, self.world.new_name()

    @property
    def names(self) -> list[str]:
        return [self.source, self.name]

    def act(self) -> None:
        self.world.catalog.rename_view(self.source, self.name)

    def happened(self) -> bool:
        there = super().happened()
        assert (self.world.entry(self.source) is None) == there
        return there


class DropView(CreateView):
    def prepare(self) -> None:
        super().prepare()
        super().act()

    def act(self) -> None:
        self.world.catalog.drop_view(self.name)

    def happened(self) -> bool:
        return not super().happened()


OPERATIONS: Final[dict[str, type[Operation]]] = {
    "set-property": SetProperty,
    "append": Append,
    "transact": Transact,
    "delete-row": DeleteRow,
    "set-property-and-discard": SetPropertyAndDiscard,
    "expire": Expire,
    "rewrite-manifests": RewriteManifests,
    "replace": Replace,
    "replace-with-rows": ReplaceWithRows,
    "create": Create,
    "create-with-rows": CreateWithRows,
    "register": Register,
    "rename": Rename,
    "drop": Drop,
    "purge": Purge,
    "create-view": CreateView,
    "replace-view": ReplaceView,
    "set-view-property": SetViewProperty,
    "rename-view": RenameView,
    "drop-view": DropView,
}


def run_case(operation: Operation, position: int | None, how: str) -> tuple[str, list[str]]:
    """One case, judged.

    Args:
        operation: What is done.
        position: Which of its calls fails; None = none.
        how: See `FAULTS`, and ``fenced``: late, after the outcome was made final by a fence.

    Returns:
        What the operation said, and its calls.
    """
    world = operation.world
    operation.prepare()
    world.arm(position, "late" if how == "fenced" else how)
    outcome = attempt(operation.act)
    calls = list(world.proxy.sequence)
    world.proxy.begin()
    if position is not None and outcome.said == "unknown":
        _settle(operation, outcome, fenced=how == "fenced")
    world.proxy.deliver()
    done = operation.happened()
    if outcome.said == "done":
        assert done
    elif outcome.said == "failed":
        assert not done, outcome.error
    if isinstance(outcome.error, CommitStateUnknownError):
        verdict = operation.verdict(outcome.error)
        if verdict is not None:
            assert done == (verdict in {CommitState.COMMITTED, CommitState.SUPERSEDED}), verdict
            assert how != "fenced" or verdict is CommitState.NOT_COMMITTED
    for name in operation.names:
        world.check_no_lock(name)
        world.check_files(name)
    return outcome.said, calls


def _settle(operation: Operation, outcome: Outcome, *, fenced: bool) -> None:
    assert isinstance(outcome.error, CommitStateUnknownError)
    verdict = operation.verdict(outcome.error)
    if verdict is None:
        return
    assert verdict is not CommitState.UNKNOWN
    if fenced:
        assert verdict is CommitState.PENDING
        operation.fence()
        settled = operation.verdict(outcome.error)
        assert settled is CommitState.NOT_COMMITTED, settled
