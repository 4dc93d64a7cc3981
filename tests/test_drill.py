"""The mutations of the drill, and the drill itself on a project of three lines."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests import drill
from tests.drill import ROOT
from tests.drill.mutation import Mutation
from tests.drill.mutations import MUTATIONS
from tests.drill.trial import BROKEN, CAUGHT, MISSED, Trial
from tests.drill.working_copy import WorkingCopy

FLOORS = ("format", "catalog", "spark/planner")
PYTEST = [sys.executable, "-m", "pytest", "-p", "pytest_timeout"]
PROJECT = {
    "pyproject.toml": '[tool.pytest.ini_options]\naddopts = "--import-mode=importlib"\nmarkers = ["jvm"]\n',
    "__init__.py": "",
    "format/__init__.py": "",
    "format/sums.py": "def twice(n):\n    return 2 * n\n\n\ndef unused():\n    return 1\n",
    "catalog/__init__.py": "",
    "tests/format/test_sums.py": "from icecomb.format.sums import twice\n\n\n"
    "def test_two_of_a_kind():\n    assert twice(3) == 6\n",
    "tests/catalog/test_far.py": "from icecomb.format.sums import unused\n\n\n"
    "def test_from_afar():\n    assert unused() == 1\n",
}


def names(mutations):
    return [each.name for each in mutations]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=names(MUTATIONS))
def test_a_mutation_changes_one_place_of_code_that_still_compiles(mutation):
    changed = mutation.applied((ROOT / mutation.file).read_text())
    if mutation.file.endswith(".py"):
        ast.parse(changed)
    assert mutation.old != mutation.new
    for test in mutation.tests:
        file, *inside = test.split("::")
        assert (ROOT / file).exists()
        assert all(
            re.search(rf"(def|class) {name}\b", (ROOT / file).read_text()) for name in inside
        )


def test_there_are_many_mutations_and_no_two_of_a_name():
    assert len(MUTATIONS) >= 40
    assert [name for name, count in Counter(names(MUTATIONS)).items() if count > 1] == []


def test_something_is_broken_in_every_room():
    rooms = {
        path.parent.relative_to(ROOT).as_posix()
        for floor in FLOORS
        for path in (ROOT / floor).rglob("*.py")
        if path.name != "__init__.py"
    }
    broken = {each.room for each in MUTATIONS}
    assert rooms - broken == set()


def test_every_file_that_is_broken_is_part_of_the_product():
    floors = ("format/", "catalog/", "spark/")
    assert [each.file for each in MUTATIONS if not each.file.startswith(floors)] == []


def test_the_tests_of_a_room_are_those_of_its_folder_and_of_the_folders_around_it(tmp_path):
    for name in ("format/test_a.py", "format/scan/test_b.py", "format/rows/test_c.py", "test_d.py"):
        path = tmp_path / "tests" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    inner = Mutation("x", "format/scan/deep/planner.py", "a", "b")
    assert inner.near(tmp_path) == ["tests/format/scan/test_b.py", "tests/format/test_a.py"]
    room = Mutation("x", "format/scan/planner.py", "a", "b")
    assert room.near(tmp_path) == ["tests/format/scan", "tests/format/test_a.py"]


@pytest.mark.parametrize(
    ("room", "inside"),
    [
        ("catalog", True),
        ("catalog/", True),
        ("catalog/hive", True),
        ("catalog/hive/lock", True),
        ("catalog/hive/loc", False),
        ("catalog/hadoop", False),
    ],
)
def test_a_mutation_is_in_its_room_and_in_those_before_it(room, inside):
    assert Mutation("x", "catalog/hive/lock.py", "a", "b").is_in(room) is inside


one_by_one = pytest.mark.full("the gate tries a whole drill")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A checkout with two tests."""
    # what else is installed would take longer than the tests
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    root = tmp_path / "project"
    for name, text in PROJECT.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def outcome(project, tmp_path, mutation, **options):
    copy = WorkingCopy.of(project, tmp_path / "copy")
    trial = Trial(PYTEST, limit_s=300, ring=(), **options)
    return trial.verified([trial.run(mutation, copy)], copy)[0]


@one_by_one
def test_a_mutation_that_a_test_of_its_room_notices_is_caught(project, tmp_path):
    found = outcome(project, tmp_path, Mutation("x", "format/sums.py", "2 * n", "3 * n"))
    assert (found.outcome, found.by) == (CAUGHT, "tests/format/test_sums.py::test_two_of_a_kind")


@one_by_one
def test_a_mutation_that_only_a_test_elsewhere_notices_is_caught(project, tmp_path):
    far = Mutation("x", "format/sums.py", "return 1", "return 2")
    found = outcome(project, tmp_path, far)
    assert (found.outcome, found.by) == (CAUGHT, "tests/catalog/test_far.py::test_from_afar")


@one_by_one
def test_a_mutation_that_no_test_notices_is_not_caught(project, tmp_path):
    same = Mutation("x", "format/sums.py", "2 * n", "n * 2")
    assert outcome(project, tmp_path, same).outcome == MISSED


@one_by_one
def test_tests_elsewhere_are_left_out_on_demand(project, tmp_path):
    far = Mutation("x", "format/sums.py", "return 1", "return 2")
    assert outcome(project, tmp_path, far, near=True).outcome == MISSED


@one_by_one
def test_tests_that_cannot_be_collected_catch_nothing(project, tmp_path):
    gone = Mutation("x", "format/sums.py", "def twice", "def thrice")
    found = outcome(project, tmp_path, gone)
    assert (found.outcome, found.by[:20]) == (BROKEN, "pytest ended with 2 ")


