"""Spilled rows of killed processes do not stay."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from icecomb.format.rows.write import row_sort
from icecomb.format.rows.write.row_key import SortKey
from icecomb.format.rows.write.row_sort import RowSorter, new_spill_folder
from icecomb.format.spec.transform import IdentityTransform
from tests.peers.other_user import give_away

KILLED = """
import os, signal
from icecomb.format.rows.write.row_sort import new_spill_folder
folder = new_spill_folder()
(folder / "0.arrow").write_bytes(b"rows")
print(folder, flush=True)
if {killed}:
    os.kill(os.getpid(), signal.SIGKILL)
input()
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


def process(*, killed):
    return subprocess.Popen(
        [sys.executable, "-c", KILLED.format(killed=killed)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_the_next_sort_removes_what_a_killed_one_left_and_nothing_else(place):
    own = new_spill_folder()
    others = [place / "icecomb-sort-abc", place / "icecomb-sort-00000000-1-x", place / "else"]
    for folder in others:
        folder.mkdir()
    with process(killed=False) as alive, process(killed=True) as dead:
        kept = alive.stdout.readline().strip()
        left = dead.stdout.readline().strip()
        dead.wait()
        assert own.parent.joinpath(left, "0.arrow").exists()
        mine = new_spill_folder()
        assert {str(path) for path in place.iterdir()} == {
            str(path) for path in (own, mine, kept, *others)
        }
        alive.stdin.write("\n")


def test_a_folder_of_another_user_is_left_alone(place, monkeypatch):
    with process(killed=True) as dead:
        left = Path(dead.stdout.readline().strip())
        dead.wait()
    give_away(left, monkeypatch)
    new_spill_folder()
    assert left.exists()


def left_by_a_killed_process():
    with process(killed=True) as dead:
        left = Path(dead.stdout.readline().strip())
        dead.wait()
    return left


def _text(left):
    (left / "important.csv").write_text("mine")


def _folder(left):
    (left / "1.arrow").mkdir()


def _inner(left):
    (left / "1.arrow.csv").touch()


def _open(left):
    left.chmod(0o755)


@pytest.mark.parametrize("made", [_text, _folder, _inner, _open])
def test_a_folder_that_others_renamed_is_not_removed(place, made):
    left = left_by_a_killed_process()
    made(left)
    new_spill_folder()
    assert left.exists()


def test_a_link_of_its_name_is_not_followed(place):
    left = left_by_a_killed_process()
    left.rename(place / "elsewhere")
    left.symlink_to("elsewhere")
    new_spill_folder()
    assert (place / "elsewhere" / "0.arrow").exists()


@pytest.mark.parametrize("theirs", [(), ("important.csv",)])
def test_a_sort_that_ends_removes_what_it_wrote_and_nothing_else(place, monkeypatch, theirs):
    monkeypatch.setattr(row_sort, "RUN_BYTES", 1)
    sorter = RowSorter([SortKey((0,), IdentityTransform())])
    sorter.add(pa.record_batch({"id": pa.array([2, 1], pa.int32())}))
    (folder,) = place.iterdir()
    for name in theirs:
        (folder / name).touch()
    sorter.discard()
    assert folder.exists() == bool(theirs)
