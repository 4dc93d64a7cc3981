"""No command tells a secret, whatever servers answer or fail to: each secret is a marker here."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pyarrow as pa
import pytest

from icecomb.catalog import Table, load_catalog
from icecomb.catalog.configuration.configuration import load_configuration
from icecomb.format.errors import IcecombError
from icecomb.format.storage.delegation_token import DelegationToken, token_file
from icecomb.format.storage.object_store import creation, rest_client
from tests.catalog.telling_servers import SilentServer, TellingMetastore, telling_listener
from tests.catalog.told import Told, command_line, commands, representations
from tests.peers.ports import closed_port
from tests.secret_settings import (
    HADOOP,
    HIVE,
    ICEBERG,
    PROXIES,
    VARIABLES,
    marker,
    with_login,
)

pytestmark = [
    pytest.mark.gate("runs every command against servers of three kinds"),
    pytest.mark.slow("runs every command against servers of three kinds"),
    # what this is about is told; a connection to a lying server may be left to the collector
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


class Store(NamedTuple):
    """Settings of a catalog with secrets; `{host}` is the server.

    Attributes:
        is_proxied: Whether the server is the proxy that the environment names.
    """

    settings: dict[str, str]
    warehouse: str
    is_proxied: bool = False


AZURE = "abfs://box@account.dfs.core.windows.net/w"
PLAIN = {"adls.blob-storage-scheme": "http"}
HERE = {**PLAIN, "adls.account-host": "{host}"}
KEYS = {
    key: marker(key) for key in ("s3.access-key-id", "s3.secret-access-key", "s3.session-token")
}
SIGNED = f"sv=1&sig={quote(marker('sig'), safe='')}&se=2"
STORES = {
    "a metastore": Store({"uri": "thrift://{host}", "ugi": f"me:{3 * marker('ugi')}"}, "{folder}"),
    "a metastore with a login in its address": Store(
        {"uri": with_login("thrift://{host}", "uri")}, "{folder}"
    ),
    "a metastore that wants a token": Store(
        {"uri": "thrift://{host}", "hive.metastore.sasl.enabled": "true"}, "{folder}"
    ),
    "webhdfs": Store({"hdfs.delegation-token": marker("hdfs")}, "webhdfs://{host}/w"),
    "two name nodes": Store(
        {
            "hdfs.delegation-token": marker("hdfs"), "dfs.nameservices": "ns",
            "dfs.ha.namenodes.ns": "a,b", "dfs.namenode.http-address.ns.a": "{host}",
            "dfs.namenode.http-address.ns.b": "{host}",
        },
        "hdfs://ns/w",
    ),
    "azure by a key": Store({**HERE, "adls.account-key": marker("adls.account-key")}, AZURE),
    "azure by a signature": Store({**HERE, "adls.sas-token": SIGNED}, AZURE),
    "azure by a token": Store({**HERE, "adls.token": marker("adls.token")}, AZURE),
    "azure by a connection string": Store(
        {
            "adls.connection-string": f"BlobEndpoint=http://{{host}};AccountName=account;"
            f"AccountKey={marker('connection')}",
        },
        AZURE,
    ),
    "azure by a secret of a client": Store(
        {**HERE, "adls.client-secret": marker("client"), "adls.client-id": "c", "adls.tenant-id": "t"},
        AZURE,
    ),
    "azure by Hadoop's settings": Store(
        {**HERE, "fs.azure.account.key": marker("fs.azure.account.key")}, AZURE
    ),
    "google": Store(
        {"gcs.service.host": "http://{host}", "gcs.oauth2.token": marker("gcs")}, "gs://box/w"
    ),
    "s3": Store({"s3.endpoint": "http://{host}", **KEYS}, "s3://box/w"),
    "s3 by Hadoop's settings": Store({"fs.s3a.endpoint": "http://{host}"}, "s3a://box/w"),
    "s3 behind a proxy": Store(
        {"s3.endpoint": "http://s3.invalid", "s3.proxy-uri": with_login("{host}", "proxy"), **KEYS},
        "s3://box/w",
    ),
    "s3 behind Hadoop's proxy": Store(
        {
            "s3.endpoint": "http://s3.invalid", **KEYS, "fs.s3a.proxy.host": "127.0.0.1",
            "fs.s3a.proxy.port": "{port}", "fs.s3a.proxy.username": "me",
        },
        "s3://box/w",
    ),
    "s3 with a login in its address": Store(
        {"s3.endpoint": with_login("{host}", "s3.endpoint"), **KEYS}, "s3://box/w"
    ),
    "s3 behind the environment's proxy": Store(
        {"s3.endpoint": "http://s3.invalid", **KEYS}, "s3://box/w", is_proxied=True
    ),
    "azure behind the environment's proxy": Store(
        {**PLAIN, "adls.account-host": "azure.invalid", "adls.sas-token": SIGNED}, AZURE, is_proxied=True
    ),
    "google behind the environment's proxy": Store(
        {"gcs.service.host": "http://google.invalid", "gcs.oauth2.token": marker("gcs")},
        "gs://box/w", is_proxied=True,
    ),
    "webhdfs behind the environment's proxy": Store(
        {"hdfs.delegation-token": marker("hdfs")}, "webhdfs://hdfs.invalid:9870/w", is_proxied=True
    ),
    "a location with a signature": Store(
        {**HERE, "adls.sas-token": SIGNED}, f"{AZURE}/x?{SIGNED}"
    ),
    "a location with a login": Store(
        {"s3.endpoint": "http://{host}", **KEYS}, with_login("s3://box/w", "location")
    ),
}  # fmt: skip
REST = pytest.mark.full(
    "the gate tries a fourth of the stores with these servers, and all commands"
)
HURRIED = {
    "io.object-store.max-attempts": "1",
    "dfs.client.failover.max.attempts": "1",
    "dfs.webhdfs.socket.read-timeout": "20ms",
    "s3.request-timeout": "20ms",
    "s3.connect-timeout": "1s",
    "hive.metastore.client.socket.timeout": "20ms",
    "hive.metastore.client.connect.timeout-s": "10ms",
}
REFUSED = ("fs.azure.encryption.", "fs.gs.encryption.", "fs.s3a.encryption.", "fs.s3a.server-side-")
"""Keys of encryption, with which stores are refused before they are asked."""
BOUND = ("adls.", "gcs.", "s3.", "client.")
"""Settings by which stores choose how to log in."""
LINKED = {("demo",): "runs a Spark", ("completion",): "is given no catalog"}
"""Commands that are not tried, and why."""
PATIENT = {"two name nodes": "the metrics of each are waited for ten seconds, whatever is set"}
"""Stores that are not tried slow, and why."""
EACH = [words for words in commands() if words not in LINKED]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Told]:
    root, told = logging.getLogger(), Told(monkeypatch, capfd)
    before = root.level
    root.addHandler(told)
    root.setLevel(logging.DEBUG)
    # Google's sends records to no others unless it has handlers of its own
    monkeypatch.setattr(logging.getLogger("google"), "handlers", [told])
    yield told
    root.removeHandler(told)
    root.setLevel(before)


def site(names: tuple[str, ...]) -> str:
    """A configuration file of Hadoop's, with a marker for each name."""
    rows = [f"<property><name>{n}</name><value>{marker(n)}</value></property>" for n in names]
    return f"<configuration>{''.join(rows)}</configuration>"


