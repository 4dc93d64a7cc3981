"""A real key distribution centre on 127.0.0.1, on the JVM: Apache Kerby, realm TEST.LAB."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from icecomb.catalog.java import find_java
from tests.peers.ivy import fetch_all
from tests.peers.ports import free_ports

REALM = "TEST.LAB"
_KERBY = "org.apache.kerby:kerb-simplekdc:2.0.3"
_CONFIGURATION = """[libdefaults]
  default_realm = {realm}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
[realms]
  {realm} = {{
    kdc = 127.0.0.1:{port}
  }}
[domain_realm]
  localhost = {realm}
"""


class Kdc:
    """`.configuration` is its krb5.conf, `keytab(name)` a key.

    Args:
        folder: Where it keeps its data.
        principals: Without realm, as `alice` and `hive/localhost`.
    """

    def __init__(self, folder: Path, *principals: str) -> None:
        self.folder = folder
        self.configuration = folder / "client-krb5.conf"
        self._principals = principals
        self._process: subprocess.Popen[bytes] | None = None

    def keytab(self, name: str) -> Path:
        """The keytab of a principal, by the part before the slash."""
        return self.folder / f"{name}.keytab"

    def tickets(self, name: str) -> str:
        """The ticket cache of a person who has said who they are, for `KRB5CCNAME`."""
        return f"FILE:{self.folder / f'{name}.ccache'}"

    def start(self) -> Kdc:
        """Waits until it serves."""
        (port,) = free_ports(1)
        self.configuration.write_text(_CONFIGURATION.format(realm=REALM, port=port))
        classes = f"{fetch_all(_KERBY)}/*"
        source = Path(__file__).with_name("Kdc.java")
        command = [str(find_java()), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx96m"]
        command += ["-cp", classes, str(source), str(self.folder), str(port), REALM]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, *self._principals],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )
        end = time.monotonic() + 120
        while time.monotonic() < end and self._process.poll() is None:
            if (self.folder / "ready").exists():
                return self
            time.sleep(0.1)
        self.stop()
        raise RuntimeError(f"the KDC did not start:\n{(self.folder / 'log').read_text()[-3000:]}")

    def stop(self) -> None:
        """Ends it."""
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.terminate()
            try:
                self._process.wait(15)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
