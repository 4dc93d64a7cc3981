"""What the journal of a migration says, and when: each step is announced before it may have happened."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from icecomb.catalog import migrate
from icecomb.catalog.migrate.journal.folder_journals import FolderJournals
from icecomb.catalog.migrate.journal.journal import Step
from icecomb.catalog.migrate.source.source import partition_values
from icecomb.format.errors import CommitStateUnknownError
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import IdentityTransform
from icecomb.format.spec.types import NestedField, StringType

ALTER = "alter_table_with_environment_context"
DROP = "drop_partitions_req"
PREPARED = {Step.WRITING, Step.PREPARED}
QUICK = {"commit.status-check.min-wait-ms": "5", "commit.status-check.num-retries": "1"}


@pytest.fixture
def table(make_hive_table: Any, proxied: Any) -> Any:
    parts = {("1",): pa.table({"id": [1]})}
    made = make_hive_table({"id": "bigint"}, {"k": "int"}, parts, parameters=QUICK)
    # the server is found out about by an alter of its own: before the one that is meant
    assert proxied.rejects_stale_swap("made.t", expectation_sent=True)
    return made


def steps(table: Any) -> set[Step]:
    """Return what the journal says."""
    (journal,) = FolderJournals(table.catalog, table.entry).own
    return set(journal.steps())


def test_the_journal_says_that_the_entry_is_about_to_be_converted_before_it_is(
    table: Any, proxied: Any, proxy: Any
) -> None:
    said: dict[str, set[Step]] = {}
    for call in ("lock", ALTER, "unlock", DROP):
        proxy.before(call, lambda call=call: said.setdefault(call, steps(table)))
    proxy.after(ALTER, lambda: said.setdefault("altered", steps(table)))
    proxy.begin()
    migrate.apply(proxied, table.name)
    converting = {*PREPARED, Step.SWAPPING}
    assert said == {
        "lock": PREPARED,
        ALTER: converting,
        "altered": converting,
        "unlock": {*converting, Step.SWAPPED},
        DROP: {*converting, Step.SWAPPED},
    }
    calls = proxy.sequence
    lock, alter = calls.index("lock"), calls.index(ALTER)
    # under the lock it is looked at again, and nobody waits for its partitions
    assert "get_table_req" in calls[lock:alter]
    assert alter < calls.index("unlock") < calls.index(DROP)


def test_the_journal_does_not_say_that_the_entry_was_converted_where_that_is_unknown(
    table: Any, proxied: Any, proxy: Any
) -> None:
    """Whoever goes on must make sure that the request does not come late."""
    proxy.fail(ALTER, "late")
    proxy.before(ALTER, lambda: proxy.fail("get_table_req", "request", times=100))
    with pytest.raises(CommitStateUnknownError):
        migrate.apply(proxied, table.name)
    proxy.fail("get_table_req", "request", times=0)
    assert steps(table) == {*PREPARED, Step.SWAPPING}
    assert len(table.partitions) == 1
    assert proxy.deliver() == 1


@pytest.mark.parametrize("null_name", ["__HIVE_DEFAULT_PARTITION__", "N/A", ""])
def test_a_partition_is_null_whose_text_is_the_name_that_the_table_has_for_null(null_name):
    schema = Schema(NestedField(1, "k", StringType()))
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "k"))
    texts = ["__HIVE_DEFAULT_PARTITION__", "N/A", "", "null"]
    found = [partition_values([text], spec, schema, null_name=null_name) for text in texts]
    assert found == [(None if text == null_name else text,) for text in texts]
