"""The planner process as the bridge sees it: a port line, a token, JSON lines, an end with stdin."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from icecomb.format.errors import NoSuchTableError
from icecomb.spark.planner.transport import Server, answer

TOKEN = "5ec7e7"  # noqa: S105 - of a planner that lives for one test


@contextmanager
def planner(code="from icecomb.spark.planner.__main__ import main; main()", **environment):
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd="/",
        env={**os.environ, "ICECOMB_PLANNER_TOKEN": TOKEN, **environment},
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            pipe.close()


class Connection:
    def __init__(self, port, token=TOKEN):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=300)
        self.lines = self.socket.makefile("rw")
        self.lines.write(token + "\n")

    def ask(self, method, **params):
        self.lines.write(json.dumps({"id": 7, "method": method, "params": params}) + "\n")
        self.lines.flush()
        return json.loads(self.lines.readline() or "null")

    def close(self):
        self.lines.close()
        self.socket.close()


@pytest.fixture
def server() -> Iterator[Server]:
    def fail(_params):
        raise NoSuchTableError("no table db.t", hint="SHOW TABLES")

    def crash(_params):
        return {}["x"]

    handlers = {
        "echo": lambda params: params,
        "fail": fail,
        "crash": crash,
        "nan": lambda _: float("nan"),
    }
    server = Server(handlers, TOKEN)
    server.start()
    yield server
    server.close()


def test_the_planner_says_its_port_and_answers_several_connections():
    with planner() as process:
        greeting = json.loads(process.stdout.readline())
        assert greeting["protocol"] == 1
        connections = [Connection(greeting["port"]) for _ in range(3)]
        errors = [c.ask("no_such_method")["error"] for c in connections]
        for connection in connections:
            connection.close()
    assert {e["type"] for e in errors} == {"ValueError"}
    assert "different versions" in errors[0]["message"]


def test_the_planner_ends_when_its_stdin_ends_even_with_open_connections():
    with planner() as process:
        connection = Connection(json.loads(process.stdout.readline())["port"])
        connection.ask("no_such_method")
        process.stdin.close()
        assert process.wait(300) == 0
        connection.close()


def test_whatever_is_printed_goes_to_stderr_and_not_into_the_protocol():
    code = (
        "import os, icecomb.spark.planner.__main__ as m; real = m.handlers;"
        "m.handlers = lambda: {'noisy': lambda p: (print('from python'), os.system('echo from a child'), 1)[2]};"
        "m.main()"
    )
    with planner(code, PYTHONUNBUFFERED="1") as process:
        connection = Connection(json.loads(process.stdout.readline())["port"])
        assert connection.ask("noisy") == {"id": 7, "result": 1}
        connection.close()
        process.stdin.close()
        process.wait(300)
        assert process.stdout.read() == ""
        assert {"from python", "from a child"} <= set(process.stderr.read().split("\n"))


def test_a_planner_without_a_token_says_who_starts_planners():
    with planner(ICECOMB_PLANNER_TOKEN="") as process:
        out, err = process.communicate(timeout=300)
    assert out == ""
    assert "started by icecomb's bridge" in err


def test_a_wrong_token_gets_no_answer_at_all(server):
    connection = Connection(server.port, TOKEN[:-1])
    with suppress(ConnectionError):
        assert connection.ask("echo") is None
    connection.close()


def test_an_error_travels_with_type_message_and_hint(server):
    connection = Connection(server.port)
    assert connection.ask("fail") == {
        "id": 7,
        "error": {"type": "NoSuchTableError", "message": "no table db.t", "hint": "SHOW TABLES"},
    }
    assert connection.ask("echo", a="ä\u2028\ud800")["result"] == {"a": "ä\u2028\ud800"}
    connection.close()


def test_an_unexpected_error_is_an_answer_without_a_trace(server):
    connection = Connection(server.port)
    error = connection.ask("crash")["error"]
    assert error["type"] == "KeyError"
    assert "Traceback" not in json.dumps(error)
    assert connection.ask("echo") == {"id": 7, "result": {}}
    connection.close()


@pytest.mark.parametrize(
    "line", [b"{", b"[]", b'{"id": 1}', b'{"id":1,"method":"nan","params":{}}']
)
def test_a_line_that_makes_no_sense_is_answered_by_an_error(line):
    parsed = json.loads(answer({"nan": lambda _: float("nan")}, line))
    assert parsed["error"]["message"].startswith("icecomb's planner failed")


@pytest.mark.parametrize("trace", ["", "1"])
def test_traces_are_in_the_log_when_asked_for_and_never_else(trace):
    with planner(ICECOMB_TRACE=trace) as process:
        connection = Connection(json.loads(process.stdout.readline())["port"])
        connection.ask("plan_scan")
        connection.close()
        process.stdin.close()
        process.wait(300)
        assert ("Traceback" in process.stderr.read()) == bool(trace)
