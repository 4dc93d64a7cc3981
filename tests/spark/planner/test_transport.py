"""The planner process as the bridge sees it: a port line, a token, JSON lines, an end with stdin."""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from icecomb.format.cancellation import Cancellation, pause
from icecomb.format.errors import NoSuchTableError, OperationCanceledError
from icecomb.spark.planner import transport
from icecomb.spark.planner.protocol.message import PROTOCOL
from icecomb.spark.planner.transport import (
    NONCE,
    Hangups,
    Server,
    answer,
    lines_of,
    proof,
    read_message,
)

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
        self.lines = self.socket.makefile("rwb")
        mine = "0" * NONCE
        self.lines.write(f"{mine}\n".encode())
        self.lines.flush()
        said = self.lines.readline().decode().strip()
        theirs, self.proof = said[:NONCE], said[NONCE:]
        self.proves = self.proof == proof(token, "planner", mine, theirs)
        self.lines.write(f"{proof(token, 'bridge', mine, theirs)}\n".encode())
        self.lines.flush()
        self.greeting = json.loads(self.lines.readline() or "null")

    def ask(self, method, **params):
        self.lines.writelines(lines_of({"id": 7, "method": method, "params": params}, "params"))
        self.lines.flush()
        return read_message(self.lines.readline() or b"null", self.lines, "result")

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
        assert greeting["protocol"] == PROTOCOL
        connections = [Connection(greeting["port"]) for _ in range(3)]
        errors = [c.ask("no_such_method")["error"] for c in connections]
        for connection in connections:
            connection.close()
    assert {e["types"][0] for e in errors} == {"ValueError"}
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


def test_a_wrong_token_gets_no_greeting(server):
    connection = Connection(server.port, "5ec7e8")
    assert (connection.proves, connection.greeting) == (False, None)
    connection.close()


def test_the_planner_proves_that_it_is_the_planner_and_not_by_what_the_bridge_says(server):
    """Both nonces are in both proofs: one of another connection, or of the other side, is none."""
    first, second = Connection(server.port), Connection(server.port)
    assert first.proves
    assert second.proves
    assert first.proof != second.proof
    with socket.create_connection(("127.0.0.1", server.port)) as echoing:
        lines = echoing.makefile("rwb")
        lines.write(b"0" * NONCE + b"\n")
        lines.flush()
        lines.write(lines.readline()[NONCE:])
        lines.flush()
        assert lines.readline() == b""
    for each in (first, second):
        each.close()


def test_a_connection_is_greeted_so_that_the_bridge_knows_that_it_is_served(server):
    connection = Connection(server.port)
    assert connection.greeting == {"protocol": PROTOCOL}
    connection.close()


def test_strangers_who_say_nothing_are_put_out_after_a_while(server, monkeypatch):
    monkeypatch.setattr(transport, "TOKEN_S", 0.2)
    stranger = socket.create_connection(("127.0.0.1", server.port), timeout=300)
    assert stranger.recv(1) == b""
    stranger.close()


def test_a_stranger_who_says_one_byte_at_a_time_is_put_out_as_well(monkeypatch):
    monkeypatch.setattr(transport, "TOKEN_S", 0.5)
    server = Server({}, TOKEN)
    server.start()
    stranger = socket.create_connection(("127.0.0.1", server.port), timeout=0.1)
    sent = 0
    with suppress(ConnectionError):
        while sent < NONCE:
            sent += stranger.send(b"x")
            with suppress(TimeoutError):
                assert stranger.recv(1) == b""
                break
    assert sent < NONCE
    stranger.close()
    server.close()


def test_many_strangers_do_not_keep_the_bridge_out(server):
    strangers = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(60)]
    connection = Connection(server.port)
    assert connection.ask("echo", a=1)["result"] == {"a": 1}
    # a connection with the token is nobody's to be put out
    strangers += [socket.create_connection(("127.0.0.1", server.port)) for _ in range(60)]
    assert connection.ask("echo", a=2)["result"] == {"a": 2}
    for each in (*strangers, connection):
        each.close()