FAKE = """#!/bin/sh
echo "$0 $*" >> {record}
env >> {record}
case "$*" in *-version*) echo 'openjdk version "17.0.1"' >&2; exit 0;; esac
exit 1
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the configuration of a cluster, and with programs that keep what they get.

    All settings and variables whose names sound secret are markers.
    """
    conf, programs = tmp_path / "conf", tmp_path / "bin"
    for folder in (conf, programs, tmp_path / "w"):
        folder.mkdir()
    hadoop = tuple(name for name in HADOOP if not name.startswith(REFUSED))
    (conf / "core-site.xml").write_text(site(hadoop))
    (conf / "hive-site.xml").write_text(site(HIVE))
    token = DelegationToken(b"id", marker("token").encode(), "")
    (tmp_path / "tokens").write_bytes(token_file(token, "HIVE_DELEGATION_TOKEN"))
    for name in ("java", "javac", "ps"):
        (programs / name).write_text(FAKE.format(record=tmp_path / "children"))
        (programs / name).chmod(0o755)
    for name in VARIABLES:
        monkeypatch.setenv(name, marker(name))
    for name in (*PROXIES, "JAVA_HOME", "AWS_PROFILE", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "HADOOP_CONF_DIR": str(conf),
        "HIVE_CONF_DIR": str(conf),
        "HADOOP_TOKEN_FILE_LOCATION": str(tmp_path / "tokens"),
        "ICECOMB_HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "ICECOMB_CATALOG__LAKE__HEADER__X_API_KEY": marker("header.x-api-key"),
        "PATH": f"{programs}:{os.environ['PATH']}",
    }.items():
        monkeypatch.setenv(name, value)
    return tmp_path


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve = socket.getaddrinfo

    def only_here(host: Any, *others: Any, **more: Any) -> Any:
        if host != "127.0.0.1":
            raise socket.gaierror(host)
        return resolve(host, *others, **more)

    monkeypatch.setattr(socket, "getaddrinfo", only_here)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr(creation, "FIRST_S", 0.0)
    monkeypatch.setattr(rest_client, "ANSWER_S", 0.02)


