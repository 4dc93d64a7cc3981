"""Sessions of boto3 with the configured keys, those boto3 finds, or a role assumed with these.

boto3 renews the credentials it finds (roles of machines and containers, web identities, programs
and logins of profiles); an assumed role is renewed here.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from icecomb.format.optional_library import optional_library

if TYPE_CHECKING:
    from icecomb.format.storage.object_store.s3_settings import S3Settings


def boto_session(settings: S3Settings) -> Any:
    """Return a session of boto3 for the settings."""
    boto3 = optional_library("boto3", "S3 needs boto3", "icecomb[s3]")
    session = boto3.session.Session(
        aws_access_key_id=settings.access_key,
        aws_secret_access_key=settings.secret_key,
        aws_session_token=settings.session_token,
        profile_name=settings.profile,
        region_name=settings.region,
    )
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
    fetcher = AssumeRoleCredentialFetcher(
        client_creator=partial(
            session._session.create_client,  # noqa: SLF001 - boto3 has no public way
            endpoint_url=settings.sts_endpoint,
            region_name=settings.sts_region or session.region_name or "us-east-1",
            verify=settings.ca_path,
            config=Config(proxies=proxies, connect_timeout=settings.connect_timeout_s),
        ),
        source_credentials=keys,
        role_arn=settings.role_arn,
        extra_args=dict(settings.role),
    )
    assumed: Any = get_session()
    assumed._credentials = DeferredRefreshableCredentials(  # noqa: SLF001 - as above
        method="assume-role", refresh_using=fetcher.fetch_credentials
    )
    return boto3.session.Session(botocore_session=assumed, region_name=session.region_name)
