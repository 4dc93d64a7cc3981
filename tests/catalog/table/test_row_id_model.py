"""Random operations on a table of format version 3, against ids of rows that are kept in memory."""

from __future__ import annotations

import tempfile
from itertools import count

import pyarrow as pa
from hypothesis import HealthCheck, given, settings, strategies as st

from icecomb.catalog import load_catalog
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.transform import parse_transform

SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string())])
LINEAGE = ("_row_id", "_last_updated_sequence_number")
BY_BUCKET = PartitionField(1, 1000, parse_transform("bucket[2]"), "bucket")
REWRITES = ({}, {"strategy": "sort", "sort_order": "s desc"}, {"sort_order": "zorder(k, s)"})

some = st.integers(1, 3)
divided = st.tuples(st.integers(2, 4), st.integers(0, 3))
steps = st.one_of(
    st.tuples(st.just("append"), some),
    st.tuples(st.just("append"), some),
    st.tuples(st.just("append to a branch"), some),
    st.tuples(st.just("append twice at once"), some),
    st.tuples(st.just("stage and publish"), some),
    st.tuples(st.just("delete"), divided),
    st.tuples(st.just("overwrite"), divided),
    st.tuples(st.just("update"), divided),
    st.tuples(st.just("upsert"), divided),
    st.tuples(st.just("rewrite data files"), st.sampled_from(REWRITES)),
    st.tuples(st.just("rewrite manifests"), st.none()),
    st.tuples(st.just("upgrade"), st.none()),
)


