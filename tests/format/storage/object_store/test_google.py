"""Google's store: who asks, names, long listings."""

from __future__ import annotations

import http.server
import json
import threading
import time

import pytest
import requests

from icecomb.format.errors import (
    ConfigurationError,
    FileIOError,
    NoSuchFileError,
    ValidationError,
)
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.object_store.google_settings import GoogleSettings, google_signer
from tests.peers.google_key import write_key_file

with_server = pytest.mark.full("the server is built by Go")

NAMES = [
    " x",
    "a//b",
    "/a",
    "a/./b",
    "a/../b",
    "a\\b",
    "x.",
    "~!$&'()*+,;=:@",
    "[]^`|<>",
    "%",
    "%41",
    "\t",
    "😀",
]


@pytest.fixture
def io(google_store):
    made = FileIO(google_store.settings)
    yield made
    made.close()


@with_server
@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_any_character_stays_as_it_is(io, google_store, name):
    place = google_store.place()
    io.create(f"{place}/{name}", name.encode())
    assert io.read(f"{place}/{name}") == name.encode()
    assert [each.location for each in io.list(place)] == [f"{place}/{name}"]
    io.delete(f"{place}/{name}")
    assert not io.exists(f"{place}/{name}")


@with_server
@pytest.mark.parametrize("name", ["..", ".", "a\nb", "a\r"])
def test_a_name_that_google_does_not_give_is_refused_and_nobody_has_it(io, google_store, name):
    place = google_store.place()
    with pytest.raises(ValidationError, match="no object of this name"):
        io.create(f"{place}/{name}", b"")
    assert not io.exists(f"{place}/{name}")
    io.delete(f"{place}/{name}")


@with_server
def test_a_missing_bucket_is_said(io):
    for act in (lambda: io.create("gs://nowhere/x", b""), lambda: list(io.list("gs://nowhere/a"))):
        with pytest.raises(FileIOError, match="nowhere"):
            act()


@pytest.fixture
def answering():
    """A server that answers everything by 404 with the message that is set."""

    class Answers(http.server.BaseHTTPRequestHandler):
        message = ""

        def do_GET(self):
            body = json.dumps({"error": {"code": 404, "message": self.message}}).encode()
            self.send_response(404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        Answers.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
        yield Answers
        server.shutdown()


def test_a_missing_object_is_told_from_a_missing_bucket_whatever_their_names(answering):
    """The emulator says "Not Found" of both; these are the words of Cloud Storage itself."""
    io = FileIO({"gcs.service.host": answering.endpoint, "gcs.no-auth": "true"})
    answering.message = "No such object: my-bucket/bucket/x"
    assert not io.exists("gs://my-bucket/bucket/x")
    with pytest.raises(NoSuchFileError):
        io.read("gs://my-bucket/bucket/x")
    answering.message = "The specified bucket does not exist."
    with pytest.raises(FileIOError, match="The specified bucket does not exist") as caught:
        io.size("gs://my-bucket/bucket/x")
    assert not isinstance(caught.value, NoSuchFileError)
    assert "check its name" in caught.value.hint
    io.close()


@with_server
def test_a_listing_of_many_pages_is_whole(io, google_store):
    place = google_store.place()
    names = [f"{place}/f/{n:04d}" for n in range(1100)]
    with io.side_by_side(place):
        for name in names:
            io.create(name, b"")
    assert [each.location for each in io.list(f"{place}/f")] == names
    io.delete(names)
    assert list(io.list(place)) == []


@with_server
def test_a_token_that_is_over_is_said_and_not_shown(google_store):
    settings = {**google_store.settings, "gcs.oauth2.token": "tok-1"}
    del settings["gcs.no-auth"]
    place = google_store.place()
    for ends, over in ((time.time() - 5, True), (time.time() + 500, False)):
        io = FileIO({**settings, "gcs.oauth2.token-expires-at": f"{ends * 1000:.0f}"})
        if over:
            with pytest.raises(ConfigurationError, match="has expired") as caught:
                io.create(f"{place}/x", b"")
            assert "tok-1" not in f"{caught.value}{caught.value.hint}"
        else:
            io.create(f"{place}/x", b"")
        io.close()


def test_a_service_accounts_token_is_renewed_before_it_ends(tmp_path):
    given = []

    class Tokens(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            given.append(self.path)
            # the first one ends so soon that it is renewed at once
            lasts = 10 if len(given) == 1 else 3600
            text = json.dumps({
                "access_token": f"token{len(given)}", "expires_in": lasts, "token_type": "Bearer",
            }).encode()  # fmt: skip
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tokens) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        uri = f"http://127.0.0.1:{server.server_address[1]}/token"
        signer = google_signer(GoogleSettings(key_file=write_key_file(tmp_path / "key.json", uri)))
        assert signer.who == "tests@icecomb.invalid"
        url = "https://storage.googleapis.com/storage/v1/b/x"
        seen = [
            signer(requests.Request("GET", url).prepare()).headers["Authorization"]
            for _ in range(3)
        ]
        signer.close()
        server.shutdown()
    assert seen == ["Bearer token1", "Bearer token2", "Bearer token2"]
    assert len(given) == 2


def test_a_key_file_that_is_none_is_said(tmp_path):
    with pytest.raises(ConfigurationError, match=r"none\.json cannot be read: No such file"):
        google_signer(GoogleSettings(key_file=str(tmp_path / "none.json")))
    (tmp_path / "key.json").write_text('{"type": "service_account", "private_key": "a secret"}')
    with pytest.raises(ConfigurationError, match="No credentials were found") as caught:
        google_signer(GoogleSettings(key_file=str(tmp_path / "key.json")))
    assert "GOOGLE_APPLICATION_CREDENTIALS" in caught.value.hint
    assert "a secret" not in str(caught.value)


def test_a_file_of_credentials_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path))
    with pytest.raises(ConfigurationError, match=f"key file {tmp_path} cannot be read") as caught:
        google_signer(GoogleSettings())
    assert "GOOGLE_APPLICATION_CREDENTIALS" in caught.value.hint


@pytest.mark.parametrize(
    "found", ["[]", "5", '{"type": "service_account"}', '{"type": "external_account"}']
)
def test_a_file_of_credentials_without_a_member_is_said(found, tmp_path, monkeypatch):
    file = tmp_path / "key.json"
    file.write_text(found)
    with pytest.raises(ConfigurationError, match="No credentials were found"):
        google_signer(GoogleSettings(key_file=str(file)))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    with pytest.raises(ConfigurationError, match="No credentials were found"):
        google_signer(GoogleSettings())


def test_nobody_who_asks_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    with pytest.raises(ConfigurationError, match="No credentials were found") as caught:
        google_signer(GoogleSettings())
    assert "gcs.no-auth" in caught.value.hint


@with_server
def test_a_missing_file_is_missing(io, google_store):
    with pytest.raises(NoSuchFileError):
        io.read(f"{google_store.place()}/none")
