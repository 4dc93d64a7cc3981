"""The planner's identity in file systems and metastores: the user whose statement Spark runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import ConfigurationError
from icecomb.format.storage.delegation_token import DelegationToken, give_tokens
from icecomb.spark.planner.protocol.catalogs import Environment, Identity

if TYPE_CHECKING:
    from icecomb.catalog.configuration.configuration import Configuration

_SOURCE: Final = "Spark's user"


def acting_as(
    configuration: Configuration, environment: Environment, identity: Identity, holder: str
) -> Configuration:
    """Return a catalog's configuration for one user; users in its settings take precedence.

    Without Hadoop's security, services accept a user name. With it they require proof: the user's
    delegation tokens, else the ticket or the keytab of the application (also for a user on whose
    behalf a server acts, if the service permits impersonation). It fails if nothing proves who the
    user is: acting as the server instead would give the user its rights.

    Args:
        holder: The name under which `give_tokens` holds the user's tokens.
    """
    from icecomb.catalog.configuration.catalog_property import METASTORE_PROXY_USER, UGI
    from icecomb.format.storage.storage_property import (
        HADOOP_AUTHENTICATION,
        HDFS_PROXY_USER,
        HDFS_USER,
        TOKEN_FILES,
    )

    given = give_tokens(holder, identity.tokens)
    found = configuration.properties
    kept = found.get(TOKEN_FILES.key) if identity.login else None
    secured = identity.secured or HADOOP_AUTHENTICATION.of(found) == "kerberos"
    acted_for = identity.real_user is not None
    known = {UGI.key: identity.user}
    if not secured:
        known[HDFS_USER.key] = identity.real_user or identity.user
    # the ticket is the server's: requests made with it are on behalf of this user
    if acted_for or not identity.login:
        known[METASTORE_PROXY_USER.key] = identity.user
    if acted_for or (secured and not identity.login):
        known[HDFS_PROXY_USER.key] = identity.user
    if identity.secured and not (acted_for or identity.login or identity.tokens):
        raise ConfigurationError(
            f"Catalog {configuration.name}: nothing proves to a secured cluster that "
            f"{identity.user} asks: Spark has neither a ticket nor a delegation token of this user",
            hint=f"start an application for {identity.user}: spark-submit --proxy-user",
        )
    tokens = {TOKEN_FILES.key: ",".join(filter(None, (given, kept)))}
    if (identity.login or acted_for) and not kept:
        known |= _keytabs(found, environment, identity.tokens)
    return configuration.over(known, _SOURCE).under(tokens, _SOURCE)


def _keytabs(
    properties: Mapping[str, str], environment: Environment, tokens: Sequence[str]
) -> dict[str, str]:
    """Return the application's keytab for services without a token or a key of the catalog."""
    from icecomb.catalog.configuration.catalog_property import KEYTAB, PRINCIPAL
    from icecomb.catalog.hive.thrift.security import TOKEN_KIND
    from icecomb.format.storage.hdfs.session import TOKEN_KINDS
    from icecomb.format.storage.storage_property import HDFS_KEYTAB, HDFS_PRINCIPAL

    if environment.keytab is None or environment.principal is None:
        return {}
    shown = {DelegationToken.of_url_text(token).kind for token in tokens}
    found: dict[str, str] = {}
    for kinds, principal, keytab in (
        (TOKEN_KINDS, HDFS_PRINCIPAL, HDFS_KEYTAB),
        ((TOKEN_KIND,), PRINCIPAL, KEYTAB),
    ):
        if shown.isdisjoint(kinds) and properties.keys().isdisjoint((principal.key, keytab.key)):
            found |= {principal.key: environment.principal, keytab.key: environment.keytab}
    return found


def of_others(hadoop: Mapping[str, str]) -> dict[str, str]:
    """Return Hadoop's settings without Spark Hive support's login to an embedded metastore.

    Another metastore must not be sent that token, and connections find their own.
    """
    from icecomb.catalog.configuration.metastore_folder import SIGNATURE

    if hadoop.get("hive.metastore.token.signature") != SIGNATURE:
        return dict(hadoop)
    own = {"hive.metastore.sasl.enabled", "hive.metastore.token.signature", "hadoop.token.files"}
    return {key: value for key, value in hadoop.items() if key not in own}
