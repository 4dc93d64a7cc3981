"""The compose stack, without an engine: it refers to nothing that is not there, and icecomb reads its site files."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from icecomb.catalog.configuration.configuration import load_configuration
from icecomb.format.storage.hdfs.address import hadoop_properties, resolve_location

DOCKER = Path(__file__).resolve().parent.parent / "docker"
STACK = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES = STACK["services"]
TOP = {"name", "services", "configs", "volumes"}
KEYS = {
    *(
        "image",
        "build",
        "entrypoint",
        "command",
        "user",
        "environment",
        "configs",
        "volumes",
        "ports",
    ),
    *("depends_on", "healthcheck"),
}


def complaints(compose):
    """What the Compose Specification's own schema has against a file; empty if nothing."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run([*command, compose], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def wrong_bases(recipe, args):
    """The images that a recipe begins with, and that are no build argument, or have no fixed tag."""
    given = {**dict(re.findall(r"^ARG (\w+)=(\S+)", recipe, re.MULTILINE)), **args}
    wrong = []
    for image in re.findall(r"^FROM (\S+)", recipe, re.MULTILINE):
        named = re.sub(r"\$\{(\w+)\}", lambda found: str(given.get(found[1], "")), image)
        tag = r"[a-z0-9./-]+:(?!latest\b)[\w.-]+(@sha256:[0-9a-f]{64})?"
        if named == image or not re.fullmatch(tag, named):
            wrong.append(image)
    return wrong


DOCS = sorted((DOCKER.parent / "docs").glob("*.md"))
RECIPES = [
    *(path.read_text() for path in sorted(DOCKER.glob("*.dockerfile"))),
    *(
        text
        for page in DOCS
        for text in re.findall(r"```dockerfile\n(.*?)```", page.read_text(), re.DOTALL)
    ),
]


def test_an_image_has_a_tag_that_is_not_the_latest_and_may_be_given_by_its_digest():
    assert len(RECIPES) >= 3
    assert [wrong_bases(recipe, {}) for recipe in RECIPES] == [[] for _ in RECIPES]
    digest = "sha256:" + "0" * 64
    for image, wrong in {
        "debian": True,
        "debian:latest": True,
        f"debian:latest@{digest}": True,
        f"debian@{digest}": True,
        f"debian:12-slim@{digest}": False,
        "debian:12-slim": False,
    }.items():
        assert bool(wrong_bases("ARG BASE=x:1\nFROM ${BASE} AS one", {"BASE": image})) is wrong
    assert wrong_bases("FROM debian:12-slim", {}) == ["debian:12-slim"]


def test_it_is_valid_by_the_schema_of_compose_files(tmp_path):
    assert complaints(DOCKER / "compose.yaml") == ""
    wrong = tmp_path / "compose.yaml"
    wrong.write_text((DOCKER / "compose.yaml").read_text().replace("depends_on:", "depends-on:", 1))
    assert "depends-on" in complaints(wrong)


def test_the_whole_cluster_is_there():
    assert set(SERVICES) == {
        *("nn1", "nn2", "journal", "datanode", "warehouse", "postgres", "hms3", "hms4", "client"),
    }
    assert {key for key in STACK if not key.startswith("x-")} == TOP


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_pinned_and_refers_to_what_exists(name):
    service = SERVICES[name]
    assert set(service) <= KEYS
    # what is made here has no digest yet
    digest = "" if "build" in service else "@sha256:[0-9a-f]{64}"
    assert re.fullmatch(rf"[a-z/]+:\d+(\.\d+)+{digest}", service["image"])
    assert set(service.get("depends_on", ())) <= set(SERVICES)
    for config in service.get("configs", ()):
        assert (DOCKER / STACK["configs"][config["source"]]["file"]).is_file()
        assert config["target"].startswith("/")
    for volume in service.get("volumes", ()):
        source, target = volume.split(":")
        assert source in STACK["volumes"]
        assert target.startswith("/")
    for wait in (
        service.get("depends_on", {}) if isinstance(service.get("depends_on"), dict) else ()
    ):
        condition = service["depends_on"][wait]["condition"]
        assert condition != "service_healthy" or "healthcheck" in SERVICES[wait]
    if build := service.get("build"):
        folder = (DOCKER / build["context"]).resolve()
        text = (folder / build["dockerfile"]).read_text()
        args = build.get("args", {})
        assert set(re.findall(r"^ARG (\w+)", text, re.MULTILINE)) >= set(args)
        assert wrong_bases(text, args) == []


def test_ports_are_of_this_machine_only_and_differ():
    ports = [port.split(":") for service in SERVICES.values() for port in service.get("ports", ())]
    assert {host for host, _, _ in ports} == {"127.0.0.1"}
    assert len({port for _, port, _ in ports}) == len(ports)


def test_no_config_and_no_volume_is_left_over():
    used = {c["source"] for s in SERVICES.values() for c in s.get("configs", ())}
    assert used == set(STACK["configs"])
    kept = {v.split(":")[0] for s in SERVICES.values() for v in s.get("volumes", ())}
    assert kept == set(STACK["volumes"])


def test_its_site_files_lead_icecomb_to_all_its_name_nodes(monkeypatch):
    monkeypatch.setenv("HADOOP_CONF_DIR", str(DOCKER / "conf/hadoop"))
    properties = hadoop_properties({})
    for location in ("hdfs://ns1/warehouse", "/warehouse", "hdfs:///warehouse"):
        address = resolve_location(location, properties)
        assert address.name_nodes == ("nn1:9870", "nn2:9870")
        assert address.cluster == "hdfs://ns1"
    hosts = {value.split(":")[0] for key, value in properties.items() if "-address." in key}
    assert hosts | {properties["dfs.datanode.hostname"], "journal"} <= set(SERVICES)
    assert properties["dfs.namenode.shared.edits.dir"] == "qjournal://journal:8485/ns1"


@pytest.mark.parametrize("version", ["3", "4"])
def test_its_hive_files_name_the_metastore_and_the_warehouse(monkeypatch, version):
    monkeypatch.setenv("HIVE_CONF_DIR", str(DOCKER / f"conf/hive-{version}"))
    found = load_configuration("lake", {})
    assert found.type == "hive"
    assert found.properties["uri"] == f"thrift://hms{version}:9083"
    assert found.properties["warehouse"] == "hdfs://ns1/warehouse"
    database = f"CREATE DATABASE metastore{version};"
    assert database in (DOCKER / "conf/databases.sql").read_text()