def configure(home: Path, store: Store, address: str) -> dict[str, str]:
    """Write icecomb.yaml with a catalog `lake` of a store; return its settings."""
    others = {name: marker(name) for name in ICEBERG if not name.startswith(BOUND)}
    kind = {} if "uri" in store.settings else {"type": "hadoop"}
    settings = {**others, **HURRIED, **kind, **store.settings, "warehouse": store.warehouse}
    names = {"{host}": address, "{port}": address.rpartition(":")[2], "{folder}": f"{home}/w"}
    for name, value in names.items():
        settings = {key: text.replace(name, value) for key, text in settings.items()}
    file = home / "icecomb.yaml"
    file.write_text(json.dumps({"catalog": {"lake": settings}}))
    file.chmod(0o600)
    return settings


def serve(kind: str, store: Store, stack: ExitStack) -> str:
    """Start a server, or none; return its address."""
    if kind == "down":
        return f"127.0.0.1:{stack.enter_context(closed_port())}"
    server: Any = SilentServer()
    if kind == "lying":
        server.close()
        server = TellingMetastore() if "uri" in store.settings else telling_listener()
    stack.callback(server.close)
    return str(server.address)


def values(warehouse: str, table: str = "db.t") -> dict[str, str]:
    """The arguments of commands on a table."""
    folder = f"{warehouse}/{table.replace('.', '/')}"
    return {
        **dict.fromkeys(("table", "tables", "view", "source"), table),
        "namespace": table.partition(".")[0],
        "metadata_file": f"{folder}/metadata/v1.metadata.json",
        "source_prefix": folder,
        "target_prefix": f"{folder}-2",
        "target": f"{table}_2",
        "older_than": "1d",
        "to_snapshot": "1",
        "name": "x",
    }


