"""Random changes of branches of a version 3 table, against the ids that each must have."""

from __future__ import annotations

import tempfile
from datetime import datetime, timedelta, timezone
from itertools import count

import pyarrow as pa
from hypothesis import HealthCheck, given, settings, strategies as st

from icecomb.catalog import load_catalog
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_manifest
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.transform import parse_transform

SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string())])
BY_BUCKET = PartitionField(1, 1000, parse_transform("bucket[2]"), "bucket")
BRANCHES = st.sampled_from(["main", "main", "work"])
divided = st.tuples(st.integers(2, 4), st.integers(0, 3))
steps = st.one_of(
    st.tuples(st.just("append"), BRANCHES, st.integers(1, 4)),
    st.tuples(st.just("delete"), BRANCHES, divided),
    st.tuples(st.just("delete"), BRANCHES, divided),
    st.tuples(st.just("update"), BRANCHES, divided),
    st.tuples(st.just("overwrite"), BRANCHES, divided),
    st.tuples(st.just("delete twice at once"), BRANCHES, divided),
    st.tuples(st.just("rewrite data files"), BRANCHES, st.none()),
    st.tuples(st.just("rewrite delete files"), BRANCHES, st.none()),
    st.tuples(st.just("rewrite manifests"), st.just("main"), st.none()),
    st.tuples(st.just("roll back"), st.just("main"), st.none()),
    st.tuples(st.just("branch off again"), st.just("work"), st.none()),
    st.tuples(st.just("expire"), st.just("main"), st.none()),
    st.tuples(st.just("upgrade"), st.just("main"), st.none()),
)


class Model:
    """A table, and the texts by key that each branch must have."""

    def __init__(self, table):
        self.table = table
        self.rows: dict[str, dict[int, str]] = {"main": {}, "work": {}}
        self.before: list[tuple[int, dict[int, str]]] = []
        self._numbers = count()

    def step(self, name, branch, how):
        rows, table = self.rows[branch], self.table
        head = table.metadata.snapshot_by_name("main")
        if head is not None:
            self.before.append((head.snapshot_id, dict(self.rows["main"])))
        gone = [k for k in rows if isinstance(how, tuple) and k % how[0] == how[1]]
        condition = f"k in ({', '.join(map(str, gone))})" if gone else "k < 0"
        match name:
            case "append":
                new = self._new(how)
                table.append(frame(new), branch=branch)
                rows |= new
            case "delete" | "delete twice at once":
                with table.transaction() as transaction:
                    for half in (gone[::2], gone[1::2]) if "twice" in name else (gone,):
                        keys = ", ".join(map(str, half)) or "-1"
                        transaction.delete(f"k in ({keys})", branch=branch)
                for k in gone:
                    del rows[k]
            case "update":
                changed = {k: f"v{next(self._numbers)}" for k in gone} | self._new(1)
                table.upsert(frame(changed), ["k"], branch=branch)
                rows |= changed
            case "overwrite":
                new = self._new(1)
                table.overwrite(frame(new), condition, branch=branch)
                for k in gone:
                    del rows[k]
                rows |= new
            case "rewrite data files":
                self._maintained(branch, table.maintenance.rewrite_data_files)
            case "rewrite delete files":
                self._maintained(branch, table.maintenance.rewrite_position_delete_files)
            case "rewrite manifests":
                table.rewrite_manifests()
            case "roll back" if len(self.before) > 1:
                known = {s.snapshot_id for s in table.metadata.snapshots}
                at, then = self.before[-2]
                if at in known:
                    table.manage_snapshots().set_current_snapshot(at).commit()
                    self.rows["main"] = dict(then)
            case "branch off again":
                table.manage_snapshots().replace_branch(head.snapshot_id, "work").commit()
                self.rows["work"] = dict(self.rows["main"])
            case "expire":
                later = datetime.now(timezone.utc) + timedelta(days=1)
                table.expire_snapshots().older_than(later).retain_last(1).commit()
            case "upgrade":
                with table.update_properties() as update:
                    update.set("format-version", "3")
        self.check()

    def check(self):
        table = self.table.refresh()
        for branch, rows in self.rows.items():
            scan = table.scan().use_ref(branch)
            found = [(row["k"], row["s"]) for row in scan.to_arrow().to_pylist()]
            assert sorted(found) == sorted(rows.items())
            assert scan.count() == len(rows)

    def check_files(self):
        """All files of all snapshots exist, and vectors are those of data files of theirs."""
        table = self.table.refresh()
        for snapshot in table.metadata.snapshots:
            vectors, data = [], set()
            for manifest in read_manifests(table.io, snapshot):
                for entry in read_manifest(table.io, manifest):
                    file = entry.data_file
                    if entry.is_live:
                        assert table.io.exists(file.file_path)
                        data |= set() if file.content.value else {file.file_path}
                        vectors += [file.referenced_data_file] if file.is_deletion_vector else []
            assert len(set(vectors)) == len(vectors)
            assert data.issuperset(vectors)

    def _maintained(self, branch, rewrite):
        rewrite(branch=branch, options={"rewrite-all": "true"})

    def _new(self, number):
        return {(k := next(self._numbers)): f"s{k}" for _ in range(number)}


def frame(rows):
    return pa.table([pa.array(list(rows), pa.int64()), list(rows.values())], SCHEMA)


@settings(max_examples=16, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    version=st.sampled_from(["2", "3", "3"]),
    modes=st.tuples(*[st.sampled_from(["merge-on-read", "merge-on-read", "copy-on-write"])] * 2),
    granularity=st.sampled_from(["file", "partition"]),
    fields=st.sampled_from([(), (BY_BUCKET,)]),
    todo=st.lists(steps, min_size=4, max_size=14),
)
def test_branches_have_their_rows_and_each_data_file_at_most_one_vector(
    version, modes, granularity, fields, todo
):
    with tempfile.TemporaryDirectory() as folder:
        lake = load_catalog("lake", type="hadoop", warehouse=folder)
        lake.create_namespace("db")
        given = {
            "format-version": version,
            "write.delete.mode": modes[0],
            "write.merge.mode": modes[1],
            "write.delete.granularity": granularity,
            "commit.manifest.min-count-to-merge": "3",
        }
        table = lake.create_table(
            "db.t", SCHEMA, partition_spec=PartitionSpec(0, fields), properties=given
        )
        model = Model(table)
        first = model._new(5)
        table.append(frame(first))
        table.manage_snapshots().create_branch(
            table.current_snapshot().snapshot_id, "work"
        ).commit()
        model.rows = {"main": dict(first), "work": dict(first)}
        for step in todo:
            model.step(*step)
        model.check_files()
        lake.close()
