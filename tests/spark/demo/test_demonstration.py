from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from icecomb.catalog.cli.application import Application
from icecomb.catalog.cli.output.progress import TerminalProgress
from icecomb.format.errors import ConfigurationError
from icecomb.spark.demo.demonstration import DEPARTED, ROWS, Demo, flights
from tests.peers.other_user import give_away

MAIN = "import sys; from icecomb.catalog.cli import main; sys.exit(main())"


def demo(warehouse: Path, *options: str, form: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", MAIN, "--output", form, "--warehouse", str(warehouse), "demo"]
    return subprocess.run(
        [*command, *options], cwd="/", capture_output=True, text=True, timeout=800, check=False
    )


def test_the_flights_are_whole_and_their_gaps_are_nulls() -> None:
    table = flights()
    assert table.num_rows == ROWS == 336_776
    assert table.num_rows - table["dep_time"].null_count == DEPARTED == 328_521
    assert str(table.schema.field("dep_delay").type) == "int32"
    assert table["tailnum"].null_count == 2512
    assert str(table["time_hour"][0]) == "2013-01-01 10:00:00+00:00"


def test_what_takes_long_is_said_before_it_is_done_and_also_where_it_fails(tmp_path: Path) -> None:
    shown = io.StringIO()
    application = Application(None, None, str(tmp_path), "text", TerminalProgress(shown))
    story = Demo(application, Console(file=shown), tmp_path)
    with story._part("preparing"):
        assert shown.getvalue() == "  preparing ..."
    assert re.fullmatch(r"  preparing \.\.\. \d+\.\d s\n", shown.getvalue())
    with pytest.raises(KeyboardInterrupt), story._part("more"):
        raise KeyboardInterrupt
    assert shown.getvalue().endswith(" s\n")


def test_its_warehouse_is_made_behind_no_link_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, mine = tmp_path / "link", tmp_path / "mine"
    mine.mkdir()
    link.symlink_to(mine)
    give_away(link, monkeypatch)
    application = Application(None, None, str(tmp_path), "text", TerminalProgress(io.StringIO()))
    story = Demo(application, Console(file=io.StringIO()), link / "lake")
    with pytest.raises(ConfigurationError, match="which is not followed"):
        story._start()
    assert not list(mine.iterdir())
    (tmp_path / "icecomb_demo.db").symlink_to(mine)
    give_away(tmp_path / "icecomb_demo.db", monkeypatch)
    story = Demo(application, Console(file=io.StringIO()), tmp_path)
    catalog: Any = SimpleNamespace(client=SimpleNamespace(databases=list))
    nothing: Any = None
    with pytest.raises(ConfigurationError, match="which is not followed"):
        story._write_hive_table(catalog, nothing)


def test_the_commands_that_it_shows_are_quoted_for_a_shell(tmp_path: Path) -> None:
    shown = io.StringIO()
    application = Application(None, None, str(tmp_path), "text", TerminalProgress(shown))
    story = Demo(application, Console(file=shown), Path("/team/$(a) b"))
    story.what_next(1.0, reverted=False)
    commands = [line for line in shown.getvalue().splitlines() if "--warehouse" in line]
    assert len(commands) == 4
    assert all("icecomb --warehouse '/team/$(a) b' " in line for line in commands)


def test_what_others_could_exchange_for_a_folder_of_the_user_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flights = tmp_path / "icecomb_demo.db" / "flights"
    flights.mkdir(parents=True)
    application = Application(None, None, str(tmp_path), "text", TerminalProgress(io.StringIO()))
    story = Demo(application, Console(), tmp_path)
    catalog: Any = SimpleNamespace(client=SimpleNamespace(databases=list))
    flights.parent.chmod(0o777)
    with pytest.raises(ConfigurationError, match="is not removed"):
        story._clear(catalog)
    flights.parent.chmod(0o755)
    story._clear(catalog)
    assert not flights.exists()
    exists = Path.exists

    def appears(path: Path) -> bool:
        found = exists(path)
        path.mkdir(exist_ok=True)
        return found

    monkeypatch.setattr(Path, "exists", appears)
    story._clear(catalog)
    assert exists(flights)


@pytest.mark.jvm
@pytest.mark.full("two runs of the whole demonstration, each with a Spark of its own")
@pytest.mark.timeout(1800)
def test_the_demo_runs_and_runs_again(tmp_path: Path) -> None:
    first = demo(tmp_path / "lake", form="text")
    assert first.returncode == 0, first.stderr
    assert first.stderr == ""
    for text in ("12 months", "0 blockers", "5,725,192 values equal", "VERSION AS OF", "Try next"):
        assert text in first.stdout
    second = demo(tmp_path / "lake", "--revert", form="json")
    assert second.returncode == 0, second.stderr
    facts: dict[str, Any] = json.loads(second.stdout)
    assert {
        name: facts[name] for name in facts if name.split()[0] in {"spark", "python", "after"}
    } == {
        "spark before": ROWS,
        "python before": ROWS,
        "spark now": ROWS + 1500,
        "python now": ROWS + 1500,
        "after revert": ROWS,
    }
