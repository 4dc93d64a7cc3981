"""Sessions of boto3 with the configured keys, those boto3 finds, or a role assumed with these.

boto3 renews the credentials it finds (roles of machines and containers, web identities, programs
and logins of profiles); an assumed role is renewed here.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from icecomb.format.log_filter import hide_secrets
from icecomb.format.optional_library import optional_library
from icecomb.format.storage.object_store.client import remember_sent, whole_answer
from icecomb.format.storage.time_limit import PacedConnection, TimedResponse

if TYPE_CHECKING:
    import urllib3

    from icecomb.format.storage.object_store.s3_settings import S3Settings


def boto_session(settings: S3Settings) -> Any:
    """Return a session of boto3 for the settings."""
    boto3 = optional_library("boto3", "S3 needs boto3", "icecomb[s3]")
    from botocore.httpsession import ProxyConfiguration

    hide_secrets("botocore", "urllib3.connectionpool")
    session = boto3.session.Session(
        aws_access_key_id=settings.access_key,
        aws_secret_access_key=settings.secret_key,
        aws_session_token=settings.session_token,
        profile_name=settings.profile,
        region_name=settings.region,
    )
    _limit_clients(session._session)  # noqa: SLF001 - boto3 has no public way
    # those of the machine and of containers are asked without TLS: a proxy would get the keys
    for provider in session._session.get_component("credential_provider").providers:  # noqa: SLF001 - as above
        for name in ("_role_fetcher", "_fetcher"):
            if http := getattr(getattr(provider, name, None), "_session", None):
                _limit(http)
                http._proxy_config = ProxyConfiguration()  # noqa: SLF001 - as above
    if settings.role_arn is None:
        return session
    from botocore.config import Config
    from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials
    from botocore.exceptions import NoCredentialsError
    from botocore.session import get_session

    keys = session.get_credentials()
    if keys is None:
        raise NoCredentialsError
    proxies = {"http": settings.proxy, "https": settings.proxy} if settings.proxy else None

    def configured(service: str, **options: Any) -> Any:
        return session._session.create_client(  # noqa: SLF001 - as above
            service,
            **options,
            endpoint_url=settings.sts_endpoint,
            region_name=settings.sts_region or session.region_name or "us-east-1",
            verify=settings.ca_path,
            config=Config(proxies=proxies, connect_timeout=settings.connect_timeout_s),
        )

    fetcher = AssumeRoleCredentialFetcher(
        client_creator=configured,
        source_credentials=keys,
        role_arn=settings.role_arn,
        extra_args=dict(settings.role),
    )
    assumed: Any = get_session()
    _limit_clients(assumed)
    assumed._credentials = DeferredRefreshableCredentials(  # noqa: SLF001 - as above
        method="assume-role", refresh_using=fetcher.fetch_credentials
    )
    return boto3.session.Session(botocore_session=assumed, region_name=session.region_name)


def _limit_clients(session: Any) -> None:
    """Limit the responses of all clients that are made: botocore makes some, to get credentials."""
    create = session.create_client

    def created(*options: Any, **others: Any) -> Any:
        client = create(*options, **others)
        is_store = client.meta.service_model.service_name == "s3"
        _limit(client._endpoint.http_session, is_store=is_store)  # noqa: SLF001 - as above
        return client

    session.create_client = created


def _limit(http: Any, *, is_store: bool = False) -> None:
    """Limit the responses, in time, and in bytes unless they are files."""
    http._pool_classes_by_scheme.update(_timed_pools())  # noqa: SLF001 - as above
    send = http.send

    def sent(request: Any) -> Any:
        # that of a role or of the machine is renewed; STS and SSO get theirs in the body
        remember_sent(request.headers, None if is_store else request.body)
        is_file, request.stream_output = request.stream_output, True
        found = send(request)
        if not is_file or found.status_code >= 300:
            with closing(found.raw):
                found._content = whole_answer(found.raw.read, request.method, request.url)  # noqa: SLF001
        return found

    http.send = sent


def _timed_pools() -> dict[str, type[urllib3.HTTPConnectionPool]]:
    """Return `timed_pools` for boto3, whose connections differ."""
    from botocore import awsrequest

    class Plain(PacedConnection, awsrequest.AWSHTTPConnection):  # type: ignore[misc]
        response_class = TimedResponse  # type: ignore[assignment]

    class Secure(PacedConnection, awsrequest.AWSHTTPSConnection):  # type: ignore[misc]
        response_class = TimedResponse  # type: ignore[assignment]

    class Direct:
        """A pool that never looks where a response sends: urllib3 fails on 303 for boto3."""

        def urlopen(self, *options: Any, **named: Any) -> Any:
            return super().urlopen(*options, **{**named, "redirect": False})  # type: ignore[misc]

    class PlainPool(Direct, awsrequest.AWSHTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(Direct, awsrequest.AWSHTTPSConnectionPool):
        ConnectionCls = Secure

    return {"http": PlainPool, "https": SecurePool}