@one_by_one
def test_a_test_that_is_not_there_catches_nothing(project, tmp_path):
    lost = Mutation("x", "format/sums.py", "2 * n", "3 * n", ("tests/format/test_lost.py",))
    found = outcome(project, tmp_path, lost)
    assert (found.outcome, found.by[:20]) == (BROKEN, "pytest ended with 4 ")


@one_by_one
def test_a_test_that_stops_while_it_is_set_up_catches_nothing(project, tmp_path):
    (project / "tests" / "format" / "conftest.py").write_text(
        "import pytest\nfrom icecomb.format.sums import twice\n\n\n"
        "@pytest.fixture(autouse=True)\ndef server():\n    assert twice(1) == 2\n"
    )
    found = outcome(project, tmp_path, Mutation("x", "format/sums.py", "2 * n", "3 * n"))
    assert (found.outcome, found.by[:20]) == (BROKEN, "pytest ended with 1 ")


@one_by_one
def test_a_test_that_fails_without_the_mutation_as_well_catches_nothing(project, tmp_path):
    (project / "tests" / "format" / "test_sums.py").write_text("def test_it():\n    assert False\n")
    found = outcome(project, tmp_path, Mutation("x", "format/sums.py", "2 * n", "3 * n"))
    assert found.outcome == BROKEN
    assert found.by == "tests/format/test_sums.py::test_it fails without the mutation, too"


@one_by_one
def test_a_mutation_that_takes_too_long_is_broken(project, tmp_path):
    (project / "tests" / "format" / "test_sums.py").write_text(
        "import time\n\n\ndef test_it():\n    time.sleep(300)\n"
    )
    copy = WorkingCopy.of(project, tmp_path / "copy")
    slow = Mutation("x", "format/sums.py", "2 * n", "3 * n")
    found = Trial(PYTEST, limit_s=0.5, ring=()).run(slow, copy)
    assert (found.outcome, found.by) == (BROKEN, "it takes too long")


def test_a_drill_tells_of_each_mutation_and_fails_unless_all_are_caught(project, capsys):
    good = Mutation("three for two", "format/sums.py", "2 * n", "3 * n")
    bad = Mutation("the same", "format/sums.py", "2 * n", "n * 2")
    trial = Trial(PYTEST, limit_s=300, ring=())
    assert drill.drill(project, [good], trial, jobs=1) == 0
    said = capsys.readouterr().out
    assert said.startswith("[  1/1] caught: three for two (format/sums), ")
    assert "by tests/format/test_sums.py::test_two_of_a_kind" in said
    assert said.endswith("\ndrill: 1 of 1 caught\n")
    assert drill.drill(project, [good, bad], trial, jobs=2) == 1
    said = capsys.readouterr().out
    assert "== not caught\nformat/sums: the same: not caught: no test of the gate\n" in said
    assert said.endswith("\ndrill: 1 of 2 caught\n")


def test_the_copy_is_what_is_imported_also_by_what_is_started_there(tmp_path):
    """Before the editable install, and from any working directory."""
    copy = WorkingCopy.of(ROOT, tmp_path / "copy")
    program = (
        "import icecomb, icecomb.format.spec as inner; print(icecomb.__file__, inner.__file__)"
    )
    starts = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {program!r}], cwd='/', check=True)"
    for each in (program, starts):
        command = [sys.executable, "-c", each]
        said = subprocess.run(
            command,
            cwd=copy.root,
            env=copy.environment,
            check=True,
            capture_output=True,
            text=True,
        )
        wanted = [copy.root / "__init__.py", copy.root / "format" / "spec" / "__init__.py"]
        assert [Path(name) for name in said.stdout.split()] == wanted


def test_the_copy_has_everything_but_what_git_ignores(project, tmp_path):
    (project / ".gitignore").write_text("*.log\n# a remark\nmade/\n")
    for name in ("run.log", "new.py", "catalog/old.log", "catalog/made/x.py", ".git/config"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).touch()
    root = WorkingCopy.of(project, tmp_path / "copy").root
    found = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    assert found == {*PROJECT, ".gitignore", "new.py"}


def test_what_this_checkout_ignores_are_names_that_can_be_left_out():
    lines = (ROOT / ".gitignore").read_text().split()
    assert [line for line in lines if "/" in line.rstrip("/") or line.startswith("!")] == []
    assert {"*.jar", "build/", ".venv*"} <= set(lines)


def test_a_mutation_is_in_the_copy_only_while_it_is_tried(project, tmp_path):
    copy = WorkingCopy.of(project, tmp_path / "copy")
    path = copy.root / "format" / "sums.py"
    before, changed = path.read_text(), []
    for new in ("3 * n", "4 * n"):
        with copy.mutated(Mutation("x", "format/sums.py", "2 * n", new)):
            assert new in path.read_text()
            changed.append(int(path.stat().st_mtime))
    # compiled files are known by the second of the change: each mutation has one of its own
    assert len({*changed, int(path.stat().st_mtime)}) == 3
    assert path.read_text() == before
    assert "2 * n" in (project / "format" / "sums.py").read_text()


def test_mutations_are_listed_by_rooms_and_names(capsys):
    assert drill.run(PYTEST, ["--list", "--rooms", "catalog/hive", "--only", "pointer"]) == 0
    assert (
        "catalog/hive/entry_change: the expected pointer is not sent\n" in capsys.readouterr().out
    )
    with pytest.raises(SystemExit):
        drill.run(PYTEST, ["--only", "no such mutation"])
    assert "there is no such mutation" in capsys.readouterr().err
