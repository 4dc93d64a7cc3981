"""One setting: its value, where it came from, and how it is shown (secrets: not at all)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

HIDDEN: Final = "********"
_SECRET: Final = re.compile(
    r"password|passwd|passphrase|secret|token|credential|(^|[.\-_])key([.\-_]|$)", re.IGNORECASE
)
_USER_INFO: Final = re.compile(r"(?<=://)[^/@\s]*@")


@dataclass(frozen=True, slots=True)
class Setting:
    """A value and where it came from.

    Attributes:
        value: Hidden in the repr, for it may be a secret.
        source: ``argument``, the name of an environment variable, or ``path:line`` of a file.
    """

    value: str = field(repr=False)
    source: str


def is_secret(key: str) -> bool:
    """Whether a setting of this name may hold a password, a token or a key."""
    return _SECRET.search(key) is not None


def shown(key: str, value: str) -> str:
    """The value for people and logs: hidden if it is a secret, addresses without user names."""
    return HIDDEN if is_secret(key) else _USER_INFO.sub("", value)


class Properties(dict[str, str]):
    """Properties by key, whose repr hides secrets."""

    def __repr__(self) -> str:
        return repr({key: shown(key, value) for key, value in self.items()})
