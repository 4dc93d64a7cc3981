"""Base of the clients of stores with an HTTP API: requests, sent once or repeated.

A URL may contain a signature, and an exception of the library the URL: neither gets into an error.

Only a store's own error documents prove that a request was not executed, or that a name is
missing. A proxy responds on its own: its 404 in plain text counts as a lost response.
"""

from __future__ import annotations

import email.utils
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

from icecomb.format.arrow.batch_stream import thread_pool
from icecomb.format.errors import FileIOError, IcecombError, NoSuchFileError
from icecomb.format.log_filter import hide_secrets
from icecomb.format.secret import without_secrets
from icecomb.format.storage.anonymous import make_anonymous
from icecomb.format.storage.object_store.client import (
    AnswerLostError,
    ObjectClient,
    ReadPiece,
    StoreBusyError,
    StoreFacts,
    causes,
    in_range,
    is_untrusted,
    parsed,
    remember_sent,
    torn,
    whole_answer,
)
from icecomb.format.storage.object_store.creation import answered
from icecomb.format.storage.time_limit import timed_pools

if TYPE_CHECKING:
    from requests import PreparedRequest, Response, Session

T = TypeVar("T")

_CONNECT_S: Final = 10.0
ANSWER_S: Final = 60.0
_LOGGERS: Final = ("azure", "msal", "google")
"""Some of these are made by the first call."""


class Signer(ABC):
    """A thread-safe signer, which adds credentials to requests; `who` has no secrets."""

    def __init__(self, who: str, source: str) -> None:
        self.who = who
        self.source = source

    def close(self) -> None:  # noqa: B027 - most hold none
        """Close the connections that are kept open; the signer stays usable."""

    @abstractmethod
    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        """Sign and return the request."""


def limited_session() -> Session:
    """Return a session for a library that gets credentials: answers end, in time and in bytes.

    What is asked without TLS is the machine itself: it is behind no proxy, which would get them.
    """

    def sent(request: PreparedRequest) -> PreparedRequest:
        hide_secrets(*_LOGGERS)
        remember_sent(request.headers, request.body)
        return request

    def read(response: Response, **_: Any) -> None:
        request = response.request
        raw = partial(response.raw.read, decode_content=True)
        with closing(response.raw):
            # requests offers no other place for it
            response._content = whole_answer(raw, str(request.method), str(request.url))  # noqa: SLF001

    # requests calls the hook before it reads the rest
    hide_secrets(*_LOGGERS)
    session = _timed_session(plain_by_proxy=False)
    session.auth = sent
    session.hooks["response"].append(read)
    # what is sent to get credentials is for one host
    session.max_redirects = 0
    return session


def _timed_session(
    *, plain_by_proxy: bool = True, redirections: bool = True, **pool: Any
) -> Session:
    from requests import Session
    from requests.adapters import HTTPAdapter

    class Adapter(HTTPAdapter):
        def send(self, request: PreparedRequest, **options: Any) -> Response:  # type: ignore[override]
            if not plain_by_proxy and str(request.url).startswith("http://"):
                options["proxies"] = {}
            return super().send(request, **options)

        def init_poolmanager(self, *sizes: Any, **options: Any) -> None:
            super().init_poolmanager(*sizes, **options)
            self.poolmanager.pool_classes_by_scheme = timed_pools()

        def proxy_manager_for(self, *proxy: Any, **options: Any) -> Any:
            found: Any = super().proxy_manager_for(*proxy, **options)
            found.pool_classes_by_scheme = timed_pools()
            return found

    class OneHost(Session):
        def get_redirect_target(self, resp: Response) -> str | None:
            # also for a redirection that is not followed requests reads the body, to any length,
            # and where it cannot decode the target, the connection is never free again
            return super().get_redirect_target(resp) if redirections else None

    hide_secrets("urllib3.connectionpool")
    session = OneHost()
    make_anonymous(session)
    for scheme in ("https://", "http://"):
        session.mount(scheme, Adapter(**pool))
    return session


