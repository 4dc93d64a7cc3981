"""An id of a partition spec that means something else by the time of a commit."""

from __future__ import annotations

from datetime import datetime, timezone

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import ValidationError
from icecomb.format.spec.change.update import Changes, RemovePartitionSpecsUpdate

FAR = datetime(2100, 1, 1, tzinfo=timezone.utc)
ROWS = pa.table({"a": ["x", "y"], "b": ["p", "q"], "n": pa.array([1, 2], pa.int64())})


class CleanUp:
    """Another writer's clean-up of partition specs, which frees their ids."""

    starting_point = None
    writes_files = False

    def __init__(self, *spec_ids):
        self.spec_ids = spec_ids

    def apply(self, _base):
        return Changes((), (RemovePartitionSpecsUpdate(self.spec_ids),))

    def clean_up(self, committed):
        pass


@pytest.fixture(params=["1", "2"])
def catalog(request, tmp_path):
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    properties = {"format-version": request.param}
    table = catalog.create_table("db.t", ROWS.schema, properties=properties)
    table.append(ROWS)
    table.update_spec().add_identity("a").commit()
    return catalog


def give_the_id_to_another(catalog, free):
    """Make a spec of `b` the writers' one, which gets the id of that of `a` where this is freed."""
    table = catalog.load_table("db.t")
    table.update_spec().remove_field("a").commit()
    free(table)
    table.update_spec().add_identity("b").commit()
    return table


def by_others(table):
    old = [s.spec_id for s in table.metadata.partition_specs if [f.name for f in s.fields] == ["a"]]
    kept = {table.metadata.default_spec_id}
    table.commit(CleanUp(*(spec_id for spec_id in old if spec_id not in kept)))


def by_us(table):
    table.maintenance.expire_snapshots().older_than(FAR).retain_last(1).clean_expired_metadata(
        True
    ).commit()


def slowly(catalog, free):
    """Rows of which the second half comes after the others have had their turn."""

    def batches():
        yield ROWS.slice(0, 1).to_batches()[0]
        give_the_id_to_another(catalog, free)
        yield ROWS.slice(1).to_batches()[0]

    return pa.RecordBatchReader.from_batches(ROWS.schema, batches())


def rows(catalog):
    return catalog.load_table("db.t").scan().to_arrow().sort_by("n").to_pydict()


def test_rows_written_by_a_spec_whose_id_another_has_by_now_are_refused(catalog):
    table = catalog.load_table("db.t")
    spec_id = table.metadata.default_spec_id
    # in version 1 a field is not removed but voided, by a spec of its own: the freed id is not the highest
    what = "is" if table.metadata.format_version == 2 else "of id 1"
    with pytest.raises(ValidationError, match=f"partition spec ({spec_id} )?{what}"):
        table.append(slowly(catalog, by_others))
    assert rows(catalog) == ROWS.to_pydict()
    # nothing is left behind
    table = catalog.load_table("db.t")
    orphans = table.maintenance.remove_orphan_files(older_than=FAR, any_age=True, dry_run=True)
    assert [f for f in orphans.orphan_file_location if "/data/" in f] == []


def test_our_clean_up_gives_no_id_twice(catalog):
    table = catalog.load_table("db.t")
    if table.metadata.format_version == 1:
        with pytest.raises(ValidationError, match="no partition spec of id 1"):
            table.append(slowly(catalog, by_us))
    else:
        table.append(slowly(catalog, by_us))
        assert rows(catalog) == {"a": [*"xxyy"], "b": [*"ppqq"], "n": [1, 1, 2, 2]}
    ids = [spec.spec_id for spec in catalog.load_table("db.t").metadata.partition_specs]
    assert len(set(ids)) == len(ids)


def test_a_schema_s_id_is_not_given_twice_either(catalog):
    table = catalog.load_table("db.t")
    with table.update_schema() as change:
        change.add_column("c", "int")
    highest = table.metadata.current_schema_id
    table.update_schema().delete_column("c").commit()
    by_us(table)
    with table.update_schema() as change:
        change.add_column("d", "string")
    assert table.metadata.current_schema_id > highest


@pytest.mark.parametrize("change", ["compaction", "delete files", "merge-on-read delete"])
@pytest.mark.parametrize("catalog", ["2"], indirect=True)
def test_other_changes_of_a_freed_spec_are_refused_too(catalog, monkeypatch, change):
    table = catalog.load_table("db.t")
    with table.transaction() as transaction:
        transaction.set_properties({"write.delete.mode": "merge-on-read"})
    table.append(ROWS)
    table.delete("n = 1")
    commit = type(table).commit

    def after_the_others(self, producer):
        monkeypatch.setattr(type(table), "commit", commit)
        give_the_id_to_another(catalog, keep_and_free)
        return commit(self, producer)

    def keep_and_free(other):
        # the files that use the spec go, and with them the need for it
        other.overwrite(ROWS)
        other.maintenance.expire_snapshots().older_than(FAR).retain_last(1).commit()
        by_others(other)

    monkeypatch.setattr(type(table), "commit", after_the_others)
    everything = {"rewrite-all": "true"}
    make = {
        "compaction": lambda: table.maintenance.rewrite_data_files(options=everything),
        "delete files": lambda: table.maintenance.rewrite_position_delete_files(options=everything),
        "merge-on-read delete": lambda: table.delete("n = 2"),
    }[change]
    with pytest.raises(ValidationError):
        make()
    assert rows(catalog) == ROWS.to_pydict()
