"""The sources of a catalog's settings.

The nearest source wins, key by key:

1. arguments of `load_catalog`, options of a command;
2. the environment: ``ICECOMB_CATALOG__<NAME>__<KEY>`` sets a property of the catalog NAME; the key
   is written in upper case, ``_`` stands for ``-`` and ``__`` for ``.``:
   ``ICECOMB_CATALOG__LAKE__URI``. Any key may also be given in its own spelling,
   ``ICECOMB_CATALOG__LAKE__engine.hive.lock-enabled``;
3. ``icecomb.yaml`` in the working directory, then the one in ``ICECOMB_HOME`` or in the user's
   configuration folder (see below);
4. the cluster's own files in ``HADOOP_CONF_DIR`` and ``HIVE_CONF_DIR``, or in the folders that the
   settings ``hadoop-conf-dir`` and ``hive-conf-dir`` name: ``hive.metastore.uris`` is the ``uri``,
   ``hive.metastore.warehouse.dir`` the ``warehouse``.

A catalog starts a metastore of its own only if its name is ``local`` or it has ``type: local``.
Names of properties that nearly match one are refused (see `catalog_property`).

A catalog named ``local``, and one of another type than ``hive``, takes no metastore from the
cluster's files: only their settings of file systems.

The file ``icecomb.yaml``: catalogs and their properties, in the shape of PyIceberg's own file.

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
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from icecomb.catalog.configuration.catalog_property import (
    HADOOP_CONF_DIR,
    HIVE_CONF_DIR,
    MEANING,
    Properties,
    Setting,
    check_names,
)
from icecomb.format.errors import ConfigurationError
from icecomb.format.private_path import may_be_written, open_part
from icecomb.format.process import is_own
from icecomb.format.property.property import similar
from icecomb.format.secret import is_secret, shown

if TYPE_CHECKING:
    import yaml


PREFIX: Final = "ICECOMB_CATALOG__"
DEFAULT_CATALOG: Final = "ICECOMB_DEFAULT_CATALOG"
TYPES: Final = ("hadoop", "hive", "local")
LOCAL: Final = "local"

_SITE_FILES: Final = (
    ("core-site.xml", "hdfs-site.xml"),
    ("core-site.xml", "hive-site.xml", "hivemetastore-site.xml", "metastore-site.xml"),
)
_FILE_SYSTEMS: Final = ("fs.", "dfs.", "hadoop.", "ipc.", "mapreduce.job.hdfs-servers")
_METASTORE: Final = ("hive.metastore.", "metastore.", "iceberg.", "engine.hive.")


class Configuration:
    """The properties of one catalog.

    Args:
        name: The catalog's name.
        settings: The catalog's properties with their sources.
        known: Names of all configured catalogs, to suggest one.
    """

    def __init__(
        self, name: str, settings: Mapping[str, Setting], known: Iterable[str] = ()
    ) -> None:
        self.name = name
        self.settings = dict(settings)
        self._known = tuple(known)

    @property
    def properties(self) -> Properties:
        """The values without their sources."""
        return Properties({key: setting.value for key, setting in self.settings.items()})

    def under(self, stronger: Mapping[str, str], source: str) -> Configuration:
        """Return a copy with settings that override all of these."""
        known = {key: Setting(value, source) for key, value in stronger.items()}
        return Configuration(self.name, {**self.settings, **known}, self._known)

    def over(self, defaults: Mapping[str, str], source: str) -> Configuration:
        """Return a copy with default settings, which all of these override."""
        known = {key: Setting(value, source) for key, value in defaults.items()}
        return Configuration(self.name, {**known, **self.settings}, self._known)

    @property
    def sources(self) -> Iterator[tuple[str, str, str]]:
        """Key, value for people (secrets hidden) and source of each setting, sorted by key."""
        for key, setting in sorted(self.settings.items()):
            yield key, shown(key, setting.value), setting.source

    @property
    def says_where(self) -> bool:
        """Whether its name (``local``), a type or a metastore locates its tables."""
        return self.name == LOCAL or not self.settings.keys().isdisjoint(("type", "uri"))

    @property
    def type(self) -> str:
        """The kind of catalog: as configured, else ``hive`` with a ``uri``.

        ``local`` must be the name or the type: a misspelled name starts no metastore.

        Raises:
            ConfigurationError: If no setting tells it, or there is no such type.
        """
        properties = self.properties
        if not self.says_where:
            raise self._unconfigured()
        kind = properties.get("type", "hive" if "uri" in properties else LOCAL).lower()
        if kind not in TYPES:
            source = self.settings["type"].source
            raise ConfigurationError(
                f"Catalog {self.name}: there is no catalog type {kind!r} ({source})",
                hint=f"One of {', '.join(TYPES)}.",
            )
        return kind

    def _unconfigured(self) -> ConfigurationError:
        own = [setting.source for _, setting in sorted(self.settings.items())]
        some = f" (only other settings of it are known, such as from {own[0]})" if own else ""
        meant = similar(self.name, [one for one in self._known if one != self.name])
        others = f"Did you mean {' or '.join(meant)}? " if meant else ""
        return ConfigurationError(
            f"Catalog {self.name} is not configured: nothing says where its metastore is{some}",
            hint=f"{others}Name it by uri=thrift://host:9083, or choose type=hadoop with a "
            "warehouse, or type=local for a metastore of your own.",
        )


def load_configuration(
    name: str,
    arguments: Mapping[str, object],
    environment: Mapping[str, str] | None = None,
    hadoop: Mapping[str, str] | None = None,
) -> Configuration:
    """Load a catalog's configuration; the name's case does not matter in the environment.

    Args:
        arguments: The caller's settings; None means not set.
        environment: Environment variables; default the process's own.
        hadoop: Hadoop's configuration as another program has it: it overrides the cluster's own
            files here.
    """
    variables = os.environ if environment is None else environment
    catalogs = read_catalog_files(catalog_file_paths(variables)).catalogs
    near = {
        **catalogs.get(name, {}),
        **_from_environment(name, variables),
        **{
            key: Setting(_text(value), "argument")
            for key, value in arguments.items()
            if value is not None
        },
    }
    check_names(name, near)
    kind = near["type"].value.lower() if "type" in near else None
    remote = kind == "hive" or (kind is None and (name != LOCAL or "uri" in near))
    prefixes = (*_FILE_SYSTEMS, *(_METASTORE if remote else ()))
    far = {
        **_from_site_files(near, prefixes, variables),
        **_meant({key: Setting(text, "Spark") for key, text in (hadoop or {}).items()}, prefixes),
    }
    return Configuration(name, {**far, **near}, {*catalogs, *_names(variables), LOCAL})


def catalog_name(arguments: Mapping[str, object]) -> str:
    """Return the name of the catalog to open if none is named.

    It is ``default`` if the arguments themselves locate it, else that of `default_catalog`.
    """
    placed = any(arguments.get(key) is not None for key in ("uri", "type"))
    return "default" if placed else default_catalog().value


def default_catalog(environment: Mapping[str, str] | None = None) -> Setting:
    """Return the catalog that commands open when none is named.

    It is the one of ``ICECOMB_DEFAULT_CATALOG``, else ``default-catalog`` of ``icecomb.yaml``, else
    ``default`` where that is configured or the cluster's files name a metastore, else ``local``.
    """
    variables = os.environ if environment is None else environment
    if named := variables.get(DEFAULT_CATALOG):
        return Setting(named, DEFAULT_CATALOG)
    if chosen := read_catalog_files(catalog_file_paths(variables)).default:
        return chosen
    settings = load_configuration("default", {}, variables).settings
    if where := settings.get("uri") or settings.get("type"):
        return Setting("default", where.source)
    return Setting(LOCAL, "built in")


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


def _names(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the catalogs that variables configure, in lower case."""
    for variable in environment:
        if variable.upper().startswith(PREFIX):
            yield variable[len(PREFIX) :].partition("__")[0].lower()


