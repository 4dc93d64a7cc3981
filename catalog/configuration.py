"""Where a catalog's settings come from: arguments first, then the environment, then defaults.

``ICECOMB_CATALOG__<NAME>__<KEY>`` sets a property of the catalog NAME; the key is written in upper
case, ``_`` stands for ``-`` and ``__`` for ``.``: ``ICECOMB_CATALOG__LAKE__URI``. Any key may also
be given in its own spelling, ``ICECOMB_CATALOG__LAKE__engine.hive.lock-enabled``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from icecomb.format.errors import ConfigurationError

PREFIX: Final = "ICECOMB_CATALOG__"
TYPES: Final = ("hadoop", "hive", "local")

_N = TypeVar("_N", int, float)
_TRUE: Final = {"true": True, "false": False}
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Setting:
    """One property's value and where it came from, as ``argument`` or an environment variable."""

    value: str
    source: str


class Configuration:
    """The properties of one catalog.

    Args:
        name: The catalog's name.
        settings: Its properties with their sources.
    """

    def __init__(self, name: str, settings: Mapping[str, Setting]) -> None:
        self.name = name
        self.settings = dict(settings)

    @property
    def properties(self) -> dict[str, str]:
        """Just the values."""
        return {key: setting.value for key, setting in self.settings.items()}

    @property
    def type(self) -> str:
        """The kind of catalog: as configured, else ``hive`` with a ``uri``, else ``local``.

        Raises:
            ConfigurationError: there is no such kind.
        """
        properties = self.properties
        kind = properties.get("type", "hive" if "uri" in properties else "local").lower()
        if kind not in TYPES:
            source = self.settings["type"].source
            raise ConfigurationError(
                f"catalog {self.name}: there is no catalog type {kind!r} ({source})",
                hint=f"one of {', '.join(TYPES)}",
            )
        return kind


def load_configuration(
    name: str, arguments: Mapping[str, object], environment: Mapping[str, str] | None = None
) -> Configuration:
    """The configuration of the catalog ``name``.

    Args:
        name: The catalog's name; upper and lower case are the same in the environment.
        arguments: What the caller says; None means unsaid.
        environment: Default the process's own.
    """
    sources: tuple[Callable[[], dict[str, Setting]], ...] = (
        lambda: _from_environment(name, os.environ if environment is None else environment),
        lambda: {
            key: Setting(_text(value), "argument")
            for key, value in arguments.items()
            if value is not None
        },
    )
    settings: dict[str, Setting] = {}
    for source in sources:
        settings |= source()
    return Configuration(name, settings)


def number(properties: Mapping[str, str], key: str, default: _N, *, least: _N | None = None) -> _N:
    """A numeric property.

    Raises:
        ConfigurationError: it is no number, or below ``least``.
    """
    text = properties.get(key)
    if text is None:
        return default
    try:
        value = type(default)(text)
    except ValueError:
        value = None
    if value is None or (least is not None and value < least):
        at_least = "" if least is None else f" of at least {least}"
        raise ConfigurationError(f"{key} is {text!r}: a number{at_least} is expected")
    return value


def flag(properties: Mapping[str, str], key: str, *, default: bool) -> bool:
    """A property that is ``true`` or ``false``.

    Raises:
        ConfigurationError: it is something else.
    """
    text = properties.get(key)
    if text is None:
        return default
    try:
        return _TRUE[text.lower()]
    except KeyError:
        raise ConfigurationError(f"{key} is {text!r}: true or false is expected") from None


def seconds(text: str) -> float:
    """A duration as Hive writes it, as ``300s``, ``5min`` or ``300`` (seconds).

    Raises:
        ConfigurationError: it is no duration.
    """
    digits = text.strip().rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    unit = text.strip()[len(digits) :].lower() or "s"
    try:
        return float(digits) * _SECONDS[unit]
    except (ValueError, KeyError):
        raise ConfigurationError(f"{text!r} is no duration, as 300s or 500ms") from None


def _from_environment(name: str, environment: Mapping[str, str]) -> dict[str, Setting]:
    prefix = f"{PREFIX}{name}__".upper().replace("-", "_")
    found: dict[str, Setting] = {}
    for variable, value in sorted(environment.items()):
        if variable.upper().startswith(prefix) and len(variable) > len(prefix):
            key = variable[len(prefix) :]
            if key.isupper():
                key = key.lower().replace("__", ".").replace("_", "-")
            found[key] = Setting(value, variable)
    return found


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)
