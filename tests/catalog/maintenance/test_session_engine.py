"""Groups that another engine rewrites: it does not say where a row went."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest
from maintained_table import (
    assert_numbers,
    data_on_disk,
    delete_by_value,
    files,
    frame,
    new_table,
)

from icecomb.catalog.maintenance.compaction import RewriteRequest, rewrite_data_files
from icecomb.catalog.maintenance.engine import Engine
from icecomb.format.errors import (
    CommitFailedError,
    CorruptFileError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.maintenance.file_rewriter import FileRewriter


class Elsewhere:
    """Another engine that is this one, asked from outside.

    Args:
        meanwhile: What happens while it works, each time.
        lost: How many of the files it wrote it does not tell.
    """

    def __init__(self, *meanwhile, lost=0):
        self.jobs = []
        self._meanwhile = list(meanwhile)
        self._lost = lost

    def rewrite(self, job):
        self.jobs.append(job)
        rewriter = FileRewriter(job.io, job.metadata, job.spec, uuid4().hex)
        done = rewriter.rewrite(len(self.jobs), job.group, 1)
        done.release()
        if self._meanwhile:
            self._meanwhile.pop(0)()
        return [replace(file, record_count=file.record_count - self._lost) for file in done.files]


def rewritten(table, engine, asked=Engine.SPARK, **given):
    request = RewriteRequest(engine=asked, session=engine, **given)
    return rewrite_data_files(table, request, dry_run=False)


def ids(table):
    return sorted(table.refresh().scan().to_arrow()["id"].to_pylist())


def test_rows_that_others_delete_meanwhile_stay_deleted_by_another_reading(lake):
    table = new_table(lake, *(frame(n, n + 10) for n in range(6)))
    other = lake.load_table("db.t")
    engine = Elsewhere(lambda: other.delete("id = 12"))
    result = rewritten(table, engine)
    assert (len(engine.jobs), result.rewritten_data_files_count) == (2, 6)
    assert ids(table) == [0, 1, 2, 3, 4, 5, 10, 11, 13, 14, 15]
    assert_numbers(table)


def test_rows_of_files_that_others_replace_meanwhile_come_once(lake):
    table = new_table(lake, *(frame(n, n + 10) for n in range(6)))
    other = lake.load_table("db.t")
    engine = Elsewhere(lambda: other.overwrite(frame(99), overwrite_filter="id = 3 or id = 13"))
    rewritten(table, engine)
    assert ids(table) == [0, 1, 2, 4, 5, 10, 11, 12, 14, 15, 99]
    assert_numbers(table)


def test_keys_that_others_delete_meanwhile_stay_deleted(lake):
    table = new_table(lake, *(frame(n, n + 10) for n in range(6)))
    other = lake.load_table("db.t")
    engine = Elsewhere(lambda: delete_by_value(other, 12))
    rewritten(table, engine)
    assert len(engine.jobs) == 1
    assert ids(table) == [0, 1, 2, 3, 4, 5, 10, 11, 13, 14, 15]


def test_who_deletes_each_time_has_the_rewrite_give_up(lake):
    table = new_table(lake, *(frame(n, n + 10) for n in range(6)))
    other = lake.load_table("db.t")
    engine = Elsewhere(*(lambda n=n: other.refresh().delete(f"id = {n}") for n in range(3)))
    before = data_on_disk(table)
    with pytest.raises(CommitFailedError, match="each time"):
        rewritten(table, engine)
    assert ids(table) == [3, 4, 5, 10, 11, 12, 13, 14, 15]
    assert {p for p in data_on_disk(table) - before if "deletes" not in p} == set()


def test_an_engine_that_loses_rows_is_not_believed(lake):
    table = new_table(lake, *(frame(n, n + 10) for n in range(6)))
    before = data_on_disk(table)
    with pytest.raises(CorruptFileError, match="12 rows by their manifests, 11 were written"):
        rewritten(table, Elsewhere(lost=1))
    assert len(files(table)) == 6
    assert data_on_disk(table) == before


def test_a_session_rewrites_what_is_beyond_the_limit_of_this_machine(lake):
    table = new_table(lake, *(frame(n) for n in range(6)))
    engine = Elsewhere()
    rewritten(table, engine, Engine.AUTO)
    assert not engine.jobs
    table.append(frame(6))
    with table.transaction() as change:
        change.set_properties({"icecomb.maintenance.local-limit": "100"})
    for asked, times in ((Engine.LOCAL, 0), (Engine.AUTO, 1)):
        rewritten(table, engine, asked, options={"rewrite-all": "true"})
        assert len(engine.jobs) == times
    assert ids(table) == [*range(7)]


def test_without_a_session_this_machine_rewrites_whatever_the_limit(lake):
    table = new_table(lake, *(frame(n) for n in range(6)))
    with table.transaction() as change:
        change.set_properties({"icecomb.maintenance.local-limit": "0"})
    assert table.maintenance.rewrite_data_files().added_data_files_count == 1


@pytest.mark.parametrize(
    ("engine", "given", "kind", "problem"),
    [
        (None, {}, ValidationError, "only where a session calls"),
        (Elsewhere(), {"sort_order": "zorder(id, s)"}, UnsupportedError, "neither sorts"),
        (Elsewhere(), {"options": {"copy": "require"}}, UnsupportedError, "nor copies"),
    ],
)
def test_what_only_the_other_engine_could_do_is_refused(lake, engine, given, kind, problem):
    table = new_table(lake, *(frame(n) for n in range(6)))
    with pytest.raises(kind, match=problem):
        rewritten(table, engine, **given)


def test_python_names_the_engines_there_are(lake):
    table = new_table(lake, *(frame(n) for n in range(6)))
    with pytest.raises(ValidationError, match="only where a session calls"):
        table.maintenance.rewrite_data_files(engine="spark")
    with pytest.raises(ValidationError, match="There is no engine 'flink'"):
        table.maintenance.rewrite_data_files(engine="flink")
    assert table.maintenance.rewrite_data_files(engine="local").added_data_files_count == 1
