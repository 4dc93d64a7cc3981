"""Whether another user could exchange what a path leads to."""

from __future__ import annotations

import grp
import os
import pwd
import struct
from pathlib import Path
from types import SimpleNamespace

import pytest

from icecomb.format import private_path
from icecomb.format.private_path import make_private, may_be_written, open_part
from tests.peers.other_user import SOMEBODY, give_away

ME = pwd.getpwuid(os.geteuid()).pw_name


def group(monkeypatch, name, members=(), *others, sources="files systemd", own=None):
    """All groups have this name and these members; these accounts have them as their own."""
    me = SimpleNamespace(pw_name=ME, pw_uid=own or os.getegid(), pw_gid=os.getegid())
    accounts = [me, *(SimpleNamespace(pw_name=each, pw_gid=os.getegid()) for each in others)]
    monkeypatch.setattr(pwd, "getpwuid", lambda _: me)
    found = SimpleNamespace(gr_name=name, gr_mem=list(members))
    monkeypatch.setattr(grp, "getgrgid", lambda _: found)
    monkeypatch.setattr(pwd, "getpwall", lambda: accounts)
    listed = SimpleNamespace(read_text=lambda **_: f"passwd: {sources} # all\ngroup: files\n")
    monkeypatch.setattr(private_path, "ACCOUNTS", listed)


@pytest.fixture
def place(tmp_path):
    """A file in a folder in a folder."""
    (tmp_path / "a" / "b").mkdir(mode=0o755, parents=True)
    (tmp_path / "a").chmod(0o755)
    return tmp_path / "a" / "b" / "c"


def test_folders_of_the_user_and_of_root_are_no_way_in(place):
    assert open_part(place) is None
    place.touch(mode=0o644)
    assert open_part(place) is None


@pytest.mark.parametrize("part", ["a", "a/b"])
def test_a_folder_that_everybody_writes_to_is_one_unless_it_is_sticky(place, tmp_path, part):
    folder = tmp_path / part
    folder.chmod(0o777)
    assert open_part(place) == folder
    folder.chmod(0o1777)
    assert open_part(place) is None


def test_folders_are_made_for_the_user_alone_and_none_below_a_way_in(place, tmp_path):
    place.parent.chmod(0o777)
    assert make_private(place / "d") == place.parent
    assert not place.exists()
    place.parent.chmod(0o1777)
    assert make_private(place / "d") is None
    assert {each.stat().st_mode & 0o777 for each in (place, place / "d")} == {0o700}


@pytest.mark.parametrize("part", ["a", "a/b"])
def test_so_is_one_of_another_user_even_if_it_is_sticky(place, tmp_path, monkeypatch, part):
    folder = tmp_path / part
    folder.chmod(0o1755)
    give_away(folder, monkeypatch)
    if os.geteuid() == 0:
        assert open_part(place) == folder
    else:
        assert open_part(place) is not None


@pytest.mark.parametrize(
    ("given", "is_open"),
    [
        ((ME,), False),
        ((ME, [ME, "root"]), False),
        ((ME, ["bob"]), True),
        (("team", ["bob"]), True),
        (("team", [ME]), False),
        (("users", [], "bob"), True),
        (("users", [], "root"), False),
        ((ME, [], "bob"), True),
    ],
)
def test_a_group_is_no_way_in_if_nobody_else_is_in_it(place, monkeypatch, given, is_open):
    """As on systems that make a group for each user, and in a container with one user."""
    place.parent.chmod(0o2775)
    group(monkeypatch, *given)
    assert open_part(place) == (place.parent if is_open else None)


@pytest.mark.parametrize("sources", ["files sss", "compat", "", "files ldap"])
def test_a_group_of_accounts_that_are_not_listed_may_have_others(place, monkeypatch, sources):
    place.parent.chmod(0o775)
    group(monkeypatch, "users", sources=sources)
    assert open_part(place) == (place.parent if sources else None)
    monkeypatch.setattr(private_path, "ACCOUNTS", Path("/nowhere"))
    assert open_part(place) == place.parent
    group(monkeypatch, ME, sources=sources)
    assert open_part(place) is None
    group(monkeypatch, ME, [], "bob", sources=sources)
    assert open_part(place) == place.parent
    group(monkeypatch, ME, own=os.getegid() + 1)
    monkeypatch.setattr(private_path, "ACCOUNTS", Path("/nowhere"))
    assert open_part(place) == place.parent


def test_a_group_without_a_name_may_have_others(place, monkeypatch):
    place.parent.chmod(0o775)
    monkeypatch.setattr(grp, "getgrgid", lambda group: {}[group])
    assert open_part(place) == place.parent


def test_entries_of_an_access_control_list_are_not_taken_for_a_private_group(place, monkeypatch):
    place.touch()
    group(monkeypatch, ME)
    place.chmod(0o664)
    assert not may_be_written(place, place.stat())
    entries = [(1, 6, -1), (2, 6, SOMEBODY), (4, 4, -1), (16, 6, -1), (32, 4, -1)]
    listed = b"".join(struct.pack("<HHi", *entry) for entry in entries)
    try:
        os.setxattr(place, "system.posix_acl_access", struct.pack("<I", 2) + listed)
    except (OSError, AttributeError):
        monkeypatch.setattr(os, "getxattr", lambda *_: b"an entry", raising=False)
    assert place.stat().st_mode & 0o777 == 0o664
    assert may_be_written(place, place.stat())
    with place.open("rb") as file:
        assert may_be_written(file.fileno(), os.fstat(file.fileno()))
    place.chmod(0o604)
    assert not may_be_written(place, place.stat())


def test_links_are_followed_and_judged_by_who_can_exchange_them(place, tmp_path, monkeypatch):
    (tmp_path / "shared").mkdir()
    link, second = tmp_path / "shared" / "link", tmp_path / "second"
    link.symlink_to("../a/b")
    second.symlink_to(link)
    assert open_part(second / "c") is None
    (tmp_path / "shared").chmod(0o777)
    assert open_part(second / "c") == tmp_path / "shared"
    (tmp_path / "shared").chmod(0o1777)
    assert open_part(second / "c") is None
    (tmp_path / "a").chmod(0o777)
    assert open_part(second / "c") == tmp_path / "a"
    (tmp_path / "a").chmod(0o755)
    give_away(link, monkeypatch)
    if os.geteuid() == 0:
        assert open_part(second / "c") == link
    else:
        assert open_part(second / "c") is not None


@pytest.mark.parametrize("of_a_link", [False, True], ids=["the path", "a link"])
def test_two_dots_after_a_link_lead_where_the_system_goes(place, tmp_path, of_a_link):
    shared = tmp_path / "shared"
    (shared / "inner").mkdir(parents=True)
    (shared / "lake").mkdir()
    (tmp_path / "a" / "lake").mkdir()
    (tmp_path / "a" / "link").symlink_to(shared / "inner")
    path = tmp_path / "a" / "link" / ".." / "lake"
    if of_a_link:
        (tmp_path / "second").symlink_to("a/link/../lake")
        path = tmp_path / "second"
    assert path.samefile(shared / "lake")
    assert open_part(path) is None
    shared.chmod(0o777)
    assert open_part(path) == shared


def test_a_link_to_itself_ends(tmp_path):
    (tmp_path / "link").symlink_to("link")
    with pytest.raises(OSError, match="symbolic links"):
        open_part(tmp_path / "link")
