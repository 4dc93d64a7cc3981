"""HTTP connections to a cluster: authentication, timeouts and trusted certificates.

Any host that a location names may answer as a name node, and name any other as a data node. So a
login and cookies are for name nodes, no redirection is followed but a name node's to a data node,
and what comes is read in pieces to a limit.
"""

from __future__ import annotations

import logging
import os
import re
import ssl
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode, urlsplit

from icecomb.format.call_log import timed
from icecomb.format.errors import ConfigurationError, FileIOError
from icecomb.format.input_limit import METADATA, check_json
from icecomb.format.process import user_name
from icecomb.format.secret import one_line, without_secrets
from icecomb.format.storage.anonymous import make_anonymous
from icecomb.format.storage.delegation_token import (
    DelegationToken,
    find_tokens,
    token_sources,
)
from icecomb.format.storage.file_system import draft_name
from icecomb.format.storage.hdfs.address import HdfsAddress
from icecomb.format.storage.hdfs.failure import not_hdfs
from icecomb.format.storage.hdfs.name_node import NAME_NODE_STATUS, ActiveNameNodes
from icecomb.format.storage.hdfs.spnego import SpnegoAuth
from icecomb.format.storage.hdfs.token_service import TokenServices
from icecomb.format.storage.hdfs.upload import HdfsUpload
from icecomb.format.storage.storage_property import (
    HADOOP_AUTHENTICATION,
    HADOOP_FALLBACK,
    HDFS_CA_PATH,
    HDFS_CONNECT_TIMEOUT,
    HDFS_KEYTAB,
    HDFS_PRINCIPAL,
    HDFS_PROXY_USER,
    HDFS_READ_TIMEOUT,
    HDFS_SERVERS,
    HDFS_TOKEN,
    HDFS_USER,
    TOKEN_FILES,
)
from icecomb.format.storage.time_limit import timed_pools

if TYPE_CHECKING:
    import requests

_LOG: Final = logging.getLogger(__name__)
_CONNECTIONS: Final = 32
BYTES: Final = "application/octet-stream"
"""The content type of responses that are not JSON."""
_METRICS_S: Final = 10.0
_ANSWER_BYTES: Final = 16 << 20
"""The most that an answer may be, except for a list of a folder's files."""
_PIECE: Final = 16 << 20
TOKEN_KINDS: Final = ("WEBHDFS delegation", "SWEBHDFS delegation", "HDFS_DELEGATION_TOKEN")
"""Kinds issued by `GETDELEGATIONTOKEN`, by it over TLS, and to jobs; name nodes accept all."""


class _Answers(threading.local):
    """What one thread knows of the answers to its requests."""

    lost = 0


