"""The folder of what icecomb has compiled: what another user put there is not run."""

from __future__ import annotations

import grp
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from icecomb.catalog import java
from icecomb.format.errors import JavaError
from tests.peers.other_user import give_away


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_it_is_made_for_the_user_alone_and_closed_if_it_was_open(cache: Path) -> None:
    folder = java.private_cache("jars")
    assert folder == cache / "icecomb" / "jars"
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    assert java.private_cache("jars").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("name", ["icecomb", "icecomb/jars"])
def test_what_lies_in_one_that_was_open_is_not_run(
    cache: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    planted = java.private_cache("jars") / "planted"
    planted.mkdir()
    (cache / name).chmod(0o777)
    assert [*java.private_cache("jars").iterdir()] == []
    [kept] = cache.glob("icecomb*/jars*/planted")
    assert str(kept.parent if name == "icecomb/jars" else kept.parent.parent) in caplog.text
    assert [*java.private_cache("jars").iterdir()] == []


def test_nothing_is_made_where_others_could_exchange_it(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.mkdir()
    cache.chmod(0o777)
    with pytest.raises(JavaError, match=f"{cache} is open to other users"):
        java.private_cache("jars")
    assert [*cache.iterdir()] == []
    cache.chmod(0o1777)
    elsewhere = cache.with_name("elsewhere")
    elsewhere.mkdir()
    (cache / "icecomb").symlink_to(elsewhere)
    give_away(cache / "icecomb", monkeypatch)
    with pytest.raises(JavaError, match="is open to other users"):
        java.private_cache("jars")
    assert [*elsewhere.iterdir()] == []


@pytest.mark.parametrize("name", ["", "icecomb", "icecomb/jars"])
def test_a_folder_of_another_user_is_not_used(
    cache: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    java.private_cache("jars")
    give_away(cache / name, monkeypatch)
    with pytest.raises(JavaError, match="is open to other users"):
        java.private_cache("jars")


def test_neither_is_one_below_a_folder_that_everybody_may_write_to(cache: Path) -> None:
    java.private_cache("jars")
    cache.chmod(0o777)
    with pytest.raises(JavaError, match="is open to other users"):
        java.private_cache("jars")
    cache.chmod(0o1777)  # as /tmp
    java.private_cache("jars")


def test_neither_is_one_that_a_link_in_a_shared_folder_leads_to(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java.private_cache("jars")
    link = tmp_path / "shared" / "link"
    link.parent.mkdir()
    link.symlink_to(cache)
    monkeypatch.setenv("XDG_CACHE_HOME", str(link))
    java.private_cache("jars")
    link.parent.chmod(0o777)
    with pytest.raises(JavaError, match="is open to other users"):
        java.private_cache("jars")
    link.parent.chmod(0o1777)
    give_away(link, monkeypatch)
    with pytest.raises(JavaError, match="is open to other users"):
        java.private_cache("jars")


def test_two_dots_after_a_link_remove_it_in_what_is_checked_and_what_is_used(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    (shared / "inner").mkdir(parents=True)
    shared.chmod(0o777)
    (tmp_path / "link").symlink_to(shared / "inner")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "link" / ".." / "cache"))
    assert java.private_cache("jars") == cache / "icecomb" / "jars"
    assert not (shared / "cache").exists()


def test_neither_is_one_below_a_folder_of_a_team(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java.private_cache("jars")
    cache.chmod(0o2775)
    java.private_cache("jars")
    monkeypatch.setattr(grp, "getgrgid", lambda _: SimpleNamespace(gr_name="team", gr_mem=["bob"]))
    with pytest.raises(JavaError, match="is open to other users"):
        java.private_cache("jars")


def test_a_jar_of_another_user_is_compiled_again(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jar = java.private_cache("jars") / "x-1.jar"
    jar.write_bytes(b"mine")
    assert java.compile_jar([], "", "x", "1") == jar
    javac = cache / "javac"
    javac.write_text("#!/bin/sh\n")
    javac.chmod(0o700)
    monkeypatch.setattr(java, "find_javac", lambda: javac)
    monkeypatch.setattr(java, "private_cache", lambda name: cache / "icecomb" / name)
    give_away(jar, monkeypatch)
    assert java.compile_jar([], "", "x", "1") == jar
    assert zipfile.ZipFile(jar).namelist() == ["META-INF/MANIFEST.MF"]
