"""Paths that nobody but this user and root can change: what lies there may be believed, and run."""

from __future__ import annotations

import errno
import grp
import os
import pwd
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from icecomb.format.process import is_own

_MOST_LINKS: Final = 40
_ACL: Final = "system.posix_acl_access"
ACCOUNTS: Final = Path("/etc/nsswitch.conf")
_LISTED: Final = frozenset({"files", "systemd"})
"""Sources of accounts that the system lists in full; a directory server's may not be listed."""


def open_part(path: Path) -> Path | None:
    """Return the part of an absolute path by which others could exchange where it leads, or None.

    It is another user's, root aside, or others may write to it; a folder with the sticky bit lets
    them rename only what is theirs. Missing parts are passed over.
    """
    for each in _parts(path):
        try:
            found = each.lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        is_sticky = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
        if not is_own(found) or (not is_sticky and may_be_written(each, found)):
            return each
    return None


def make_private(folder: Path) -> Path | None:
    """Make a folder, for this user alone, and those above it; return its open part, if it has one.

    Nothing is made where others could exchange what is above it; see `open_part`.
    """
    part = open_part(folder)
    for each in (*reversed(folder.parents), folder):
        if part is None and not each.exists():
            # those that `mkdir(parents=True)` made would be open as the umask says
            each.mkdir(mode=0o700, exist_ok=True)
            part = open_part(each)
    return part


def may_be_written(path: Path | int, status: os.stat_result) -> bool:
    """Return whether others than its owner and root may write to a file or folder.

    Args:
        path: The path, or a descriptor of the opened file.
    """
    if stat.S_ISLNK(status.st_mode):
        return False  # its mode means nothing
    if status.st_mode & stat.S_IWOTH:
        return True
    # where a file has an access control list, these bits show what its entries may allow at most
    is_open = status.st_mode & stat.S_IWGRP
    return bool(is_open) and (_has_acl(path) or not _is_private(status.st_gid))


def _parts(path: Path) -> Iterator[Path]:
    """Yield what the system goes through on an absolute path: folders without links, and links.

    Two dots lead to the folder above the one that a link before them led to.
    """
    place = Path("/")
    rest = [*reversed(path.parts[1:])]
    links = 0
    yield place
    while rest:
        part = rest.pop()
        each = place.parent if part == ".." else place / part
        yield each
        if not each.is_symlink():
            place = each
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        target = each.readlink()
        if target.is_absolute():
            place = Path("/")
        rest += reversed(target.relative_to(target.anchor).parts)


def _has_acl(path: Path | int) -> bool:
    try:
        return hasattr(os, "getxattr") and bool(os.getxattr(path, _ACL))
    except OSError:
        return False


def _is_private(group: int) -> bool:
    """Return whether no other user is in a group, root aside.

    Neither its members nor the accounts whose own group it is may be others. Where accounts may be
    missing in the system's lists, only a group made for the user alone counts, as many systems make
    it: of the same name and the same number.
    """
    try:
        found = grp.getgrgid(group)
        user = pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    alone = {user.pw_name, "root"}
    accounts = (each.pw_name for each in pwd.getpwall() if each.pw_gid == group)
    if not alone.issuperset(found.gr_mem) or not alone.issuperset(accounts):
        return False
    is_made_for_user = found.gr_name == user.pw_name and group == user.pw_gid == user.pw_uid
    return is_made_for_user or _are_accounts_listed()


def _are_accounts_listed() -> bool:
    try:
        text = ACCOUNTS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    sources = re.findall(r"(?m)^\s*(?:passwd|group|initgroups):([^#\n]*)", text)
    return bool(sources) and _LISTED.issuperset(" ".join(sources).split())
