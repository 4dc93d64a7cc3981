"""The rings, the parts of the outermost and the lanes: what runs where, and that nothing is left out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings, strategies as st

from tests import __main__ as runner, lanes, parts, rings
from tests.lanes import ROOT, in_order
from tests.parts import part

RINGS = {"plain": "fast", "jvm": "gate", "gate": "gate", "full": "full"}


def made(name, count=1, fixtures=(), marks=()):
    def closest(mark):
        return mark if mark in marks else None

    path = ROOT / "tests" / name
    return [
        SimpleNamespace(path=path, fixturenames=fixtures, get_closest_marker=closest, nodeid=name)
        for _ in range(count)
    ]


def names(items):
    return [item.path.name for item in items]


@pytest.mark.parametrize("mark", RINGS)
def test_a_test_belongs_to_the_ring_of_its_mark(mark):
    [item] = made("a", marks=(mark,))
    assert rings.ring_of(item) == RINGS[mark]


def test_what_only_full_has_is_not_in_the_gate_even_if_it_needs_java():
    [item] = made("a", marks=("full", "jvm", "gate"))
    assert rings.ring_of(item) == "full"


def test_every_ring_has_those_inside_it(request):
    """Of the tests of this very run, whatever was chosen of them."""
    collected = request.config.stash[rings.ALL]
    fast, gate, full = (set(rings.within(collected, ring)) for ring in rings.RINGS)
    assert fast <= gate <= full == set(collected)


@pytest.mark.parametrize("count", [1, 4, 7])
def test_the_parts_of_full_have_every_test_once(request, count):
    collected = request.config.stash[rings.ALL]
    cut = [part(collected, k, count, parts.recorded_seconds()) for k in range(1, count + 1)]
    ran = [item for each in cut for item in each]
    assert len(ran) == len(set(ran)) == len(collected)
    assert set(ran) == set(collected)
    files = [{item.path for item in each} for each in cut]
    assert sum(map(len, files)) == len(set().union(*files))


@given(st.lists(st.integers(0, 50), max_size=12), st.integers(1, 6))
@settings(deadline=None)
def test_parts_are_whole_files_in_the_order_of_lanes_whatever_these_take(seconds, count):
    items = [each for at in range(len(seconds)) for each in made(f"{at:02}", 2)]
    took = {f"tests/{at:02}": float(s) for at, s in enumerate(seconds)}
    cut = [names(part(items, k, count, took)) for k in range(1, count + 1)]
    assert [name for each in cut for name in each] == names(items)


def test_parts_take_about_the_same_time():
    items = [each for name in "abcdef" for each in made(name)]
    took = {f"tests/{name}": s for name, s in zip("abcdef", (6, 1, 1, 1, 1, 2), strict=True)}
    assert names(part(items, 1, 2, took)) == ["a"]
    assert names(part(items, 2, 2, took)) == ["b", "c", "d", "e", "f"]


@pytest.mark.parametrize("text", ["", "1", "0/4", "5/4", "a/b", "1/0", "-1/2", "1/2/3"])
def test_a_part_that_there_is_not_is_refused(text):
    with pytest.raises(ValueError, match="such as 2/4"):
        parts.parsed(text)


def test_files_that_share_a_server_stand_together_and_quick_ones_between():
    items = made("a", 1, ("hdfs",), ("jvm",)) + made("b", 1, ("spark",), ("jvm",))
    items += made("c") + made("d", 1, ("hdfs",), ("jvm",))
    items += made("e", 1, ("spark", "iceberg_java"), ("jvm",)) + made("f", 1, ("spark",))
    assert names(in_order(items)) == ["e", "b", "f", "c", "a", "d"]


def test_cases_are_sampled_at_a_fixed_stride():
    found = rings.sampled(range(10), keep=4)
    assert [each for each in found if isinstance(each, int)] == [0, 2, 5, 7]
    left = [each for each in found if not isinstance(each, int)]
    assert [each.values for each in left] == [(1,), (3,), (4,), (6,), (8,), (9,)]
    assert {mark.name for each in left for mark in each.marks} == {"full"}


def test_sampled_cases_keep_names_marks_and_several_values():
    slow = pytest.mark.slow("x")
    _, named, several = rings.sampled(
        ["a", pytest.param("b", id="B", marks=slow), ("c", "d")], keep=1
    )
    assert named.id == "B"
    assert [mark.name for mark in named.marks] == ["slow", "full"]
    assert several.values == ("c", "d")


def test_no_fewer_than_all_are_kept_where_there_are_few():
    assert rings.sampled("ab", keep=5) == ["a", "b"]


FILES = {
    "conftest.py": """