def _from_site_files(
    near: Mapping[str, Setting], prefixes: tuple[str, ...], environment: Mapping[str, str]
) -> dict[str, Setting]:
    from icecomb.format.storage.site_file import read_site_files, resolve, site_folders

    named = (near.get(known.key) for known in (HADOOP_CONF_DIR, HIVE_CONF_DIR))
    folders = [
        Path(chosen.value).expanduser() if chosen else found
        for chosen, found in zip(named, site_folders(environment), strict=True)
    ]
    found = read_site_files(
        folder / file
        for folder, files in zip(folders, _SITE_FILES, strict=True)
        if folder is not None
        for file in files
    )
    stated = {
        key: Setting(resolve(found, key, environment), one.source)
        for key, one in found.items()
        if key.startswith(prefixes)
    }
    return _meant(stated, prefixes)


def _meant(stated: Mapping[str, Setting], prefixes: tuple[str, ...]) -> dict[str, Setting]:
    """Map Hadoop's and Hive's settings to those of a catalog."""
    settings: dict[str, Setting] = {}
    for key, one in stated.items():
        if key.startswith(prefixes) and one.value:
            settings[key] = one
            if meaning := MEANING.get(key):
                settings[meaning] = one
    return settings


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


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
            default = Setting(_file_text(path, node), _position(path, node))
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
        name = _file_text(path, key)
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
            yield f"{prefix}{key}", Setting(_file_text(path, value), _position(path, value))


def _file_text(path: Path, node: yaml.Node) -> str:
    """Return a scalar as it was written, and a YAML boolean as ``true`` or ``false``."""
    import yaml

    if isinstance(node, yaml.SequenceNode):
        parts, size = [], 0
        for item in node.value:
            parts.append(_file_text(path, item))
            size += len(parts[-1]) + 1
            if size > _MOST_BYTES:  # aliases may stand for each other again and again
                raise ConfigurationError(
                    f"{_position(path, node)}: the list is longer than {_MOST_BYTES} characters",
                    hint="Look at the aliases in it: they stand for lists of lists.",
                )
        return ",".join(parts)
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
