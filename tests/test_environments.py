"""Environments of the tests, apart from those of whoever has the checkout."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests import environments


def test_an_environment_of_somebody_else_stays_as_it_is(tmp_path: Path) -> None:
    assert environments.own_venv(tmp_path) == tmp_path / ".venv"
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").touch()
    assert environments.own_venv(tmp_path) == tmp_path / ".venv-tests"
    (tmp_path / ".venv" / ".recipe").touch()
    assert environments.own_venv(tmp_path) == tmp_path / ".venv"


def test_an_environment_whose_making_is_interrupted_is_ours_and_made_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def run(command: list[str], **_: object) -> None:
        asked.append(command)
        if "venv" in command:
            (tmp_path / ".venv" / "bin").mkdir(parents=True)
            (tmp_path / ".venv" / "bin" / "python").touch()
        elif len(asked) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(KeyboardInterrupt):
        environments._environment(tmp_path / ".venv", ["x"], "recipe")
    assert environments.own_venv(tmp_path) == tmp_path / ".venv"
    environments._environment(tmp_path / ".venv", ["x"], "recipe")
    assert [command[-1] for command in asked[2:]] == ["pip", "x"]
    del asked[:]
    environments._environment(tmp_path / ".venv", ["x"], "recipe")
    assert asked == []