FEW_DESCRIPTORS = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))
import icecomb.spark.planner.transport as transport
transport._MAX_STRANGERS = 1000
transport.TOKEN_S = 2.0
import icecomb.spark.planner.__main__ as m
m.handlers = lambda: {"echo": lambda params: params}
m.main()
"""


@pytest.mark.full("uses up all file descriptors")
def test_the_planner_serves_again_after_it_had_no_file_descriptors_left():
    with planner(FEW_DESCRIPTORS) as process:
        port = json.loads(process.stdout.readline())["port"]
        strangers = [socket.create_connection(("127.0.0.1", port)) for _ in range(60)]
        connection = Connection(port)
        assert connection.ask("echo", a=1)["result"] == {"a": 1}
        for each in (*strangers, connection):
            each.close()
        process.stdin.close()
        process.wait(300)
        assert "Too many open files" in process.stderr.read()


def test_long_lists_travel_in_pages_both_ways(server):
    wide = [{"path": "p" * 100, "n": n} for n in range(30_000)]
    *pages, last = lines_of({"id": 1, "params": {"files": wide, "few": [1]}}, "params")
    assert len(pages) > 3
    assert all([*json.loads(page)] == ["page"] for page in pages)
    assert max(map(len, pages)) < 2 << 20
    assert json.loads(last) == {"id": 1, "params": {"few": [1]}}
    connection = Connection(server.port)
    assert connection.ask("echo", files=wide, few=[1])["result"] == {"files": wide, "few": [1]}
    assert connection.ask("fail", files=wide)["error"]["types"][0] == "NoSuchTableError"
    assert connection.ask("echo", files=[])["result"] == {"files": []}
    connection.close()


def test_a_few_long_texts_travel_in_pages_too():
    texts = ["t" * 700_000 for _ in range(5)]
    first, *rest = lines_of({"id": 1, "result": {"streams": texts}}, "result")
    assert len(rest) == 5
    found = read_message(first, rest, "result")
    assert found["result"] == {"streams": texts}


def test_a_message_whose_pages_are_cut_off_is_refused():
    first, last = lines_of({"id": 1, "params": {"files": list(range(101))}}, "params")
    for following in ([], [last[:-1]], [first[:-1]]):
        with pytest.raises(ValueError, match="cut off"):
            read_message(first, following, "params")


def test_pages_are_sent_while_they_are_made_and_end_with_the_error_that_came_between(caplog):
    made = []

    def failing(_params):
        for n in range(3):
            made.append(n)
            yield {"files": [n]}
        raise NoSuchTableError("no table db.t", hint="SHOW TABLES")

    lines = answer({"plan": failing}, b'{"id": 1, "method": "plan", "params": {}}\n')
    assert next(lines) == b'{"page":{"files":[0]}}\n'
    assert made == [0]
    *_, last = lines
    assert json.loads(last)["error"]["types"][0] == "NoSuchTableError"


@contextmanager
def asked_for_long(params):
    """A request that takes long, and an event that tells when it was cancelled."""
    begun, ended = threading.Event(), threading.Event()

    def slow(_params):
        begun.set()
        try:
            pause(300)
        except OperationCanceledError:
            ended.set()
            raise

    server = Server({"slow": slow, "echo": lambda params: params}, TOKEN)
    server.start()
    connection = Connection(server.port)
    assert connection.ask("echo", a=1)["result"] == {"a": 1}
    connection.lines.writelines(lines_of({"id": 7, "method": "slow", "params": params}, "params"))
    connection.lines.flush()
    assert begun.wait(300)
    try:
        yield connection, ended
    finally:
        connection.close()
        server.close()


@pytest.mark.parametrize("end", ["close", "half"])
def test_who_hangs_up_cancels_what_was_asked(end):
    with asked_for_long({}) as (connection, ended):
        connection.socket.shutdown(socket.SHUT_WR if end == "half" else socket.SHUT_RDWR)
        assert ended.wait(300)
        if end == "half":
            # who only stops asking still learns what became of it
            found = json.loads(connection.lines.readline())
            assert found["error"]["types"][0] == "OperationCanceledError"


def test_who_hangs_up_after_a_request_of_several_lines_cancels_it():
    with asked_for_long({"files": ["x" * 1000] * 3000}) as (connection, ended):
        connection.socket.shutdown(socket.SHUT_WR)
        assert ended.wait(60)


def test_what_was_read_already_ends_no_watch():
    ours, theirs = socket.socketpair()
    hangups, cancellation = Hangups(), Cancellation()
    with ours, hangups.watching(ours, cancellation):
        # as the watcher meets it that was woken by bytes which the other thread took
        hangups._check(hangups._selector.get_map()[ours.fileno()])
        assert not cancellation.is_canceled
        theirs.close()
        for _ in range(600):
            if cancellation.is_canceled:
                break
            time.sleep(0.1)
        assert cancellation.is_canceled


def test_each_request_is_logged_with_its_time(caplog):
    caplog.set_level(logging.DEBUG)
    line = b'{"id": 1, "method": "ping", "params": {}}\n'
    assert [*answer({"ping": lambda _: "pong"}, line)] == [b'{"id":1,"result":"pong"}\n']
    (text,) = (one.getMessage() for one in caplog.records if one.name.startswith("icecomb.spark"))
    assert re.fullmatch(r"ping: \d+ ms", text)


def test_an_error_travels_with_its_classes_message_and_hint(server):
    connection = Connection(server.port)
    assert connection.ask("fail") == {
        "id": 7,
        "error": {
            "types": [
                "NoSuchTableError",
                "IcecombError",
                "LookupError",
                "Exception",
                "BaseException",
                "object",
            ],
            "message": "no table db.t",
            "hint": "SHOW TABLES",
        },
    }
    assert connection.ask("echo", a="ä\u2028\ud800")["result"] == {"a": "ä\u2028\ud800"}
    connection.close()


def test_an_unexpected_error_is_an_answer_without_a_trace(server):
    connection = Connection(server.port)
    error = connection.ask("crash")["error"]
    assert error["types"][0] == "KeyError"
    assert "Traceback" not in json.dumps(error)
    assert connection.ask("echo") == {"id": 7, "result": {}}
    connection.close()


@pytest.mark.parametrize(
    "line", [b"{", b"[]", b'{"id": 1}', b'{"id":1,"method":"nan","params":{}}']
)
def test_a_line_that_makes_no_sense_is_answered_by_an_error(line):
    [answered] = answer({"nan": lambda _: float("nan")}, line)
    parsed = json.loads(answered)
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