class HdfsSession:
    """One pool of connections, shared by all threads.

    Proxies of the environment are not used: a cluster's own hosts are not behind them.

    Args:
        properties: Settings: `hdfs.user` (else `HADOOP_USER_NAME`, else the login name),
            `hdfs.proxy-user` (else `HADOOP_PROXY_USER`), `hdfs.ca-path` (trusted certificates),
            `hadoop.security.authentication` (`kerberos`: the ticket of `kinit`, or
            `hdfs.kerberos.principal` and `hdfs.kerberos.keytab`), `hdfs.delegation-token` (else
            one from the `token_sources` of `hadoop.token.files`, read again for each call),
            `dfs.webhdfs.socket.connect-timeout` and `dfs.webhdfs.socket.read-timeout`.
        address: The cluster; a token is sent there only if it is for it (see `TokenServices`), or
            if nothing tells which of the configured clusters it is for.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        address: HdfsAddress,
    ) -> None:
        self.user = HDFS_USER.of(properties) or user_name()
        self.connect_timeout_s = HDFS_CONNECT_TIMEOUT.of(properties)
        self.read_timeout_s = HDFS_READ_TIMEOUT.of(properties)
        self._ca_path = HDFS_CA_PATH.of(properties) or os.environ.get("REQUESTS_CA_BUNDLE")
        self._proxy_user = HDFS_PROXY_USER.of(properties) or os.environ.get("HADOOP_PROXY_USER")
        self._kerberos = HADOOP_AUTHENTICATION.of(properties) == "kerberos"
        self._keytab = HDFS_KEYTAB.of(properties)
        self._login: SpnegoAuth | None = None
        if self._kerberos:
            self._login = SpnegoAuth(HDFS_PRINCIPAL.of(properties), self._keytab)
        self._falls_back = HADOOP_FALLBACK.of(properties)
        self._stated_token = HDFS_TOKEN.of(properties)
        self._token_sources: tuple[str, ...] = ()
        if self._keytab is None:
            self._token_sources = token_sources(TOKEN_FILES.of(properties))
        self._services = TokenServices(address, properties)
        # those that have a standby
        self._candidates = frozenset(address.name_nodes if len(address.name_nodes) > 1 else ())
        self.active = ActiveNameNodes(self._state)
        self._answers = _Answers()
        self._token()
        self.requests = self._session()
        self._data_nodes = self._data_node_session()

    @property
    def effective_user(self) -> str:
        """The user whose permissions apply."""
        return self._proxy_user or self.user

    @property
    def lost_answers(self) -> int:
        """How many requests of this thread were not answered."""
        return self._answers.lost

    def close(self) -> None:
        """Close the connections that are kept open."""
        self.requests.close()
        self._data_nodes.close()

    def download(self, url: str, most: int) -> tuple[bytes, bool]:
        """Return a data node's response, and whether its length was stated.

        A longer one than `most` is not read to its end, but returned with more bytes than that.

        Errors are those of the libraries: requests.RequestException if the connection failed,
        urllib3.exceptions.HTTPError if the response was cut or too slow, and pyhdfs.HdfsException
        if the data node refused.
        """
        import pyhdfs
        import requests

        try:
            reply = self._data_nodes.get(url, stream=True)
        except requests.RequestException as error:
            raise _told(error) from None
        with reply:
            kind = content_type(reply)
            if reply.status_code != HTTPStatus.OK:
                _read(reply, _ANSWER_BYTES)
                pyhdfs._check_response(reply)  # noqa: SLF001 - raises the same errors as other calls
            if kind != BYTES:
                raise pyhdfs.HdfsException(f"{kind or 'nothing'} came instead of a file")
            _check_coding(reply)
            # not by the stated length, for which memory would be taken at once
            read = partial(reply.raw.read, min(most + 1, _PIECE), decode_content=False)
            return _joined(iter(read, b""), most), "Content-Length" in reply.headers

    def metrics(self, origin: str, bean: str) -> dict[str, Any]:
        """Return one bean of the metrics of `http://host:port`; empty if there is none.

        A name node that does not respond raises requests.RequestException.
        """
        url = f"{origin}/jmx?qry=Hadoop:service=NameNode,name={bean}"
        reply = self.requests.get(url, timeout=_METRICS_S)
        try:
            (found, *_) = reply.json()["beans"] if reply.ok else [{}]
        except (ValueError, KeyError, TypeError, RecursionError):
            found = {}
        return found if isinstance(found, dict) else {}

    def upload(self, url: str, location: str) -> HdfsUpload:
        """Return an upload stream to the data node URL that a name node returned."""
        parts = urlsplit(url)
        tls = None
        if parts.scheme == "https":
            tls = ssl.create_default_context(cafile=self._ca_path)
        target = f"{parts.path}?{parts.query}"
        return HdfsUpload((parts.scheme, parts.netloc, target), location, self.read_timeout_s, tls)

    def _may_be_believed(self, url: str) -> bool:
        """Return whether the URL's host is not a candidate, or is the active name node."""
        parts = urlsplit(url)
        if parts.netloc not in self._candidates:
            return True
        return self.active.has(f"{parts.scheme}://{parts.netloc}")

    def _state(self, origin: str) -> str:
        import requests

        state = ""
        with suppress(FileIOError, requests.ReadTimeout):
            state = str(self.metrics(origin, NAME_NODE_STATUS).get("State", "")).lower()
        return state or self._state_by_refusal(origin)

    def _state_by_refusal(self, origin: str) -> str:
        """Return `standby` if a name node refuses to delete a nonexistent file, else nothing.

        A standby and an observer refuse all writes, before they look at anything.
        """
        wanted = self._identity()({"op": "DELETE", "user.name": self.user})
        url = f"{origin}/webhdfs/v1/{draft_name()}?{urlencode(wanted)}"
        reply = self.requests.delete(url)
        try:
            answered = not {"boolean", "RemoteException"}.isdisjoint(reply.json())
        except (ValueError, TypeError, RecursionError):
            answered = False
        if not answered:
            kind = content_type(reply) or "no type"
            host = urlsplit(origin).netloc
            raise not_hdfs("reach", origin, [host], f"HTTP {reply.status_code}, {kind}")
        return "standby" if _says(reply, b"StandbyException") else ""

    def _token(self) -> str | None:
        """Return the current token for this cluster: Hadoop renews those of its jobs."""
        services = self._services
        if self._stated_token is not None:
            return self._stated_token if self._may_have(self._stated_token) else None
        tokens = [token for source in self._token_sources for token in find_tokens(source)]
        for kind in TOKEN_KINDS:
            found = [token for token in tokens if token.kind == kind]
            ours = [token for token in found if services.has(token.service)]
            # its service may be spelled otherwise; but a cluster without security needs none
            if not ours and len(found) == 1 and self._kerberos and services.is_configured:
                ours = [token for token in found if not services.is_of_another(token.service)]
            if ours:
                return ours[0].url_text
        return None

    def _may_have(self, text: str) -> bool:
        """Return whether a token without a known service may be sent to this cluster."""
        service = ""
        with suppress(ConfigurationError):
            service = DelegationToken.of_url_text(text).service
        if self._services.has(service):
            return True
        return self._services.is_configured and not self._services.is_of_another(service)

    def _withheld(self) -> str:
        """Return what to do where there is a token or a ticket that is not sent to this cluster."""
        if self._token() is not None:
            return ""
        if self._login is not None and not self._services.may_see_tickets:
            return (
                "Without TLS tickets are shown to clusters that the settings name so: "
                f"{HDFS_SERVERS} can name this."
            )
        if self._stated_token is not None:
            return f"{HDFS_TOKEN} is sent to configured clusters only: {HDFS_SERVERS} can name this"
        tokens = (token for source in self._token_sources for token in find_tokens(source))
        known = sorted({token.service for token in tokens if token.kind in TOKEN_KINDS})
        if not known:
            return ""
        return (
            f"the delegation tokens are for {', '.join(known)}: write locations so, or let "
            f"{HDFS_SERVERS} name this cluster"
        )

    def _session(self) -> requests.Session:
        """Return the session for the name nodes."""
        import requests

        may_be_believed = self._may_be_believed
        identity = self._identity()
        answers = self._answers
        withheld = self._withheld
        login, falls_back = self._login, self._falls_back

        class Session(requests.Session):
            """A session that adds the user's identity to every call to a name node."""

            def request(self, method: str, url: str, **options: Any) -> requests.Response:  # type: ignore[override]
                if (given := options.get("params")) is not None:
                    options["params"] = identity(given)
                    if not may_be_believed(url):
                        raise requests.ConnectionError(f"{urlsplit(url).netloc} is not active")
                try:
                    reply = super().request(method, url, **options)
                except requests.RequestException as error:
                    answers.lost += 1
                    _LOG.info("%s does not answer: %s", urlsplit(url).netloc, type(error).__name__)
                    raise _told(error) from None
                is_by_ticket = given is not None and "delegation" not in options["params"]
                if login is not None and is_by_ticket and not falls_back:
                    login.check(reply)
                if _says(reply, b"StandbyException"):
                    _LOG.info("%s is a standby", urlsplit(url).netloc)
                if _says(reply, b"ObserverRetryOnActiveException"):
                    # pyhdfs does not know this exception; it tries the next name node
                    raise requests.ConnectionError(f"{urlsplit(url).netloc} is an observer")
                if given is not None and _is_http_fs(reply, str(given.get("op"))):
                    raise FileIOError(
                        f"{urlsplit(url).netloc} is HttpFS, by which icecomb cannot keep tables",
                        hint="Let dfs.namenode.http-address (or webhdfs://) name the name nodes: "
                        "HttpFS does not rename as a commit needs it.",
                    )
                # Hadoop sends 401 or 403 here; pyhdfs takes the latter for an error of its own
                identity_refused = _says(reply, b'"SecurityException"')
                if reply.status_code == HTTPStatus.UNAUTHORIZED or identity_refused:
                    raise _refused(reply, withheld())
                return reply

        session = self._equipped(Session(), is_whole=True)
        if login is not None and self._services.may_see_tickets:
            session.auth = login
        return session

    def _data_node_session(self) -> requests.Session:
        """Return the session for hosts that name nodes name: it has no login, and no cookies."""
        import requests

        session = self._equipped(requests.Session(), is_whole=False)
        # the URL from the name node contains a token for the data node
        make_anonymous(session)
        return session

    def _equipped(self, session: requests.Session, *, is_whole: bool) -> requests.Session:
        """Return a session with timeouts and certificates, which may read bounded responses."""
        from requests.adapters import HTTPAdapter

        timeouts = (self.connect_timeout_s, self.read_timeout_s)
        check_peer = self._services.check_peer

        class Adapter(HTTPAdapter):
            """An adapter with a timeout for every request and response, also of data nodes."""

            def init_poolmanager(self, *sizes: Any, **options: Any) -> None:
                super().init_poolmanager(*sizes, **options)
                self.poolmanager.pool_classes_by_scheme = timed_pools(check_peer)

            def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:  # type: ignore[override]
                options["timeout"] = options.get("timeout") or timeouts
                url = request.url or ""
                with timed(_LOG, str(request.method), *_place(url)):
                    reply = super().send(request, **{**options, "stream": True})
                    if is_whole:
                        lists = "op=LISTSTATUS" in url
                        _read(reply, METADATA.value << 20 if lists else _ANSWER_BYTES)
                    return reply

        session.get_redirect_target = _nowhere  # type: ignore[assignment]
        session.trust_env = False
        session.headers["Accept-Encoding"] = "identity"
        for scheme in ("http://", "https://"):
            session.mount(scheme, Adapter(pool_maxsize=_CONNECTIONS))
        if self._ca_path:
            session.verify = self._ca_path
        return session

    def _identity(self) -> Any:
        proxy_user = self._proxy_user

        def identity(parameters: Mapping[str, Any]) -> dict[str, Any]:
            found, token = dict(parameters), self._token()
            if self._kerberos or token:
                found.pop("user.name", None)
            if token:
                found["delegation"] = token
            elif proxy_user:
                found["doas"] = proxy_user
            return found

        return identity


