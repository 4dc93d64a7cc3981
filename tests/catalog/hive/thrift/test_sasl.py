"""What a server says during a login by DIGEST-MD5 that is no challenge of it."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from typing import cast

import pytest

from icecomb.catalog.hive.thrift.sasl import Digest, Mechanism, SaslError, negotiate
from icecomb.catalog.hive.thrift.transport import Transport
from icecomb.format.storage.delegation_token import DelegationToken

CHALLENGE = b'realm="x",nonce="y, z",qop="auth",charset=utf-8'


def digest():
    return Digest(DelegationToken(b"alice", b"secret"))


@pytest.mark.parametrize(
    "challenge",
    [b"\xff\xfe", b'realm="x",qop="auth"', b"abc", b"", b"=" * 4096, b"a=," * (1 << 20)],
    ids=["not UTF-8", "no nonce", "no value", "nothing", "no name", "too long"],
)
def test_what_is_no_challenge_is_refused_at_once(challenge):
    begun = time.process_time()
    with pytest.raises(SaslError):
        digest().answer(challenge)
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("proof", [b"rspauth=0", b"", b"\xff", "rspauth=é".encode()])
def test_what_is_no_proof_is_refused(proof):
    one = digest()
    answer = one.answer(CHALLENGE)
    assert b'nonce="y, z"' in answer
    assert b'realm="x"' in answer
    with pytest.raises(SaslError):
        one.answer(proof)
    assert not one.complete


def test_a_login_for_one_server_is_not_made_with_another() -> None:
    """Who listens at an old port could relay it to the new server."""
    token = DelegationToken(b"alice", b"secret")
    assert b'realm="x"' in Digest(token, realm="x").answer(CHALLENGE)
    with pytest.raises(SaslError, match="is not the server at y"):
        Digest(token, realm="y").answer(CHALLENGE)


def test_a_login_without_an_end_is_refused() -> None:
    class Patient:
        name, complete = "PATIENT", False

        def answer(self, challenge: bytes | None) -> bytes:
            return b"" if challenge is None else b"again"

    def serve() -> None:
        with there, suppress(OSError):
            for _ in range(100):
                there.recv(1 << 16)
                there.sendall(b"\2\0\0\0\4more")

    here, there = socket.socketpair()
    threading.Thread(target=serve, daemon=True).start()
    transport = Transport(here, 30.0)
    with pytest.raises(SaslError, match="more than 16 messages"):
        negotiate(transport, cast("Mechanism", Patient()))
    transport.close()
