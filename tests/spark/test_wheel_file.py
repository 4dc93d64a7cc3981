"""The file of a wheel: a link of its name is replaced, and pip comes from no folder of others."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from icecomb.spark import wheel


def test_a_link_of_its_name_is_replaced_and_pip_runs_where_nobody_else_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    theirs = tmp_path / "bashrc"
    theirs.write_text("mine")
    (tmp_path / "icecomb-1.whl").symlink_to(theirs)

    def made(command: list[str], *, cwd: Path, **_: Any) -> SimpleNamespace:
        assert [path.name for path in cwd.iterdir()] == []
        assert cwd.parent == tmp_path / "cache" / "icecomb" / "wheels"
        assert command[1:4] == ["-I", "-m", "pip"]
        (Path(command[command.index("-w") + 1]) / "icecomb-1.whl").write_bytes(b"wheel")
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(wheel.subprocess, "run", made)
    found = wheel.build_wheel(tmp_path)
    assert found == tmp_path / "icecomb-1.whl"
    assert not found.is_symlink()
    assert (found.read_bytes(), theirs.read_text()) == (b"wheel", "mine")
    assert {path.name for path in tmp_path.iterdir()} == {"bashrc", "cache", found.name}
