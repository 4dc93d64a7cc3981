"""Groups that a session rewrites, asked over the planner's methods."""

from __future__ import annotations

import pytest

from icecomb.format.errors import CommitFailedError
from icecomb.spark.planner.group_rewrites import GROUP
from tests.spark.planner.protocol import NO_HINTS, named


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
        )
    with pytest.raises(CommitFailedError, match="No procedure waits"):
        planner.ask("begin_write", reference=reference, operation="append", **given)
    with pytest.raises(CommitFailedError, match="No procedure waits"):
        planner.ask("end_work", catalog=planner.catalog, work="none", problem=None)
