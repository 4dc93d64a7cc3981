"""The list of commands: it imports none of them, and says what each says of itself."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from icecomb.catalog import cli
from icecomb.catalog.cli import application
from icecomb.spark.planner.procedures import PROCEDURES
from tests.environments import ROOT


@pytest.mark.parametrize("name", application._COMMANDS)
def test_the_list_says_what_the_help_of_a_command_begins_with(name):
    context = click.Context(application.icecomb)
    command = application.icecomb.get_command(context, name)
    assert application._COMMANDS[name][1] == command.get_short_help_str(1_000)


def test_the_list_has_every_command(capsys):
    assert cli.main(["--help"]) == 0
    said = capsys.readouterr().out
    context = click.Context(application.icecomb)
    for name in application.icecomb.list_commands(context):
        assert f"\n  {name} " in said


def _verbs(command: click.Command, before: str = "") -> Iterator[str]:
    if not isinstance(command, click.Group):
        yield before
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        yield from _verbs(command.get_command(context, name), f"{before} {name}".strip())


def test_the_page_of_rights_says_what_every_command_and_procedure_needs():
    page = (ROOT / "docs" / "rights.md").read_text()
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("|")]
    told = [name for row in rows for name in re.findall("`([^`]*)`", row)]
    for name in [*_verbs(application.icecomb), *PROCEDURES]:
        assert name in told, f"docs/rights.md says nothing of {name}"


def test_the_list_loads_no_library_of_the_commands():
    code = (
        "import sys\nfrom icecomb.catalog.cli import main\nmain(['--help'])\n"
        "print(sorted({'pyarrow', 'numpy', 'thrift', 'fastavro', 'polars'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["migrte"], "Did you mean migrate?"),
        (["snapshot", "db.t"], "Did you mean snapshots or"),
        (["expire-snapshots", "db.t"], "Did you mean maintain expire-snapshots?"),
        (["compute-partition-stats", "db.t"], "Did you mean maintain compute-partition-stats?"),
        (["migrate", "aply", "db.t"], "Did you mean apply?"),
        (["maintain", "expire-snapshot", "db.t"], "Did you mean expire-snapshots?"),
    ],
)
def test_a_verb_that_is_nearly_one_is_answered_with_the_one_that_was_meant(words, meant, capsys):
    assert cli.main(words) == 2
    assert meant in capsys.readouterr().err


def test_a_word_like_no_verb_is_only_refused(capsys):
    assert cli.main(["xyzzy"]) == 2
    assert "Did you mean" not in capsys.readouterr().err
