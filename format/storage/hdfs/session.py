"""HTTP connections to a cluster: who we are, how long we wait, whom we trust."""

from __future__ import annotations

import getpass
import logging
import os
import re
import ssl
from collections.abc import Collection, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from icecomb.format.call_log import timed
from icecomb.format.errors import FileIOError
from icecomb.format.storage.delegation_token import find_tokens, token_sources
from icecomb.format.storage.hdfs.name_node import NAME_NODE_STATUS, ActiveNameNodes
from icecomb.format.storage.hdfs.spnego import SpnegoAuth
from icecomb.format.storage.hdfs.time_limit import timed_pools
from icecomb.format.storage.hdfs.upload import HdfsUpload
from icecomb.format.storage.storage_property import (
    HADOOP_AUTHENTICATION,
    HDFS_CA_PATH,
    HDFS_CONNECT_TIMEOUT,
    HDFS_KEYTAB,
    HDFS_PRINCIPAL,
    HDFS_PROXY_USER,
    HDFS_READ_TIMEOUT,
    HDFS_TOKEN,
    HDFS_USER,
    TOKEN_FILES,
)

if TYPE_CHECKING:
    import requests

_LOG: Final = logging.getLogger(__name__)
_CONNECTIONS: Final = 32
BYTES: Final = "application/octet-stream"
"""The type of answers that are no JSON."""
_METRICS_S: Final = 10.0
TOKEN_KINDS: Final = ("WEBHDFS delegation", "HDFS_DELEGATION_TOKEN")
"""What `GETDELEGATIONTOKEN` gave, and what a job was started with; a name node takes both."""