class Model:
    """A table, its rows by key (text, row id, number of the last update), and all ids ever seen."""

    def __init__(self, table, load):
        self.table = table
        self._load = load
        self.rows: dict[int, tuple[str, int | None, int | None]] = {}
        self.used: set[int] = set()
        self._keys = count()
        self._texts = count()
        self._marked: tuple[int, dict[int, tuple[str, int]]] | None = None

    def step(self, name, how):
        before = dict(self.rows)
        new, changed = self._changed(name, how)
        self.table = self.table.refresh()
        self._compare(before, new, changed)

    def _changed(self, name, how):
        """Do a step to the table; the keys of rows that are new, and of those that changed."""
        table = self.table
        if name == "append":
            new = self._new(how)
            table.append(self._frame(new))
            return new, ()
        if name == "append to a branch":
            new = self._new(how)
            table.append(self._frame(new), branch="work")
            table.manage_snapshots().fast_forward("main", "work").commit()
            table.manage_snapshots().remove_branch("work").commit()
            return new, ()
        if name == "append twice at once":
            mine, theirs = self._new(how), self._new(2)
            other = self._load()
            table.append(self._frame(mine))
            other.append(self._frame(theirs))
            return mine + theirs, ()
        if name == "stage and publish":
            staged, between = self._new(how), self._new(1)
            load = f"load {min(staged)}"
            table.append(self._frame(staged), {"wap.id": load})
            table.append(self._frame(between))
            table.publish_changes(load)
            return staged + between, ()
        if name in {"delete", "overwrite"}:
            gone = self._divided(how)
            condition = f"k in ({', '.join(map(str, gone))})" if gone else "k < 0"
            for key in gone:
                del self.rows[key]
            if name == "delete":
                table.delete(condition)
                return (), ()
            new = self._new(1)
            table.overwrite(self._frame(new), condition)
            return new, ()
        if name == "update":
            changed = self._divided(how)
            self._rename(changed)
            if changed:
                table.merge(self._frame(changed), ["k"]).when_matched_update_all().execute()
            return (), changed
        if name == "upsert":
            changed, new = self._divided(how), self._new(1)
            self._rename(changed)
            same = [key for key in self.rows if key not in changed and key not in new][:2]
            table.upsert(self._frame([*new, *changed, *same]), ["k"])
            return new, changed
        if name == "rewrite data files":
            table.maintenance.rewrite_data_files(options={"rewrite-all": "true"}, **how)
        elif name == "rewrite manifests":
            table.maintenance.rewrite_manifests()
        else:
            with table.update_properties() as update:
                update.set("format-version", "3")
        return (), ()

    def _compare(self, before, new, changed):
        table = self.table
        names = LINEAGE if table.metadata.format_version == 3 else ()
        found = table.scan(selected_fields=("k", "s", *names)).to_arrow().to_pylist()
        assert sorted(row["k"] for row in found) == sorted(self.rows)
        now = getattr(table.current_snapshot(), "sequence_number", 0)
        ids = [row["_row_id"] for row in found if row.get("_row_id") is not None]
        assert len(set(ids)) == len(ids)
        assert max(ids, default=-1) < table.metadata.next_row_id
        for row in found:
            key, own, updated = row["k"], row.get("_row_id"), row.get(LINEAGE[1])
            text, known, known_update = self.rows[key]
            assert row["s"] == text
            if known is not None:
                assert own == known
                assert updated == (now if key in changed else known_update)
            elif own is not None:
                assert own not in self.used
                assert 0 < updated <= now
                if key in new and key in self.rows and key not in before:
                    assert updated >= now - 1
            else:
                assert updated is None
            self.rows[key] = text, own, updated
        self.used.update(ids)
        if ids:
            self._compare_changes()

    def _compare_changes(self):
        """What changed since the last step is what the rows in memory say."""
        after = {own: (text, updated) for text, own, updated in self.rows.values()}
        if self._marked is not None:
            start, before = self._marked
            expected = {("DELETE", own, before[own][0]) for own in before.keys() - after.keys()}
            expected |= {("INSERT", own, after[own][0]) for own in after.keys() - before.keys()}
            for own in before.keys() & after.keys():
                if before[own][1] != after[own][1]:
                    expected.add(("UPDATE_BEFORE", own, before[own][0]))
                    expected.add(("UPDATE_AFTER", own, after[own][0]))
            scan = self.table.changes(start, selected_fields=("_row_id", "s"))
            found = scan.to_arrow().select(["_change_type", "_row_id", "s"]).to_pydict()
            rows = list(zip(*found.values(), strict=True))
            assert len(rows) == len(set(rows))
            assert set(rows) == expected
        self._marked = self.table.current_snapshot().snapshot_id, after

    def _new(self, many):
        keys = [next(self._keys) for _ in range(many)]
        for key in keys:
            self.rows[key] = f"t{next(self._texts)}", None, None
        return keys

    def _rename(self, keys):
        for key in keys:
            self.rows[key] = f"t{next(self._texts)}", *self.rows[key][1:]

    def _divided(self, how):
        divisor, rest = how
        return [key for key in self.rows if key % divisor == rest]

    def _frame(self, keys):
        texts = [self.rows[key][0] for key in keys]
        return pa.table([pa.array(keys, pa.int64()), pa.array(texts, pa.string())], schema=SCHEMA)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    steps=st.lists(steps, min_size=2, max_size=8),
    version=st.sampled_from(["2", "3", "3"]),
    mode=st.sampled_from(["copy-on-write", "merge-on-read"]),
    file_format=st.sampled_from(["parquet", "orc", "avro"]),
    partitioned=st.booleans(),
    merges=st.sampled_from(["2", "100"]),
)
def test_rows_keep_their_ids_and_none_is_used_twice(
    steps, version, mode, file_format, partitioned, merges
):
    properties = {"format-version": version, "write.format.default": file_format}
    properties |= {f"write.{command}.mode": mode for command in ("delete", "merge")}
    properties |= {"commit.manifest.min-count-to-merge": merges, "write.wap.enabled": "true"}
    with tempfile.TemporaryDirectory() as folder:
        lake = load_catalog("lake", type="hadoop", warehouse=folder)
        lake.create_namespace("db")
        spec = PartitionSpec(0, (BY_BUCKET,) if partitioned else ())
        table = lake.create_table("db.t", SCHEMA, partition_spec=spec, properties=properties)
        model = Model(table, lambda: lake.load_table("db.t"))
        model.step("append", 4)
        for name, how in steps:
            model.step(name, how)
        lake.close()
