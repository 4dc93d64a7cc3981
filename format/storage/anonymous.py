"""Sessions of requests that tell a server nothing of the user but what each call says."""

from __future__ import annotations

from http.cookiejar import DefaultCookiePolicy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from requests import PreparedRequest, Session


def make_anonymous(session: Session) -> None:
    """Let a session keep no cookies, and take no login from `~/.netrc`, which may name any host."""
    session.auth = _as_it_is
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))


def _as_it_is(request: PreparedRequest) -> PreparedRequest:
    return request
