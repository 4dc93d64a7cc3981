"""The file ``icecomb.yaml``: catalogs and their properties, in the shape of PyIceberg's own file.

::

    default-catalog: lake
    catalog:
      lake:
        uri: thrift://metastore:9083
        warehouse: hdfs://ns1/warehouse
        table-default:
          write.target-file-size-bytes: 268435456

Nested keys are joined by dots, lists by commas.

A file is read only if it is this user's (or root's) and nobody else may write to it. The working
directory may be anybody's, and its file may have come along with somebody's project: it is read
only where nobody else could exchange it, nor a folder above it; and where it names a server, the
secrets of the user's own file are not sent there.
"""

from __future__ import annotations

import logging
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from icecomb.catalog.configuration.catalog_property import Setting
from icecomb.format.errors import ConfigurationError
from icecomb.format.private_path import may_be_written, open_part
from icecomb.format.process import is_own
from icecomb.format.property.property import is_secret

if TYPE_CHECKING:
    import yaml

NAME: Final = "icecomb.yaml"
HOME: Final = "ICECOMB_HOME"
_KEYS: Final = ("catalog", "default-catalog")
_PLACE: Final = re.compile(
    r"(?i)(?:^|[.\-_])(?:uri|url|endpoint|host|address|authority|proxy|conf-dir|ca-path|"
    r"nameservices|defaultfs|warehouse|connection-string|servers|truststore|ssl|tls|sasl)(?:[.\-_]|$)"
)
"""Properties that say where credentials are sent, and whether they are sent safely."""
_MOST_BYTES: Final = 4 << 20
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CatalogFile:
    """The contents of files; `default` is the catalog that commands open when none is named."""

    default: Setting | None = None
    catalogs: Mapping[str, Mapping[str, Setting]] = field(default_factory=dict)


