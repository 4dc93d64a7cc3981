"""Secrets: which settings hold them, and how they are hidden in what people and logs read."""

from __future__ import annotations

import base64
import re
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

from icecomb.format.printable_text import printable

HIDDEN: Final = "********"
HIDDEN_NAMES: Final = (
    r"password|passwd|passphrase|secret|token|credential|bindpw|header[.]authorization|"
    r"(connection.?string|access.?key|api.?key)|[.\-_](pass|pwd)$|(^|[.\-_])(key|sas)([.\-_]|$)"
)
"""A pattern of names that may stand for secrets, in any case."""
_SECRET: Final = re.compile(HIDDEN_NAMES, re.IGNORECASE)
_WITH_GROUPS: Final = "ugi"
"""PyIceberg's property of the user's name and groups; the secret of a metastore is one of these."""
_LOGIN: Final = re.compile(r"://([^/\s:@]*:[^/\s@]+)@")
_USER_INFO: Final = re.compile(
    r"(?<=://)(?:(?<!abfs://)(?<!abfss://)(?<!wasb://)(?<!wasbs://)|(?=[^/\s@]*:))[^/\s]*@"
)
"""The user of a URL, with a password or without; Azure's container stands there, too."""
_TOLD: Final = re.compile(
    r"((?:(?<![\w/-])|(?<=%26)|(?<=%3f)|(?<=%2526)|(?<=%253f))"
    r"(?:delegation|token|access_token|sig|(?:x-amz-)?signature|x-amz-security-token"
    r"|webidentitytoken)(?:=|%(?:25)*3d)"
    r"|(?<![\w/-])(?:(?:proxy-)?authorization|delegation|x-amz-security-token|x-amz-sso_bearer_token"
    r"|webidentitytoken|secretaccesskey|(?:session|access|refresh|id|subject)_?token"
    r"|client_?secret|(?:(?:client_)?assertion|password)(?=[\"'=%])"
    r")[\"']?(?:: ?|=|%(?:25)*3d)(?:b?[\"'])?(?:\w+(?: |%(?:25)*20))?"
    r"|<(?:SecretAccessKey|SessionToken|Token-\d+)>)([^\s&\"'<>,;)]+)",
    re.IGNORECASE,
)
"""Secrets in queries of WebHDFS, Azure and S3, in headers, and in calls and answers of STS, SSO
and OAuth: group 2, after their names."""
_SHORTEST: Final = 8
"""Characters of the shortest secret that is looked for: a shorter one may be any word."""
_LONGEST_GROUP: Final = 32
"""Characters of the longest name of a group of users; the secret of a metastore is longer."""
_ABOUT: Final = re.compile(r"[.\-_](files?|path|provider|type|signature|expires-at)$")
"""The ends of names that sound secret, but name a file or a class: errors may tell these."""
_REMEMBERED: Final = 100
_IN_QUERY: Final = re.compile(r"(?:^|[?&;])(?:sig|AccountKey)=([^&;]+)")
_KNOWN: Final[dict[str, bool]] = {}


def is_secret(key: str) -> bool:
    """Return whether a property of this name may hold a password, a token or a key."""
    return _SECRET.search(key) is not None


def remember_secret(value: str | None, *, is_renewed: bool = False) -> None:
    """Let `without_secrets` hide a value however it is spelled; of a query its signature.

    Only the last ones are hidden; those that are renewed do not make others forgotten.
    """
    found = _IN_QUERY.findall(value or "") or (value or "").replace(",", " ").split()
    new = {each for each in map(unquote, found) if len(each) >= _SHORTEST and each not in _KNOWN}
    if new:
        first_to_go = sorted(_KNOWN, key=_KNOWN.__getitem__, reverse=True)
        _KNOWN.update(dict.fromkeys(new, is_renewed))
        for each in first_to_go[: max(len(_KNOWN) - _REMEMBERED, 0)]:
            _KNOWN.pop(each, None)


def remember_setting(key: str, value: str) -> None:
    """Let `without_secrets` hide what is secret in a setting: all of it, or a login in a URL."""
    if key == _WITH_GROUPS:
        groups = value.partition(":")[2].split(",")
        remember_secret(" ".join(each for each in groups if len(each) > _LONGEST_GROUP))
    elif is_secret(key) and not _ABOUT.search(key):
        remember_secret(value)
    for login in _LOGIN.findall(value):
        plain = unquote(login)
        remember_secret(plain.partition(":")[2])
        # as it is sent to a server or a proxy
        remember_secret(base64.b64encode(plain.encode()).decode())


def remember_told(text: str) -> None:
    """Let `without_secrets` hide the secrets that a text shows by name wherever they stand."""
    for found in _TOLD.finditer(text):
        remember_secret(found[2], is_renewed=True)


@lru_cache(maxsize=1)
def _pattern(secrets: tuple[str, ...]) -> re.Pattern[str]:
    longest_first = sorted(secrets, key=len, reverse=True)
    return re.compile("|".join("".join(map(_spelled, each)) for each in longest_first))


def _spelled(letter: str) -> str:
    """Return a pattern of a letter: as it is, or encoded for a URL, for HTML or for JSON."""
    if letter.isalnum():
        return letter
    code = f"{ord(letter):02x}"
    return rf"(?:{re.escape(letter)}|%(?:25)*(?i:{code})|&#?\w+;|\\+u00(?i:{code}))"


def without_secrets(text: str) -> str:
    """Return a text without secrets of URLs: users with their passwords, tokens and signatures.

    What `remember_secret` knows is hidden wherever it stands.
    """
    if known := tuple(_KNOWN):
        text = _pattern(known).sub(HIDDEN, text)
    return _TOLD.sub(rf"\1{HIDDEN}", _USER_INFO.sub("", text))


def one_line(said: object, most: int = 500) -> str:
    """Return the first line of what a server said, printable and without secrets.

    It is cut to `most` characters, and empty if the server said nothing.
    """
    # hidden before the text is cut: half of a secret would not be recognized
    text = without_secrets(("" if said is None else str(said)).strip()[: 100 * most])
    line = next(iter(text.splitlines()), "")
    return printable(f"{line[:most]}..." if len(line) > most else line)


def shown(key: str, value: str) -> str:
    """Return a value for people and logs: secrets are hidden, addresses are without users."""
    if key == _WITH_GROUPS and ":" in value:
        return f"{value.partition(':')[0]}:{HIDDEN}"
    return HIDDEN if is_secret(key) else without_secrets(value)


class ShownProperties(dict[str, str]):
    """A dictionary of properties whose repr hides secrets."""

    def __repr__(self) -> str:
        return repr({key: shown(key, value) for key, value in self.items()})