import pytest
from pathlib import Path
from tests import lanes
lanes.ROOT = Path(__file__).parent
def pytest_addoption(parser): lanes.add_options(parser)
def pytest_configure(config): lanes.configure(config)
def pytest_collection_modifyitems(config, items): lanes.arrange(config, items)
def pytest_runtestloop(session): return lanes.run(session)
@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item): return (yield from lanes.measure(item))
def pytest_unconfigure(config): lanes.write(config)
""",
    **{
        f"test_{name}.py": "import time\nimport pytest\n\n"
        "@pytest.fixture(scope='module')\ndef open():\n    yield []\n\n"
        f"@pytest.mark.parametrize('n', range(3))\ndef test_it(n, open):\n    time.sleep({s})\n    open.append(n)\n    assert len(open) == n + 1\n"
        for name, s in zip("abcdef", (0.05, 0, 0, 0.02, 0, 0), strict=True)
    },
}


def test_two_lanes_run_each_file_whole_and_once(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "claims").mkdir()
    running = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)),
                *(f"--lane={lane}", f"--claims={tmp_path / 'claims'}"),
                *(f"--record-seconds={tmp_path / lane}.json", f"--rootdir={tmp_path}"),
                *("--import-mode=importlib", "-c", "/dev/null"),
            ],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for lane in lanes.LANES
    ]
    said = [each.communicate()[0] for each in running]
    ran = [json.loads((tmp_path / f"{lane}.json").read_text()) for lane in lanes.LANES]
    assert all("failed" not in text and "error" not in text for text in said), said
    together = [name for each in ran for name in each]
    assert len(together) == len(set(together)) == 18
    files = [{name.partition("::")[0] for name in each} for each in ran]
    assert not files[0] & files[1]


@pytest.mark.parametrize("arguments", [["fast", "-x"], ["lint", "x"], ["types", "x"]])
def test_a_command_that_takes_no_arguments_says_so(arguments, capsys):
    assert runner.main(arguments) == 2
    assert "takes no arguments" in capsys.readouterr().err


def test_help_prepares_nothing(capsys, monkeypatch):
    monkeypatch.setattr(runner, "prepare", lambda **_: pytest.fail("it prepared"))
    assert runner.main(["--help"]) == 0
    assert "python3 -m tests fast" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--part", "3/2"], ["catalog/no-such-folder"], ["../spark"]])
def test_a_part_or_folder_of_full_that_there_is_not_is_refused(arguments, monkeypatch, capsys):
    monkeypatch.setattr(runner, "prepare", lambda **_: pytest.fail("it prepared"))
    with pytest.raises(SystemExit) as ended:
        runner.main(["full", *arguments])
    assert ended.value.code == 2
    assert "full" in capsys.readouterr().err


def test_a_folder_of_full_is_found_with_or_without_the_name_of_tests():
    wanted = str(ROOT / "tests" / "catalog" / "migrate")
    assert runner._of_full(["catalog/migrate"]) == [wanted]
    assert runner._of_full(["tests/catalog/migrate", "--part", "1/2"]) == ["--part", "1/2", wanted]


def test_every_reason_of_a_mark_is_a_sentence(request):
    """A test that is left out of a ring, or slow, says why."""
    for item in request.config.stash[rings.ALL]:
        for mark in item.iter_markers():
            if mark.name in {"full", "gate", "slow"}:
                assert len(mark.args) == 1, (item.nodeid, mark)
                assert len(str(mark.args[0])) > 8, (item.nodeid, mark)


def test_times_of_files_are_summed_and_those_of_lost_files_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "RECORD", tmp_path / "seconds.json")
    here = Path(__file__).relative_to(ROOT).as_posix()
    parts.RECORD.write_text(json.dumps({"tests/gone.py": 3.0, "tests/conftest.py": 1.5}))
    parts.record({f"{here}::a": [1.25, None], f"{here}::b": [2.0, "why"]})
    assert parts.recorded_seconds() == {"tests/conftest.py": 1.5, here: 3.2}
