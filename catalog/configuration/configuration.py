"""The sources of a catalog's settings.

The nearest source wins, key by key:

1. arguments of `load_catalog`, options of a command;
2. the environment: ``ICECOMB_CATALOG__<NAME>__<KEY>`` sets a property of the catalog NAME; the key
   is written in upper case, ``_`` stands for ``-`` and ``__`` for ``.``:
   ``ICECOMB_CATALOG__LAKE__URI``. Any key may also be given in its own spelling,
   ``ICECOMB_CATALOG__LAKE__engine.hive.lock-enabled``;
3. ``icecomb.yaml`` in the working directory, then the one in ``ICECOMB_HOME`` or in the user's
   configuration folder (see `catalog_file`);
4. the cluster's own files in ``HADOOP_CONF_DIR`` and ``HIVE_CONF_DIR``, or in the folders that the
   settings ``hadoop-conf-dir`` and ``hive-conf-dir`` name: ``hive.metastore.uris`` is the ``uri``,
   ``hive.metastore.warehouse.dir`` the ``warehouse``.

A catalog starts a metastore of its own only if its name is ``local`` or it has ``type: local``.
Names of properties that nearly match one are refused (see `catalog_property`).

A catalog named ``local``, and one of another type than ``hive``, takes no metastore from the
cluster's files: only their settings of file systems.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from icecomb.catalog.configuration.catalog_property import (
    HADOOP_CONF_DIR,
    HIVE_CONF_DIR,
    MEANING,
    Properties,
    Setting,
    check_names,
)
from icecomb.format.errors import ConfigurationError
from icecomb.format.property.property import shown, similar

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
    from icecomb.catalog.configuration.catalog_file import catalog_file_paths, read_catalog_files

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
    from icecomb.catalog.configuration.catalog_file import catalog_file_paths, read_catalog_files

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
