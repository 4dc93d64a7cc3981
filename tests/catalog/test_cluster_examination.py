"""`icecomb doctor` on a warehouse in a real HDFS: each trouble is made, seen and named with its remedy."""

from __future__ import annotations

import json
import uuid

import pytest

from icecomb.catalog import cli
from icecomb.catalog.hadoop.cluster_examination import examine_cluster
from icecomb.catalog.report.finding import Severity
from tests.peers.hdfs import write_site
from tests.peers.listener import Listener
from tests.peers.webhdfs_proxy import WebHdfsProxy


@pytest.fixture
def warehouse(hdfs):
    path = f"/warehouse/{uuid.uuid4().hex}"
    hdfs.request("PUT", f"{path}?op=MKDIRS&permission=1777")
    return f"{hdfs.uri}{path}"


@pytest.fixture
def doctor(hdfs, monkeypatch, tmp_path, capfd):
    """Runs the command as a user with the cluster's own files: the exit code, and the findings by subject."""
    monkeypatch.setenv("ICECOMB_HOME", str(tmp_path))
    monkeypatch.setenv("HADOOP_USER_NAME", "alice")

    def run(warehouse, settings=None):
        write_site(tmp_path / "conf/core-site.xml", {"fs.defaultFS": hdfs.uri})
        write_site(tmp_path / "conf/hdfs-site.xml", settings or hdfs.client_settings)
        monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path / "conf"))
        (tmp_path / "icecomb.yaml").write_text(
            f"catalog:\n  lake:\n    type: hadoop\n    warehouse: {warehouse}\n"
        )
        capfd.readouterr()
        code = cli.main(["--catalog", "lake", "--output", "json", "doctor"])
        findings = json.loads(capfd.readouterr().out)["findings"]
        return code, [
            (one["level"], one["subject"], f"{one['message']} -> {one['remedy']}")
            for one in findings
        ]

    return run


def of(findings, subject):
    (found,) = [(level, text) for level, name, text in findings if name == subject]
    return found


def test_a_healthy_cluster_has_no_problem_and_its_facts_are_shown(
    doctor, hdfs, warehouse, tmp_path
):
    code, findings = doctor(warehouse)
    assert code == 0
    assert {level for level, _, _ in findings} == {"ok"}
    assert of(findings, "hdfs configuration")[1].startswith(
        f"read: {tmp_path}/conf/core-site.xml, {tmp_path}/conf/hdfs-site.xml"
    )
    assert f"127.0.0.1:{hdfs.http['nn1']} is active (answered in" in of(findings, "name node")[1]
    assert of(findings, "data nodes")[1].startswith("1 alive, ")
    assert "a call as alice takes" in of(findings, "latency")[1]
    assert "alice may read and write" in of(findings, "permission")[1]


def test_what_hinders_writers_is_named_with_its_remedy(doctor, hdfs, warehouse):
    path = warehouse.removeprefix(hdfs.uri)
    hdfs.dfsadmin("-setQuota", "1", path)
    hdfs.dfsadmin("-setSpaceQuota", "64m", path)
    hdfs.request("PUT", f"{path}?op=SETPERMISSION&permission=755")
    hdfs.dfsadmin("-safemode", "enter")
    try:
        code, findings = doctor(warehouse)
    finally:
        hdfs.dfsadmin("-safemode", "leave")
    assert code == 3
    assert of(findings, "safe mode")[0] == "problem"
    assert "hdfs dfsadmin -safemode leave" in of(findings, "safe mode")[1]
    level, said = of(findings, "permission")
    assert level == "problem"
    assert f"alice may not write in {path}" in said
    assert "hdfs:supergroup:drwxr-xr-x" in said
    assert f"-setfacl -R -m user:alice:rwx {path}" in said
    quotas = [text for level, name, text in findings if (level, name) == ("problem", "quota")]
    assert f"1 of the names quota 1 of {path} are used: no new file fits" in quotas[0]
    assert f"hdfs dfsadmin -setQuota <number> {path}" in quotas[0]
    assert f"0 B of the space quota 64 MiB of {path} are used: no new file fits" in quotas[1]


def test_a_warehouse_that_does_not_exist_is_judged_by_the_folder_above(doctor, hdfs):
    code, findings = doctor(f"{hdfs.uri}/elsewhere/lake")
    assert code == 3
    level, said = of(findings[:-1], "warehouse")
    assert level == "note"
    assert f"{hdfs.uri}/elsewhere/lake does not exist; the first table creates it" in said
    assert "alice may not write in /: " in of(findings, "permission")[1]


