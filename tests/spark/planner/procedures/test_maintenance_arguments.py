"""Each argument of a maintenance action is there in Python, in the shell and in CALL, or has a reason."""

from __future__ import annotations

import pytest

from icecomb.catalog.cli.maintain import maintain
from icecomb.catalog.maintenance.action import ACTIONS
from icecomb.spark.planner.procedures import PROCEDURES

EVERYWHERE = {action.name: action for action in ACTIONS if action.procedure}
OTHER_NAMES = {"file_list_view": "files", "snapshot_id": "snapshot"}
NOT_IN_PYTHON = {
    "expire_snapshots.max_concurrent_deletes": "files are deleted in bulk",
    "expire_snapshots.stream_results": "file names never reach a driver",
    "remove_orphan_files.prefix_listing": "both listings find the same",
    "remove_orphan_files.stream_results": "of rows shown by Spark",
    "rewrite_manifests.use_caching": "entries are always read once",
}
NOT_IN_THE_SHELL = {
    "case_sensitive": "names are",
    "progress": "the terminal's own",
    "snapshot_properties": "for programs",
}
NOT_IN_CALL = {
    "any_age": "Iceberg's procedure refuses less than a day, too",
    "case_sensitive": "spark.sql.caseSensitive",
    "dry_run": "only remove_orphan_files has it in Iceberg",
    "progress": "Spark's own",
    "quarantine": "not one of Iceberg's",
    "snapshot_properties": "spark.wap.id and the session's summary",
}
OF_EVERY_COMMAND = "output"
OF_OPTIONS = {"engine"}
"""In CALL a key of the map `options` where there is one."""


def in_python(action: str) -> set[str]:
    return set(EVERYWHERE[action].parameters)


def in_the_shell(action: str) -> set[str]:
    found = maintain.commands[action.replace("_", "-")].params
    return {str(p.name) for p in found} - {"table", OF_EVERY_COMMAND}


def in_call(action: str) -> set[str]:
    found = {OTHER_NAMES.get(p.name, p.name) for p in PROCEDURES[action].parameters} - {"table"}
    return found | OF_OPTIONS if "options" in found else found


@pytest.mark.parametrize("action", EVERYWHERE)
def test_an_argument_is_everywhere_or_its_absence_has_a_reason(action: str) -> None:
    python, shell, call = in_python(action), in_the_shell(action), in_call(action)
    surplus = {f"{action}.{name}" for name in (shell | call) - python}
    assert surplus <= set(NOT_IN_PYTHON)
    assert python - shell <= set(NOT_IN_THE_SHELL)
    missing = python - call - set(NOT_IN_CALL)
    # Iceberg's procedures of delete files and manifests work on the current branch
    assert missing <= ({"branch"} if action != "rewrite_data_files" else set())


def test_no_reason_is_left_of_an_argument_that_is_there() -> None:
    named = {
        f"{a}.{name}" for a in EVERYWHERE for name in (in_the_shell(a) | in_call(a)) - in_python(a)
    }
    assert named == set(NOT_IN_PYTHON)
    assert {n for a in EVERYWHERE for n in in_python(a) - in_the_shell(a)} == set(NOT_IN_THE_SHELL)
    absent = {n for a in EVERYWHERE for n in in_python(a) - in_call(a)} - {"branch"}
    assert absent == set(NOT_IN_CALL)