def content_type(reply: requests.Response) -> str:
    """Return the content type of a response, without parameters; empty if there is none."""
    return reply.headers.get("Content-Type", "").partition(";")[0].strip()


def _read(reply: requests.Response, most: int) -> None:
    """Read a response whole; requests.RequestException is raised if it is larger than allowed."""
    try:
        _check_coding(reply)
        content = _joined(reply.iter_content(1 << 16), most)
        _check_answer(content, most)
    except BaseException:
        reply.close()
        raise
    reply._content = content  # noqa: SLF001 - as its property does, which has no limit
    reply._content_consumed = True  # type: ignore[attr-defined] # noqa: SLF001


def _check_answer(content: bytes, most: int) -> None:
    import requests

    try:
        check_json(content)
    except ValueError as error:
        raise requests.exceptions.ContentDecodingError(str(error)) from None
    if len(content) > most:
        raise requests.exceptions.ContentDecodingError(f"it is larger than {most >> 20} MiB")


def _check_coding(reply: requests.Response) -> None:
    """Refuse what is packed, though it was asked for as it is: a little could become very much."""
    import requests

    coding = reply.headers.get("Content-Encoding", "identity")
    if coding.strip().lower() != "identity":
        raise requests.exceptions.ContentDecodingError(f"its answer is packed ({coding!r})")


