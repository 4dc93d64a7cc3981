"""Groups that a session rewrites, asked over the planner's methods."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import CommitFailedError, FileIOError
from icecomb.spark.planner.session.session_rewrites import GROUP
from tests.spark.planner.protocol import NAMESPACE, NO_HINTS, Planner, named

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string())])


@pytest.fixture(scope="module")
def reference(planner):
    return planner.ask(
        "create_table",
        catalog=planner.catalog,
        definition={
            "table": named("rewritten_groups"),
            "schema": {
                "type": "struct",
                "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}],
            },
            "partitioning": [],
            "properties": {},
        },
    )["reference"]


def test_only_a_procedure_has_a_group_read_and_written(planner, reference):
    given = {"options": {GROUP: "none"}, "settings": {}}
    with pytest.raises(CommitFailedError, match="No procedure waits for work none"):
        planner.ask(
            "plan_scan",
            selection={"reference": reference, "filters": [], "case_sensitive": False, **given},
            files=None,
            field_ids=[1],
            hints=NO_HINTS,
            changes=None,
            limit=None,
            top=None,
            estimates_columns=False,
        )
    with pytest.raises(CommitFailedError, match="No procedure waits"):
        planner.ask("begin_write", reference=reference, operation="append", **given)
    # whoever waited may have given up
    planner.ask("end_work", catalog=planner.catalog, work="none", problem=None)


@pytest.fixture
def folders(tmp_path):
    """The planner, and a table in a folder."""
    catalog = load_catalog("folders", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace(NAMESPACE)
    table = catalog.create_table((*NAMESPACE, "t"), SCHEMA)
    return Planner(type="hadoop", warehouse=str(tmp_path), python="p"), table


def append(table, *keys):
    for key in keys:
        table.refresh().append(pa.table({"id": [1], "k": [key]}, SCHEMA))


def called(planner, **options):
    """The pages of a procedure that has a session rewrite all files."""
    options |= {"engine": "spark", "rewrite-all": "true"}
    arguments = {
        "table": ".".join((*NAMESPACE, "t")),
        "options": options,
    }
    return planner._methods["call_procedure"](
        {
            "catalog": planner.catalog,
            "procedure": {"namespace": ["system"], "name": "rewrite_data_files"},
            "arguments": [{"name": name, "value": value} for name, value in arguments.items()],
            "current": {"catalog": "lake", "namespace": NAMESPACE},
            "case_sensitive": False,
            "settings": {},
        }
    )


@pytest.mark.parametrize("partial", [False, True])
def test_the_cause_is_told_though_the_session_ends_work_that_nobody_waits_for(folders, partial):
    planner, table = folders
    with table.update_spec() as update:
        update.add_field("k", "identity")
    append(table, "a", "b", "c", "d")
    pages = called(planner, **({"partial-progress.enabled": "true"} if partial else {}))
    works, rows = [], None
    try:
        while True:
            page = next(pages)
            rows = page["rows"] or rows
            for work in page["work"]:
                works.append(work["id"])
                planner.ask(
                    "end_work", catalog=planner.catalog, work=work["id"], problem="a file is lost"
                )
    except StopIteration:
        assert partial
    except FileIOError as error:
        assert not partial
        assert "a file is lost" in str(error)  # noqa: PT017 - one of two ways
    if partial:
        assert len(works) == 4
        assert rows[0][3] == 4
    # what a procedure that has failed asked for comes too late, and is no other failure
    for work in works:
        planner.ask("end_work", catalog=planner.catalog, work=work, problem=None)


def test_a_group_is_read_by_its_own_partitioning_also_where_the_session_has_an_older_table(folders):
    planner, table = folders
    old = planner.load("t")
    with table.update_spec() as update:
        update.add_field("k", "identity")
    append(table, "b", "b")
    pages = called(planner)
    work = next(pages)["work"][0]
    planned = planner.plan(old, **work["read"])
    assert planned["statistics"]["rows"] == 2
    planner.ask("end_work", catalog=planner.catalog, work=work["id"], problem="enough")
    with pytest.raises(FileIOError, match="enough"):
        next(pages)
