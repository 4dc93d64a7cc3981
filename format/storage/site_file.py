"""Hadoop's configuration files (``core-site.xml``, ``hive-site.xml`` ...), read as Hadoop does.

Later files win, except over properties that an earlier one marks final; ``${...}`` in values stands
for another property, ``${env.NAME}`` for an environment variable. Entities are refused, so a file
can neither expand without limit nor read other resources.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from xml.parsers import expat

from icecomb.format.errors import ConfigurationError
from icecomb.format.process import user_name

_REFERENCE: Final = re.compile(r"\$\{([^{}$\s]+)\}")
_ENVIRONMENT: Final = re.compile(r"env[.:](?P<name>\w+)(?:(?P<mark>:?-)(?P<default>.*))?")
_XINCLUDE: Final = "http://www.w3.org/2001/XInclude "
_DEEPEST: Final = 20
"""Maximum number of references followed in one value, and of nested includes, as in Hadoop."""


@dataclass(frozen=True, slots=True)
class SiteProperty:
    """One property as written in a file.

    Attributes:
        value: Text, with unresolved references; hidden in the repr, for it may be a secret.
        source: Position in the form ``path:line``.
        final: Whether later files cannot change it.
    """

    value: str = field(repr=False)
    source: str
    final: bool = False


def read_site_files(paths: Iterable[Path]) -> dict[str, SiteProperty]:
    """Read the properties of the files that exist; later files win."""
    found: dict[str, SiteProperty] = {}
    for path in paths:
        for name, value in _Reader(path, ()).read():
            if name not in found or not found[name].final:
                found[name] = value
    return found


def resolve(
    properties: Mapping[str, SiteProperty], name: str, environment: Mapping[str, str]
) -> str:
    """Return the value of a property with its references replaced; unknown ones are kept."""
    text = properties[name].value
    for _ in range(_DEEPEST):
        found = _REFERENCE.search(text)
        value = _referred(found[1], properties, environment) if found else None
        if found is None or value is None:
            return text
        text = text[: found.start()] + value + text[found.end() :]
    raise ConfigurationError(
        f"{properties[name].source}: property {name} refers to itself",
        hint="Replace the ${...} in it by its value.",
    )


def _referred(
    name: str, properties: Mapping[str, SiteProperty], environment: Mapping[str, str]
) -> str | None:
    if found := _ENVIRONMENT.fullmatch(name):
        value = environment.get(found["name"])
        if value is None or (found["mark"] == ":-" and not value):
            return found["default"] if found["mark"] else value
        return value
    name = name.removeprefix("system:")
    if name == "user.name":
        return environment.get("HADOOP_USER_NAME") or user_name()
    if name == "user.home":
        return str(Path.home())
    if name == "java.io.tmpdir":
        return tempfile.gettempdir()
    found_property = properties.get(name)
    return None if found_property is None else found_property.value


class _Reader:
    """A parser of one file and the files it includes."""

    def __init__(self, path: Path, above: tuple[Path, ...]) -> None:
        self._path = path
        self._above = above
        self._found: list[tuple[str, SiteProperty]] = []
        self._elements: list[str] = []
        self._fields: dict[str, str] = {}
        self._text: list[str] = []
        self._line = 0
        self._missing: str | None = None
        self._ignoring = 0
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text.append
        self._parser.EntityDeclHandler = self._refuse_entity

    def read(self) -> list[tuple[str, SiteProperty]]:
        """Return the properties in document order, included files expanded in place."""
        if len(self._above) > _DEEPEST or self._path in self._above:
            raise self._broken("the file includes itself")
        try:
            self._parser.Parse(self._path.read_bytes(), True)
        except expat.ExpatError as error:
            what = expat.errors.messages[error.code]
            raise ConfigurationError(
                f"{self._path}:{error.lineno}: not well-formed XML: {what}",
                hint="Correct the file, or let HIVE_CONF_DIR and HADOOP_CONF_DIR name another.",
            ) from error
        except ConfigurationError:
            raise
        except (LookupError, ValueError) as error:
            raise ConfigurationError(
                f"{self._path}: not XML in a known encoding: {error}",
                hint="Write the file in UTF-8.",
            ) from error
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise ConfigurationError(
                f"{self._path} cannot be read: {error.strerror or error}",
                hint="Check its permissions, or let HIVE_CONF_DIR and HADOOP_CONF_DIR "
                "name another.",
            ) from error
        return self._found

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if not self._elements and name != "configuration":
            raise self._broken(f"its root is <{name}>, not <configuration>")
        self._elements.append(name)
        self._text.clear()
        if self._ignoring:
            return
        if name == "property":
            self._line = self._parser.CurrentLineNumber
            self._fields = dict(attributes)
        elif name == f"{_XINCLUDE}include":
            self._include(attributes.get("href", ""))
        elif name == f"{_XINCLUDE}fallback":
            self._ignoring = 0 if self._missing else len(self._elements)
            self._missing = None

    def _end(self, name: str) -> None:
        if self._ignoring:
            if len(self._elements) == self._ignoring:
                self._ignoring = 0
        elif name in {"name", "value", "final"} and self._elements[-2:-1] == ["property"]:
            self._fields[name] = "".join(self._text).strip()
        elif name == "property" and {"name", "value"} <= self._fields.keys():
            final = self._fields.get("final", "").lower() == "true"
            source = f"{self._path}:{self._line}"
            key = self._fields["name"]
            self._found.append((key, SiteProperty(self._fields["value"], source, final)))
        elif name == f"{_XINCLUDE}include" and self._missing:
            raise self._broken(f"the included file {self._missing} does not exist")
        self._elements.pop()

    def _include(self, href: str) -> None:
        path = self._path.parent / href.removeprefix("file://")
        if not href or not path.is_file():
            self._missing = str(path)
            return
        self._found += _Reader(path, (*self._above, self._path)).read()

    def _refuse_entity(self, name: str, *_: object) -> None:
        raise self._broken(f"it declares the entity {name}; entities are not expanded")

    def _broken(self, what: str) -> ConfigurationError:
        return ConfigurationError(
            f"{self._path}:{self._parser.CurrentLineNumber or 1}: {what}",
            hint="Correct the file, or let HIVE_CONF_DIR and HADOOP_CONF_DIR name another.",
        )


def site_folders(environment: Mapping[str, str]) -> tuple[Path | None, Path | None]:
    """Return the configuration folders of Hadoop and of Hive, found as their own scripts do."""

    def folder(variable: str, home: str, below: str) -> Path | None:
        if named := environment.get(variable):
            return Path(os.path.expanduser(named))  # noqa: PTH111 - the text is a path of a shell
        root = environment.get(home)
        return Path(root) / below if root else None

    return (
        folder("HADOOP_CONF_DIR", "HADOOP_HOME", "etc/hadoop"),
        folder("HIVE_CONF_DIR", "HIVE_HOME", "conf"),
    )
