"""Commands are words for a shell: what is printed comes back as the same words, and exists."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from icecomb.catalog import open_table
from icecomb.catalog.cli.application import icecomb
from icecomb.catalog.health.examination import Remedies, break_lock, name_of
from icecomb.catalog.maintenance import Maintenance
from icecomb.format.shell_command import shell_command
from tests.catalog.health.made_table import GB, append, data, lake_in, new_table


def actions() -> dict[str, click.Command]:
    group = icecomb.get_command(click.Context(icecomb), "maintain")
    assert isinstance(group, click.Group)
    return dict(group.commands)


def test_an_action_of_a_table_is_a_command_so_that_none_is_printed_that_is_not_there() -> None:
    source = Path(Remedies.__init__.__code__.co_filename).read_text()
    offered = set(re.findall(r'self\._action\(\s*"(\w+)"', source))
    assert {"expire_snapshots", "rewrite_manifests", "rewrite_data_files"} <= offered
    for action in offered:
        there = hasattr(Maintenance, action)
        assert there == (action.replace("_", "-") in actions()), action


def test_a_command_that_there_is_not_is_not_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = append(new_table(tmp_path), data(GB))
    monkeypatch.delattr(Maintenance, "rewrite_manifests")
    monkeypatch.delattr(Maintenance, "rewrite_data_files", raising=False)
    assert Remedies(table).rewrite_manifests(0, 0) is None
    assert Remedies(table).apply_deletes() is None


def test_the_newest_remedy_of_equality_deletes_is_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = append(new_table(tmp_path), data(GB))
    for action in ("convert_equality_deletes", "rewrite_position_delete_files"):
        monkeypatch.delattr(Maintenance, action, raising=False)
    monkeypatch.setattr(Maintenance, "rewrite_data_files", print, raising=False)
    applied = Remedies(table).apply_deletes()
    assert applied == (
        *("maintain", "rewrite-data-files", "--option", "delete-file-threshold=1"),
        *("--option", "remove-dangling-deletes=true", "db.t"),
    )
    assert Remedies(table).convert_equality_deletes() == applied
    assert Remedies(table).rewrite_position_delete_files() == applied
    monkeypatch.setattr(Maintenance, "convert_equality_deletes", print, raising=False)
    assert Remedies(table).convert_equality_deletes() == (
        *("maintain", "convert-equality-deletes"),
        "db.t",
    )


def test_a_table_that_can_only_be_read_is_offered_nothing(tmp_path: Path) -> None:
    table = append(new_table(tmp_path), data(GB))
    pinned = open_table(table.metadata_location)
    assert Remedies(table).expire_snapshots() is not None
    assert Remedies(pinned).expire_snapshots() is None
    assert Remedies(pinned).rewrite_manifests(0, 0) is None


def test_a_table_is_called_by_its_name_or_where_that_misleads_by_its_folder(
    tmp_path: Path,
) -> None:
    table = append(new_table(tmp_path), data(GB))
    assert name_of(table) == "db.t"
    assert name_of(open_table(table.location())).endswith("/db/t")
    lake = lake_in(tmp_path)
    dotted = lake.create_table(("db", "a.b"), table.schema())
    assert name_of(dotted) == dotted.location()
    assert name_of(open_table(name_of(dotted))) == name_of(dotted)


def test_a_name_that_looks_like_an_option_is_none(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    lake.create_namespace("-x")
    words = Remedies(lake.create_table("-x.t", new_table(tmp_path).schema())).expire_snapshots()
    assert words == ("maintain", "expire-snapshots", "--", "-x.t")
    context = actions()["expire-snapshots"].make_context("expire-snapshots", list(words[2:]))
    assert context.params["table"] == "-x.t"


def test_a_lock_is_broken_by_its_number() -> None:
    assert shell_command(*break_lock(17)) == "icecomb locks break 17 --yes"
