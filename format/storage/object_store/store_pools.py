"""Connections to stores whose responses have a time limit, and few interim ones."""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING, Final

from icecomb.format.storage.hdfs.time_limit import TimedResponse, timed_pools

if TYPE_CHECKING:
    import urllib3

_INTERIM: Final = 16


class StoreResponse(TimedResponse):
    """A timed response after at most some interim ones, such as `100 Continue`."""

    _interim = 0

    def _read_status(self) -> tuple[str, int, str]:
        self._interim += 1
        if self._interim > _INTERIM:
            raise http.client.HTTPException("more interim responses than any server sends")
        found: tuple[str, int, str] = super()._read_status()  # type: ignore[misc]
        return found


def store_pools() -> dict[str, type[urllib3.HTTPConnectionPool]]:
    """Return classes of connection pools with `StoreResponse` responses, by scheme."""
    pools = timed_pools(lambda *_: None)
    for each in pools.values():
        each.ConnectionCls.response_class = StoreResponse  # type: ignore[attr-defined]
    return pools


def boto_pools() -> dict[str, type[urllib3.HTTPConnectionPool]]:
    """Return the same for boto3, whose connections differ."""
    from botocore import awsrequest

    class Plain(awsrequest.AWSHTTPConnection):
        response_class = StoreResponse  # type: ignore[assignment]

    class Secure(awsrequest.AWSHTTPSConnection):
        response_class = StoreResponse  # type: ignore[assignment]

    class PlainPool(awsrequest.AWSHTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(awsrequest.AWSHTTPSConnectionPool):
        ConnectionCls = Secure

    return {"http": PlainPool, "https": SecurePool}