class RestClient(ObjectClient):
    """A client of one bucket over HTTP; None as `proxy` means no proxy of its own."""

    always: Sequence[str] = ()
    """Headers of every response of the store, which a login page does not have."""

    def __init__(
        self,
        signer: Signer,
        base: str,
        *,
        at_once: int,
        attempts: int,
        proxy: str | None = None,
    ) -> None:
        self._signer = signer
        self._base = base
        self._at_once = at_once
        self._proxies = {"http": proxy, "https": proxy} if proxy else None
        self._session = self._connected()
        self.attempts = attempts

    def _connected(self) -> Session:
        # wait for a free connection instead of opening more
        session = _timed_session(redirections=False, pool_maxsize=self._at_once, pool_block=True)
        session.headers.update({"User-Agent": "icecomb", "Accept-Encoding": "identity"})
        return session

    def close(self) -> None:
        """Implement `ObjectClient.close`."""
        self._session.close()
        self._signer.close()

    @abstractmethod
    def refused(self, verb: str, location: str, response: Response) -> IcecombError:
        """Return the error for a response that refuses a request; `verb` is such as `read`."""

    def ask_once(
        self,
        method: str,
        url: str,
        location: str,
        verb: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        data: Any = None,
        also: Sequence[int] = (),
        needs: Sequence[str] = (),
        body: Callable[[Response], bytes] | None = None,
    ) -> Response:
        """Send a request once.

        StoreBusyError means that it was not executed; AnswerLostError that it may have been.

        Args:
            url: URL without the query.
            headers: Headers in addition to those of all requests.
            also: Status codes accepted in addition to success.
            needs: Headers that every such response of the store has.
            body: Function that reads the bytes of a file from a success.
        """
        with parsed(verb, location):
            response = self._sent(
                method, url, location, verb, body, params=params, headers=headers, data=data
            )
            if response.status_code in also:
                return response
            if response.status_code >= 300:
                raise self.refused(verb, location, response)
        for name in (*self.always, *needs):
            if name not in response.headers:
                raise torn(verb, location, name)
        return response

    def _sent(
        self,
        method: str,
        url: str,
        location: str,
        verb: str,
        body: Callable[[Response], bytes] | None,
        **others: Any,
    ) -> Response:
        """Send a request, and read the response to its end, never decompressed."""
        import requests
        from urllib3.exceptions import HTTPError

        response = None
        try:
            response = self._session.request(
                method,
                url,
                auth=self._signer,
                allow_redirects=False,
                timeout=(_CONNECT_S, ANSWER_S),
                proxies=self._proxies,
                stream=True,
                **others,
            )
            is_done = response.status_code < 300
            # a response without a length may be truncated anywhere
            ends = ("Content-Length", "Transfer-Encoding")
            if is_done and method == "GET" and not any(name in response.headers for name in ends):
                raise torn(verb, location, "length")
            if body is not None and is_done:
                content = body(response)
            elif response.headers.get("Content-Encoding", "identity").lower() != "identity":
                raise torn(verb, location, "encoding that was asked for")
            else:
                content = whole_answer(_pieces(response), verb, location)
        except (requests.RequestException, HTTPError) as error:
            raise _failed(verb, location, url, error) from None
        finally:
            if response is not None:
                response.close()
        response._content = content  # noqa: SLF001 - requests itself would decompress it
        return response

    def ask(self, method: str, url: str, location: str, verb: str, **others: Any) -> Response:
        """Send a request that is safe to repeat; see `ask_once`."""
        once = partial(self.ask_once, method, url, location, verb, **others)
        return self.answered(verb, location, once)

    def answered(self, verb: str, location: str, ask: Callable[[], T]) -> T:
        """Return what `ask` makes of the response to a request that is safe to repeat."""

        def once() -> T:
            with parsed(verb, location):
                return ask()

        return answered(once, self.attempts)

    @abstractmethod
    def look(self, location: str) -> Response:
        """Return the response to a request that only an existing bucket accepts."""

    def facts(self, location: str) -> StoreFacts:
        """Implement `ObjectClient.facts`."""
        date = self.look(location).headers.get("Date")
        with parsed("access", location):
            clock_ahead_s = time.time() - http_time_ms(date) / 1000 if date else None
        return StoreFacts(
            where=without_secrets(self._base),
            who=self._signer.who,
            source=self._signer.source,
            clock_ahead_s=clock_ahead_s,
        )

    def read_range(
        self,
        url: str,
        location: str,
        start: int,
        length: int | None,
        *,
        params: Mapping[str, str] | None = None,
        look: Callable[[], object] | None = None,
    ) -> tuple[bytes, Mapping[str, str]]:
        """Read a range like `ObjectClient.read`; return it with the response's headers.

        Args:
            length: Number of bytes; None = all that follow.
            look: Function that raises if the object is missing, called if a 404 may not be the
                store's.
        """
        if length == 0:
            return b"", {}
        headers: dict[str, str] = {}
        if start or length is not None:
            end = "" if length is None else str(start + length - 1)
            headers["Range"] = f"bytes={start}-{end}"

        def body(response: Response) -> bytes:
            whole, said = response.status_code == 200, response.headers.get("Content-Range")
            return in_range(_pieces(response), said, location, start, length, whole=whole)

        def once() -> tuple[bytes, Mapping[str, str]]:
            try:
                response = self.ask_once(
                    "GET",
                    url,
                    location,
                    "read",
                    params=params,
                    headers=headers,
                    also=(416,) if headers else (),
                    body=body,
                )
            except AnswerLostError as error:
                if look is not None and error.context.get("status") == 404:
                    look()
                raise
            return b"" if response.status_code == 416 else response.content, response.headers

        return self.answered("read", location, once)

    def delete(self, keys: Sequence[str], location: str) -> dict[str, str]:
        """Implement `ObjectClient.delete` with concurrent requests, one per object."""

        def reason(key: str) -> str | None:
            try:
                self.delete_one(key, location)
            except NoSuchFileError:
                return None
            except FileIOError as error:
                return error.message
            return None

        if len(keys) == 1:
            reasons = [reason(keys[0])]
        else:
            with thread_pool(self._at_once) as pool:
                reasons = [*pool.map(reason, keys)]
        return {key: why for key, why in zip(keys, reasons, strict=True) if why is not None}

    @abstractmethod
    def delete_one(self, key: str, location: str) -> None:
        """Delete an object; NoSuchFileError if there is none."""