@pytest.mark.parametrize(
    ("kind", "share"),
    [
        ("down", 4),
        ("slow", 4),
        ("lying", 1),
        pytest.param("down", 1, marks=REST),
        pytest.param("slow", 1, marks=REST),
    ],
)
def test_no_command_tells_a_secret(
    kind: str, share: int, home: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = [name for name in STORES if kind != "slow" or name not in PATIENT]
    tried = tried[::share]
    for turn, name in enumerate(tried):
        store = STORES[name]
        with ExitStack() as stack:
            address = serve(kind, store, stack)
            settings = configure(home, store, address)
            for variable in PROXIES:
                if store.is_proxied:
                    monkeypatch.setenv(variable, with_login(address, "variable"))
                else:
                    monkeypatch.delenv(variable, raising=False)
            given = values(settings["warehouse"])
            if share == 1:
                told.run(name, "--catalog", "lake", "doctor")
            for number, words in enumerate(EACH):
                if number % len(tried) == turn:
                    told.run(name, "--catalog", "lake", *command_line(words, given))
    assert told.found == []


@pytest.fixture
def table(home: Path) -> Iterator[Table]:
    """A table in a folder of this machine, in the warehouse of the catalogs."""
    with closing(load_catalog("made", type="hadoop", warehouse=str(home / "w"))) as catalog:
        catalog.create_namespace("db")
        rows = pa.table({"id": [1, 2, 3]})
        made = catalog.create_table("db.t", rows.schema)
        made.append(rows)
        made.append(rows)
        yield made


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_command_that_does_its_work_tells_a_secret(
    form: str, home: Path, told: Told, table: Table
) -> None:
    store = Store({"type": "hadoop", **KEYS, "ugi": f"me:{3 * marker('ugi')}"}, str(home / "w"))
    configure(home, store, "127.0.0.1:1")
    given = {**values(store.warehouse), "to_snapshot": str(table.snapshots()[0].snapshot_id)}
    said = {
        words: told.run(
            "folders", "--catalog", "lake", "--output", form, *command_line(words, given)
        )
        for words in EACH
        if words != ("drop",)
    }
    assert len([text for text in said.values() if "error" not in text]) > 20
    doctor = told.run("folders", "--catalog", "lake", "--output", form, "doctor")
    assert {"s3.secret-access-key", "fs.s3a.proxy.password", "ugi"} <= {
        *re.findall(r"[\w.-]+", doctor)
    }
    assert told.found == []


def test_no_command_tells_a_secret_of_the_store_that_a_tables_metadata_names(
    home: Path, told: Told, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores = {name: store for name, store in STORES.items() if "uri" not in store.settings}
    newest = Path(table.metadata_location.removeprefix("file://"))
    folder = newest.parent.parent
    asked = 0
    for turn, (name, store) in enumerate(stores.items()):
        with ExitStack() as stack:
            server = telling_listener()
            stack.callback(server.close)
            with_files = store._replace(warehouse=str(home / "w"))
            configure(home, with_files, server.address)
            for variable in PROXIES:
                if store.is_proxied:
                    monkeypatch.setenv(variable, with_login(server.address, "variable"))
                else:
                    monkeypatch.delenv(variable, raising=False)
            place = store.warehouse.replace("{host}", server.address)
            # of a table whose metadata was read another store would be asked
            copy = shutil.copytree(folder, folder.with_name(f"t{turn}")) / "metadata" / newest.name
            moved = re.sub(r'("manifest-list": ?")[^"]*/', rf"\g<1>{place}/", newest.read_text())
            copy.write_text(moved)
            given = values(with_files.warehouse, f"db.t{turn}")
            for number, words in enumerate(EACH):
                if number % len(stores) == turn or words == ("head",):
                    told.run(name, "--catalog", "lake", *command_line(words, given))
            asked += len(server.requests)
    assert asked >= len(stores) - 4
    assert told.found == []


def test_no_object_shows_a_secret(home: Path, told: Told) -> None:
    seen = set()
    for name, store in STORES.items():
        with ExitStack() as stack:
            address = serve("lying", store, stack)
            configure(home, store, address)
            things: list[object] = [load_configuration("lake", {})]
            with suppress(IcecombError):
                catalog = load_catalog("lake")
                stack.callback(catalog.close)
                things.append(catalog)
                catalog.load_table("db.t")
            for kind, text in representations(things):
                seen.add(kind)
                told.look(f"{name}: {kind}", {"repr": text})
    assert {
        "Configuration",
        "Setting",
        "Properties",
        "FileIO",
        "HiveCatalog",
        "HadoopCatalog",
    } <= seen
    assert {"ConnectionSettings", "AzureClient", "S3FileSystem"} <= seen
    assert told.found == []