def test_of_two_name_nodes_the_active_one_and_the_one_that_is_down_are_named(
    doctor, hdfs, warehouse
):
    proxy = WebHdfsProxy(f"127.0.0.1:{hdfs.http['nn1']}")
    two = {
        "dfs.nameservices": "ns1",
        "dfs.ha.namenodes.ns1": "nn1,nn2",
        "dfs.namenode.http-address.ns1.nn1": "127.0.0.1:1",
        "dfs.namenode.http-address.ns1.nn2": proxy.address,
    }
    lake = f"hdfs://ns1{warehouse.removeprefix(hdfs.uri)}"
    code, findings = doctor(lake, two)
    nodes = [(level, text) for level, name, text in findings if name == "name node"]
    assert code == 0
    assert nodes[0][0] == "warning"
    assert "127.0.0.1:1" in nodes[0][1]
    assert nodes[1][0] == "ok"
    assert f"{proxy.address} is active" in nodes[1][1]
    proxy.close()
    code, findings = doctor(lake, {**two, "dfs.namenode.http-address.ns1.nn2": "127.0.0.1:2"})
    assert code == 3
    assert [level for level, name, _ in findings if name == "name node"] == ["problem", "problem"]


def test_what_cannot_be_reached_is_told_in_plain_words(doctor, hdfs, warehouse):
    path = warehouse.removeprefix(hdfs.uri)
    rpc = f"127.0.0.1:{hdfs.rpc['nn1']}"
    for lake, settings, subject, words in [
        (
            f"hdfs://ns1{path}",
            {"a": "b"},
            "name node",
            "ns1:9870: the host name is unknown; if it is",
        ),
        (
            "hdfs://x.invalid/a",
            {"a": "b"},
            "name node",
            "x.invalid:9870: the host name is unknown ->",
        ),
        (
            "webhdfs://127.0.0.1:1/a",
            {"a": "b"},
            "name node",
            "127.0.0.1:1: Connection refused -> start",
        ),
        (f"webhdfs://{rpc}{path}", {"a": "b"}, "warehouse", "HTTP request to a Hadoop IPC port"),
    ]:
        code, findings = doctor(lake, settings)
        level, said = of(findings, subject)
        assert (code, level) == (3, "problem")
        assert words in said


def test_a_user_name_that_the_cluster_does_not_take_is_a_problem(doctor, warehouse, monkeypatch):
    monkeypatch.setenv("HADOOP_USER_NAME", "no/such user")
    code, findings = doctor(warehouse)
    assert code == 3
    assert "rejects this user name: set hdfs.user" in of(findings, "warehouse")[1]


def test_configuration_that_names_no_such_cluster_is_a_problem(doctor, hdfs):
    code, findings = doctor("hdfs://other/lake", {"dfs.nameservices": "ns1"})
    assert code == 3
    assert "no nameservice of this name; dfs.nameservices has ns1" in of(findings, "hdfs")[1]


def test_an_examination_ends_where_the_root_folder_is_gone():
    answered = []

    def answer(_, path):
        kind = {"Content-Type": "application/json"}
        if "op=GETFILESTATUS" not in path:
            return 200, kind, b'{"beans":[{"State":"active"}]}'
        answered.append(path)
        # there as long as the latency is measured
        if len(answered) <= 5:
            known = {"pathSuffix": "", "type": "DIRECTORY", "length": 0, "modificationTime": 1}
            return 200, kind, json.dumps({"FileStatus": {**known, "fileId": 1}}).encode()
        told = {"exception": "FileNotFoundException", "message": "no"}
        return 404, kind, json.dumps({"RemoteException": told}).encode()

    server = Listener(answer)
    findings = [*examine_cluster({}, f"webhdfs://{server.address}/a/b")]
    server.close()
    assert findings[-1].severity is Severity.PROBLEM
    assert len(answered) == 8


@pytest.mark.parametrize("odd", ['"many"', "1e999", "1.5", "null"])
def test_a_number_of_a_folder_that_is_not_one_is_the_name_nodes_problem(odd):
    def answer(_, path):
        kind = {"Content-Type": "application/json"}
        if "op=GETCONTENTSUMMARY" in path:
            told = f'{{"directoryCount":1,"fileCount":{odd},"spaceConsumed":0}}'
            return 200, kind, f'{{"ContentSummary":{told}}}'.encode()
        if "op=" not in path:
            return 200, kind, b'{"beans":[{"State":"active"}]}'
        known = {"pathSuffix": "", "type": "DIRECTORY", "length": 0, "modificationTime": 1}
        return 200, kind, json.dumps({"FileStatus": {**known, "fileId": 1}}).encode()

    server = Listener(answer)
    findings = [*examine_cluster({}, f"webhdfs://{server.address}/a/b")]
    server.close()
    assert findings[-1].severity is Severity.PROBLEM
    assert "Cannot access" in findings[-1].message