class HdfsSession:
    """One pool of connections, shared by all threads.

    Proxies of the environment are not used: a cluster's own hosts are not behind them.

    Args:
        properties: `hdfs.user` (else `HADOOP_USER_NAME`, else the login name),
            `hdfs.proxy-user` (else `HADOOP_PROXY_USER`), `hdfs.ca-path` (certificates to trust),
            `hadoop.security.authentication` (`kerberos`: the ticket of `kinit`, or
            `hdfs.kerberos.principal` and `hdfs.kerberos.keytab`), `hdfs.delegation-token` (else
            one of those that `token_sources` has for `hadoop.token.files`, as it is at each call),
            `dfs.webhdfs.socket.connect-timeout` and `dfs.webhdfs.socket.read-timeout`.
        services: What tokens may call the cluster: of several only one for it is shown.
        name_nodes: `host:port` of those among which the active one is to be found.

    Attributes:
        active: Those of them that may be believed.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        services: Collection[str] = (),
        name_nodes: Collection[str] = (),
    ) -> None:
        self.user = (
            HDFS_USER.of(properties) or os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
        )
        self.connect_timeout_s = HDFS_CONNECT_TIMEOUT.of(properties)
        self.read_timeout_s = HDFS_READ_TIMEOUT.of(properties)
        self._ca_path = HDFS_CA_PATH.of(properties) or os.environ.get("REQUESTS_CA_BUNDLE")
        self._proxy_user = HDFS_PROXY_USER.of(properties) or os.environ.get("HADOOP_PROXY_USER")
        self._kerberos = HADOOP_AUTHENTICATION.of(properties) == "kerberos"
        self._principal = HDFS_PRINCIPAL.of(properties)
        self._keytab = HDFS_KEYTAB.of(properties)
        self._stated_token = HDFS_TOKEN.of(properties)
        self._token_sources: tuple[str, ...] = ()
        if self._keytab is None:
            self._token_sources = token_sources(TOKEN_FILES.of(properties))
        self._services = frozenset(services)
        self._name_nodes = frozenset(name_nodes)
        self.active = ActiveNameNodes(self._state)
        self._token()
        self.requests = self._session()

    @property
    def effective_user(self) -> str:
        """The user whose rights count."""
        return self._proxy_user or self.user

    def download(self, url: str) -> tuple[bytes, bool]:
        """All that a data node answers, and whether it said how much that is.

        Raises:
            requests.RequestException, urllib3.exceptions.HTTPError: it broke off, or was too slow.
            pyhdfs.HdfsException: it refused.
        """
        import pyhdfs

        with self.requests.get(url, stream=True, auth=_anonymous) as reply:
            pyhdfs._check_response(reply)  # noqa: SLF001 - its errors are those of other calls
            if (kind := content_type(reply)) != BYTES:
                raise pyhdfs.HdfsException(f"{kind or 'nothing'} came instead of a file")
            return bytes(reply.raw.read()), "Content-Length" in reply.headers

    def metrics(self, origin: str, bean: str) -> dict[str, Any]:
        """One bean of a name node's metrics; empty if it shows none.

        Args:
            origin: Where it is, as `http://host:port`.
            bean: The bean's name.

        Raises:
            requests.RequestException: it does not answer.
            FileIOError: it does not let us in.
        """
        url = f"{origin}/jmx?qry=Hadoop:service=NameNode,name={bean}"
        reply = self.requests.get(url, timeout=_METRICS_S)
        try:
            (found, *_) = reply.json()["beans"] if reply.ok else [{}]
        except (ValueError, KeyError, TypeError):
            found = {}
        return found if isinstance(found, dict) else {}

    def upload(self, url: str, location: str) -> HdfsUpload:
        """A stream to where a name node sent us."""
        parts = urlsplit(url)
        tls = None
        if parts.scheme == "https":
            tls = ssl.create_default_context(cafile=self._ca_path)
        target = f"{parts.path}?{parts.query}"
        return HdfsUpload((parts.scheme, parts.netloc, target), location, self.read_timeout_s, tls)

    def _may_be_believed(self, url: str) -> bool:
        """Whether who is asked here is the active one, where there are several."""
        parts = urlsplit(url)
        if parts.netloc not in self._name_nodes:
            return True
        return self.active.has(f"{parts.scheme}://{parts.netloc}")

    def _state(self, origin: str) -> str:
        import requests

        try:
            return str(self.metrics(origin, NAME_NODE_STATUS).get("State", "")).lower()
        except (FileIOError, requests.ReadTimeout):
            return ""

    def _token(self) -> str | None:
        """The token for this cluster as it is now: Hadoop's jobs are given new ones."""
        if self._stated_token is not None or not self._token_sources:
            return self._stated_token
        tokens = [token for source in self._token_sources for token in find_tokens(source)]
        for kind in TOKEN_KINDS:
            found = [token for token in tokens if token.kind == kind]
            ours = [token for token in found if token.service in self._services]
            # its service may be spelt otherwise; but a cluster without security asks for none
            if ours or (len(found) == 1 and self._kerberos):
                return (ours or found)[0].url_text
        return None

    def _session(self) -> requests.Session:
        import requests
        from requests.adapters import HTTPAdapter

        timeouts = (self.connect_timeout_s, self.read_timeout_s)
        may_be_believed = self._may_be_believed
        identity = self._identity()

        class Adapter(HTTPAdapter):
            """Every request has a time-out, those to data nodes, too, and so has its answer."""

            def init_poolmanager(self, *sizes: Any, **options: Any) -> None:
                super().init_poolmanager(*sizes, **options)
                self.poolmanager.pool_classes_by_scheme = timed_pools()

            def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:  # type: ignore[override]
                options["timeout"] = options.get("timeout") or timeouts
                with timed(_LOG, str(request.method), *_place(request.url or "")):
                    return super().send(request, **options)

        class Session(requests.Session):
            """Says who asks in every call to a name node."""

            def request(self, method: str, url: str, **options: Any) -> requests.Response:  # type: ignore[override]
                if (given := options.get("params")) is not None:
                    options["params"] = identity(given)
                    if not may_be_believed(url):
                        raise requests.ConnectionError(f"{urlsplit(url).netloc} is not active")
                try:
                    reply = super().request(method, url, **options)
                except requests.RequestException as error:
                    # not its text, which has the URL with the token in it
                    _LOG.info("%s does not answer: %s", urlsplit(url).netloc, type(error).__name__)
                    raise
                if _says(reply, b"StandbyException"):
                    _LOG.info("%s is a standby", urlsplit(url).netloc)
                if _says(reply, b"ObserverRetryOnActiveException"):
                    # pyhdfs does not know it; it goes on to the next one
                    raise requests.ConnectionError(f"{urlsplit(url).netloc} is an observer")
                # Hadoop answers so with 401 or 403, pyhdfs takes the latter for its own mistake
                identity_refused = _says(reply, b'"SecurityException"')
                if reply.status_code == HTTPStatus.UNAUTHORIZED or identity_refused:
                    raise _refused(reply)
                return reply

        session = Session()
        session.trust_env = False
        session.headers["Accept-Encoding"] = "identity"
        for scheme in ("http://", "https://"):
            session.mount(scheme, Adapter(pool_maxsize=_CONNECTIONS))
        if self._ca_path:
            session.verify = self._ca_path
        if self._kerberos:
            session.auth = SpnegoAuth(self._principal, self._keytab)
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
    """What an answer says it is, without parameters; empty if it does not say."""
    return reply.headers.get("Content-Type", "").partition(";")[0].strip()


def _place(url: str) -> tuple[str, str]:
    """Host and path, and the operation: nothing that is secret."""
    parts = urlsplit(url)
    operation = re.search(r"\bop=(\w+)", parts.query)
    return f"{parts.netloc}{parts.path}", operation[1] if operation else ""


def _anonymous(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """A data node is told who asks by the token in the URL that the name node made."""
    return request


def _says(reply: requests.Response, exception: bytes) -> bool:
    return reply.status_code == HTTPStatus.FORBIDDEN and exception in reply.content


def _refused(reply: requests.Response) -> FileIOError:
    host = urlsplit(reply.url).netloc
    wanted = reply.headers.get("WWW-Authenticate", "")
    hint = "get a new ticket with kinit, and look at klist"
    if reply.request.headers.get("Authorization") is None:
        hint = (
            "set hadoop.security.authentication=kerberos, and get a ticket with kinit"
            if "negotiate" in wanted.lower()
            else "check the user name, or the delegation token"
        )
    try:
        reason = reply.json()["RemoteException"]["message"]
    except (ValueError, KeyError, TypeError):
        reason = reply.reason
    return FileIOError(f"{host} does not let us in: {reason}", hint=hint)
