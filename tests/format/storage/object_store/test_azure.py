"""Azure's store: who asks, folders of Hadoop's, names."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import http.server
import json
import threading
import time
from urllib.parse import quote

import pytest
import requests

from icecomb.format.errors import FileIOError, NoSuchFileError, ValidationError
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.object_store.azure_settings import (
    EMULATOR_ACCOUNT,
    AzureSettings,
    azure_signer,
)
from tests.peers.azurite import EMULATOR_KEY

WRONG = base64.b64encode(b"no key of theirs").decode()
with_azurite = pytest.mark.full("Azurite is run by Node.js")

NAMES = [
    " x",
    "a//b",
    "~",
    "!",
    "$&'()*+,;=:@",
    "[]",
    "^`|",
    "<>",
    "%",
    "%41",
    "\t",
    "é",
    "😀",
    "-_.a",
    "..a/.b",
]


@pytest.fixture
def io(azurite):
    made = FileIO(azurite.settings)
    yield made
    made.close()


def by_address(azurite, **settings):
    authority = azurite.endpoint.removeprefix("http://")
    return FileIO({
        "adls.blob-storage-authority": authority,
        "adls.blob-storage-scheme": "http",
        "io.object-store.max-attempts": "1",
        **settings,
    })  # fmt: skip


@with_azurite
def test_a_wrong_key_is_said_and_not_shown(azurite):
    io = by_address(azurite, **{"adls.account-key": WRONG})
    with pytest.raises(FileIOError, match=r"AuthenticationFailed|AuthorizationFailure") as caught:
        io.read(f"{azurite.place()}/x")
    io.close()
    assert "icecomb doctor" in caught.value.hint
    assert WRONG not in f"{caught.value}{caught.value.hint}"


def account_signature(permissions):
    """Source: Azure Storage, Create an account SAS."""
    ends = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    parts = [EMULATOR_ACCOUNT, permissions, "b", "sco", "", ends, "", "", "2021-12-02", "", ""]
    key = base64.b64decode(EMULATOR_KEY)
    digest = hmac.new(key, "\n".join(parts).encode(), hashlib.sha256).digest()
    signature = quote(base64.b64encode(digest).decode(), safe="")
    return f"sv=2021-12-02&ss=b&srt=sco&sp={permissions}&se={quote(ends, safe='')}&sig={signature}"


@with_azurite
def test_a_shared_access_signature_does_all_and_is_shown_nowhere(azurite):
    place, token = azurite.place(), account_signature("rwdlac")
    io = by_address(azurite, **{"adls.sas-token": token})
    io.create(f"{place}/x y", b"1")
    io.rename(f"{place}/x y", f"{place}/z")
    assert [each.location for each in io.list(place)] == [f"{place}/z"]
    assert io.read(f"{place}/z") == b"1"
    io.delete(f"{place}/z")
    io.close()
    reading = by_address(azurite, **{"adls.sas-token": account_signature("r")})
    with pytest.raises(FileIOError, match="Authorization") as caught:
        reading.create(f"{place}/x", b"1")
    reading.close()
    assert "permission" in caught.value.hint
    assert "sig=" not in f"{caught.value}{caught.value.hint}"


@with_azurite
def test_a_signature_is_not_shown_when_nobody_answers(azurite):
    token = account_signature("r")
    io = FileIO({
        "adls.blob-storage-authority": "127.0.0.1:9", "adls.blob-storage-scheme": "http",
        "adls.sas-token": token, "io.object-store.max-attempts": "1",
    })  # fmt: skip
    with pytest.raises(FileIOError, match=r"127\.0\.0\.1:9 was not reached") as caught:
        io.read(f"{azurite.place()}/x")
    io.close()
    assert "sig" not in f"{caught.value!r}{caught.value.hint}"


def test_a_machines_token_is_renewed_before_it_ends(monkeypatch):
    given = []

    class Identity(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            given.append(self.path)
            # the first one ends so soon that it is renewed at once
            ends = int(time.time()) + (100 if len(given) == 1 else 86_400)
            text = json.dumps({
                "access_token": f"token {len(given)}", "expires_on": str(ends),
                "resource": "https://storage.azure.com", "token_type": "Bearer",
            }).encode()  # fmt: skip
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Identity) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        monkeypatch.setenv(
            "IDENTITY_ENDPOINT", f"http://127.0.0.1:{server.server_address[1]}/token"
        )
        monkeypatch.setenv("IDENTITY_HEADER", "a secret")
        signer = azure_signer(AzureSettings(account="a", managed=True))
        seen = [
            signer(requests.Request("GET", "https://a.invalid/c").prepare()).headers[
                "Authorization"
            ]
            for _ in range(4)
        ]
        server.shutdown()
    assert seen == ["Bearer token 1", *["Bearer token 2"] * 3]
    assert len(given) == 2


def test_a_token_file_that_cannot_be_read_is_named(tmp_path):
    file = str(tmp_path / "none")
    settings = AzureSettings(account="a", tenant_id="t", client_id="c", token_file=file)
    with (
        contextlib.closing(azure_signer(settings)) as signer,
        pytest.raises(FileIOError, match=f"account a: .*No such file.*{file}"),
    ):
        signer(requests.Request("GET", "https://a.invalid/c").prepare())


@with_azurite
def test_a_missing_container_is_said(io, azurite):
    for act in (
        lambda place: io.create(f"{place}/x", b""),
        lambda place: list(io.list(f"{place}/a")),
    ):
        with pytest.raises(FileIOError, match="ContainerNotFound") as caught:
            act(f"abfss://nowhere@{EMULATOR_ACCOUNT}.dfs.core.windows.net")
        assert not isinstance(caught.value, NoSuchFileError)


@with_azurite
@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_any_character_stays_as_it_is(io, azurite, name):
    place = azurite.place()
    io.create(f"{place}/{name}", name.encode())
    assert io.read(f"{place}/{name}") == name.encode()
    assert [each.location for each in io.list(place)] == [f"{place}/{name}"]
    io.delete(f"{place}/{name}")
    assert not io.exists(f"{place}/{name}")


@with_azurite
@pytest.mark.parametrize("name", ["x.", "a./b", "..", "a/../b", "a\\b"])
def test_a_name_that_azure_would_change_is_refused_and_nobody_has_it(io, azurite, name):
    place = azurite.place()
    for plain in ("x", "a/b", "b"):
        io.create(f"{place}/{plain}", b"other")
    with pytest.raises(ValidationError, match="would change the name"):
        io.create(f"{place}/{name}", b"")
    assert not io.exists(f"{place}/{name}")
    io.delete(f"{place}/{name}")
    assert len([*io.list(place)]) == 3


@with_azurite
def test_folders_of_hadoop_are_no_files(io, azurite):
    """Hadoop's WASB and ABFS keep a blob with a mark for each folder."""
    place = azurite.place()
    container = place.removeprefix("abfss://").partition("@")[0]
    client = azurite.client(container)
    for folder in ("lake", "lake/t", "lake/empty"):
        client.put(f"{folder}/", folder, b"", replace=False)
    client.close()
    io.create(f"{place}/lake/t/file", b"1")
    assert [each.location for each in io.list(f"{place}/lake")] == [f"{place}/lake/t/file"]
    assert list(io.folders(f"{place}/lake")) == ["empty", "t"]
    assert io.is_folder(f"{place}/lake/empty")
    assert not io.exists(f"{place}/lake/empty")
    with pytest.raises(NoSuchFileError):
        io.read(f"{place}/lake/t")
    assert io.delete_folder(f"{place}/lake/empty")
    assert not io.is_folder(f"{place}/lake/empty")
    assert not io.delete_folder(f"{place}/lake/t")


@with_azurite
def test_all_spellings_of_a_place_are_one_file(io, azurite):
    place = azurite.place()
    io.create(f"{place}/x", b"1")
    rest = place.partition("://")[2]
    for start in ("abfs", "abfss", "wasb", "wasbs", "ABFSS"):
        assert io.read(f"{start}://{rest.replace('.dfs.', '.blob.')}/x") == b"1"