def _joined(pieces: Iterable[bytes], most: int) -> bytes:
    """Join pieces up to the first one that makes them longer than allowed."""
    found, size = [], 0
    for piece in pieces:
        found.append(piece)
        size += len(piece)
        if size > most:
            break
    return found[0] if len(found) == 1 else b"".join(found)


def _place(url: str) -> tuple[str, str]:
    """Return host and path, and the operation, without secrets."""
    parts = urlsplit(url)
    operation = re.search(r"\bop=(\w+)", parts.query)
    return f"{parts.netloc}{parts.path}", operation[1] if operation else ""


def _nowhere(_: requests.Response) -> str | None:
    """Return no target: no redirection is followed, nor what came with it read."""
    return None


def _told(error: requests.RequestException) -> requests.RequestException:
    """Return an error without its request, and the text without the URL, that have the token."""
    return type(error)(without_secrets(str(error)))


def _says(reply: requests.Response, exception: bytes) -> bool:
    return reply.status_code == HTTPStatus.FORBIDDEN and exception in reply.content


def _is_http_fs(reply: requests.Response, operation: str) -> bool:
    """Return whether HttpFS answers: it sends and takes files itself, without data nodes."""
    if operation == "OPEN":
        return reply.status_code == HTTPStatus.OK and content_type(reply) == BYTES
    query = urlsplit(reply.headers.get("Location", "")).query
    return operation == "CREATE" and "data=true" in query.lower().split("&")


def _refused(reply: requests.Response, withheld: str) -> FileIOError:
    host = urlsplit(reply.url).netloc
    wanted = reply.headers.get("WWW-Authenticate", "")
    hint = "Get a new ticket with kinit, and check klist."
    if reply.request.headers.get("Authorization") is None:
        hint = withheld or (
            "Set hadoop.security.authentication=kerberos, and get a ticket with kinit."
            if "negotiate" in wanted.lower()
            else "Check the user name, or the delegation token."
        )
    try:
        reason = reply.json()["RemoteException"]["message"]
    except (ValueError, KeyError, TypeError, RecursionError):
        reason = reply.reason
    shown = one_line(reason) or f"HTTP {reply.status_code}"
    return FileIOError(f"{host} rejected the login: {shown}", hint=hint)
