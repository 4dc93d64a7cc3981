"""Settings that the documentation of others calls secret are secret here."""

from __future__ import annotations

import re
import zipfile

import pytest

from icecomb.format.secret import HIDDEN, is_secret, shown
from icecomb.spark.conf import SECRETS
from tests.peers.ivy import pyspark_jars
from tests.secret_settings import SETTINGS

NAMES = {
    "hadoop.security.sensitive-config-keys", "fs.s3a.encryption.algorithm", "fs.s3a.encryption.context",
    "fs.adl.oauth2.client.id", "fs.adl.oauth2.refresh.url", "fs.adl.oauth2.msi.port",
    "fs.adl.oauth2.devicecode.clientapp.id", "fs.gs.auth.type",
    "fs.gs.auth.service.account.json.keyfile", "fs.gs.auth.client.id",
}  # fmt: skip
"""What Hadoop's patterns hide, too: kinds, files and addresses, none of which lets anybody in."""


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_that_is_secret_elsewhere_is_shown_to_nobody(name: str) -> None:
    assert shown(name, "value") == HIDDEN
    assert re.search(SECRETS, f"spark.hadoop.{name}")


def test_what_hadoop_itself_hides_of_its_defaults_is_secret() -> None:
    [jar] = pyspark_jars().glob("hadoop-client-api-*.jar")
    with zipfile.ZipFile(jar) as classes:
        text = classes.read("core-default.xml").decode()
    names = set(re.findall(r"<name>\s*(.*?)\s*</name>", text))
    [said] = re.findall(
        r"<name>hadoop.security.sensitive-config-keys</name>\s*<value>(.*?)</", text, re.DOTALL
    )
    patterns = re.split(r"[\s,]+", said.strip())
    hidden = {name for name in names if any(re.search(one, name) for one in patterns)}
    assert len(hidden) > 20
    assert {name for name in hidden if not is_secret(name)} == NAMES


def test_other_settings_are_not_secret() -> None:
    plain = {"uri", "warehouse", "s3.endpoint", "s3.profile-name", "hive.metastore.client.keytab"}
    plain |= {"hadoop.security.authorization", "write.pass-through", "PWD"}
    assert {name for name in plain if is_secret(name)} == set()