def http_time_ms(text: str) -> int:
    """Parse an HTTP date; return milliseconds since the epoch."""
    return int(email.utils.parsedate_to_datetime(text).timestamp() * 1000)


def _pieces(response: Response) -> ReadPiece:
    return partial(response.raw.read, decode_content=False)


def _failed(verb: str, location: str, url: str, error: Exception) -> IcecombError:
    """Return the error for a request that was not sent, or got no response."""
    import requests

    place = urlsplit(url)
    host = f"{place.hostname}:{place.port}" if place.port else place.hostname
    message = f"Cannot {verb} {location}"
    if is_untrusted(error):
        return FileIOError(
            f"{message}: this machine does not trust the TLS certificate of {host}",
            hint="Set REQUESTS_CA_BUNDLE to a file with the authorities to trust.",
            path=location,
        )
    if (reason := _unsent(error)) is not None:
        return StoreBusyError(
            f"{message}: {host} was not reached ({type(reason).__name__})",
            hint="Check the configured endpoint, the network and the proxy.",
            path=location,
        )
    hint = "The connection broke: try again."
    if isinstance(error, requests.exceptions.SSLError):
        hint = "The connection broke: try again. Does the configured endpoint speak TLS?"
    return AnswerLostError(
        f"{message}: {host} did not answer ({type(error).__name__})", hint=hint, path=location
    )


def _unsent(error: Exception) -> BaseException | None:
    """Return the reason why there was no connection to the store; None if there may have been one.

    For urllib3 a connection that broke after the request is an error of the proxy, too.
    """
    from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

    for each in causes(error):
        if isinstance(each, NewConnectionError | ConnectTimeoutError):
            return each
        # what `http.client` raises if a proxy refuses to connect
        if isinstance(each, OSError) and str(each).startswith("Tunnel connection failed: "):
            return error
    return None