def catalog_file_paths(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the paths at which a file may exist, the nearest last.

    In the folder ``ICECOMB_HOME``, else in the user's configuration folder (Linux:
    ``~/.config/icecomb``); then in the working directory.
    """
    if home := environment.get(HOME):
        far = Path(home).expanduser()
    else:
        from platformdirs import user_config_path

        far = user_config_path("icecomb", appauthor=False)
    return far / NAME, Path(NAME).absolute() if _is_somewhere() else far / NAME


def _is_somewhere() -> bool:
    """Return whether the working directory still exists."""
    try:
        Path.cwd()
    except OSError:
        return False
    return True


def read_catalog_files(paths: tuple[Path, ...]) -> CatalogFile:
    """Merge the contents of the files that exist; key by key, later files win.

    Where a later file says where a catalog is, it gets no secrets of an earlier one. A file that
    may be somebody else's raises ConfigurationError.
    """
    default: Setting | None = None
    catalogs: dict[str, dict[str, Setting]] = {}
    for path in dict.fromkeys(paths):
        try:
            found = _read(path)
        except RecursionError as error:
            raise ConfigurationError(
                f"{path}:1: an alias in it refers to itself",
                hint="Remove the alias, or name what it stands for.",
            ) from error
        default = found.default or default
        for name, properties in found.catalogs.items():
            known = catalogs.get(name, {})
            if any(map(_PLACE.search, properties)):
                kept = {key: value for key, value in known.items() if not is_secret(key)}
                if len(kept) < len(known):
                    text = "secrets of catalog %s are not used: %s says where it is"
                    _LOG.warning(text, name, path)
                known = kept
            catalogs[name] = {**known, **properties}
    return CatalogFile(default, catalogs)


def _own_text(path: Path, *, is_here: bool) -> str:
    """Read a file that no other user can have written, root aside.

    Args:
        is_here: Whether it is in the working directory. Folders above another one are not looked
            at: the user named it, and containers mount it below folders open to everybody.
    """
    name = path.lstat()
    # to open a FIFO would wait for a writer
    at_once = lambda place, flags: os.open(place, flags | os.O_NONBLOCK)  # noqa: E731
    with open(path, "rb", opener=at_once) as file:
        status = os.fstat(file.fileno())
        again = path.lstat()
        is_same = (name.st_ino, name.st_ctime_ns) == (again.st_ino, again.st_ctime_ns)
        is_shared = may_be_written(file.fileno(), status)
        if is_own(name) and is_own(status) and is_same and not is_shared:
            part = open_part(path) if is_here else None
            if part is not None:
                raise ConfigurationError(
                    f"{path} is not read: others could exchange {part}, and with it what could "
                    "send your credentials anywhere",
                    hint="Take others' right to write there away (chmod go-w), or run icecomb in "
                    "another folder.",
                )
            content = file.read(_MOST_BYTES + 1)
            if len(content) <= _MOST_BYTES and stat.S_ISREG(status.st_mode):
                return content.decode("utf-8")
    raise ConfigurationError(
        f"{path} is not read: it belongs to user {status.st_uid}, others may write to it, or it is "
        "not a short text; it could send your credentials anywhere",
        hint="Make it yours alone (chown, chmod 600), or remove it; or "
        + ("run icecomb in another folder." if is_here else f"set {HOME} to another folder."),
    )


def _read(path: Path) -> CatalogFile:
    import yaml

    is_here = _is_somewhere() and path.parent == Path.cwd()
    try:
        root = yaml.compose(_own_text(path, is_here=is_here), Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise ConfigurationError(
            f"{path}:{line}: not valid YAML: {error.problem or error.context}",
            hint="Correct the file; it looks like `catalog: {lake: {uri: thrift://host:9083}}`",
        ) from error
    except (FileNotFoundError, NotADirectoryError):
        return CatalogFile()
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{path}:1: not valid YAML: {error}", hint="Correct the file: it is YAML in UTF-8."
        ) from error
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error.strerror or error}",
            hint="Check the permissions of the file.",
        ) from error
    if root is None:
        return CatalogFile()
    default = None
    catalogs: dict[str, dict[str, Setting]] = {}
    for key, node in _entries(path, root):
        if key == "default-catalog":
            default = Setting(_text(path, node), _position(path, node))
        elif key == "catalog":
            for name, properties in _entries(path, node):
                catalogs[name] = dict(_flat(path, "", properties))
        else:
            raise ConfigurationError(
                f"{_position(path, node)}: there is no setting {key!r}",
                hint=f"The top level has {' and '.join(_KEYS)}; properties stand below a catalog.",
            )
    return CatalogFile(default, catalogs)


def _entries(path: Path, node: yaml.Node) -> Iterator[tuple[str, yaml.Node]]:
    import yaml

    if isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null"):
        return
    if not isinstance(node, yaml.MappingNode):
        raise ConfigurationError(
            f"{_position(path, node)}: keys and values are expected here",
            hint="Write one key a line, as `uri: thrift://host:9083`, indented below its name.",
        )
    seen: set[str] = set()
    for key, value in node.value:
        name = _text(path, key)
        if name in seen:
            raise ConfigurationError(
                f"{_position(path, key)}: {name} stands here a second time",
                hint="Keep one of the two.",
            )
        seen.add(name)
        yield name, value


def _flat(path: Path, prefix: str, node: yaml.Node) -> Iterator[tuple[str, Setting]]:
    import yaml

    for key, value in _entries(path, node):
        if isinstance(value, yaml.MappingNode):
            yield from _flat(path, f"{prefix}{key}.", value)
        elif not value.tag.endswith(":null"):
            yield f"{prefix}{key}", Setting(_text(path, value), _position(path, value))


def _text(path: Path, node: yaml.Node) -> str:
    """Return a scalar as it was written, and a YAML boolean as ``true`` or ``false``."""
    import yaml

    if isinstance(node, yaml.SequenceNode):
        return ",".join(_text(path, item) for item in node.value)
    if not isinstance(node, yaml.ScalarNode):
        raise ConfigurationError(
            f"{_position(path, node)}: one value is expected here",
            hint="Write a text, a number, true or false, or a list of those.",
        )
    if node.tag.endswith(":bool"):
        truth = yaml.SafeLoader.bool_values[node.value.lower()]
        return str(truth).lower()
    return str(node.value)


def _position(path: Path, node: yaml.Node) -> str:
    return f"{path}:{node.start_mark.line + 1}"
