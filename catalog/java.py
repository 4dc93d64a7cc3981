"""Java on this machine: its location, its version, and compilation of icecomb's few classes.

A wheel has its jars ready-made and only needs a Java runtime. A checkout has sources: they are
compiled once with the JDK and kept in the user's cache under a key computed from them.
"""

from __future__ import annotations

import functools
import logging
import os
import re
import secrets
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from icecomb.format.errors import JavaError
from icecomb.format.private_path import make_private, may_be_written, open_part
from icecomb.format.process import is_own

MINIMUM_VERSION: Final = 17
"""The oldest Java major version that Spark 4 and the embedded metastore run on."""

_INSTALL_JRE: Final = (
    "Install Java 17 or later (Debian: apt-get install openjdk-17-jre-headless), or set JAVA_HOME."
)
_INSTALL_JDK: Final = (
    "Install a JDK, not only a runtime (Debian: apt-get install openjdk-17-jdk-headless), "
    "or install icecomb from a wheel, which carries its jars ready-made."
)
_COMPILE_TIMEOUT_S: Final = 300.0
_NEEDED: Final = frozenset(
    {"HADOOP_USER_NAME", "HOME", "LANG", "LOGNAME", "PATH", "TEMP", "TMP", "TMPDIR", "TZ", "USER"}
)
_NEEDED_STARTS: Final = (
    *("JAVA_", "JDK_", "_JAVA_"),
    *("LC_", "LD_", "DYLD_", "NSS_WRAPPER_", "XDG_"),
)
_LOG: Final = logging.getLogger(__name__)


def find_java() -> Path:
    """Find the ``java`` of ``JAVA_HOME``, else the first one on ``PATH``."""
    return _find("java", _INSTALL_JRE)


def find_javac() -> Path:
    """Find the ``javac`` of ``JAVA_HOME``, else the first one on ``PATH``."""
    return _find("javac", _INSTALL_JDK)


def java_environment(*more: str) -> dict[str, str]:
    """Return the variables for a child that needs no credentials: no others are passed on.

    Args:
        more: The beginnings of names, in any case, of what it needs besides what a Java does.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if name in _NEEDED or name.startswith(_NEEDED_STARTS) or name.lower().startswith(more)
    }


def java_version(java: Path | None = None) -> int:
    """Return the major version, such as 17 or 21, of ``java`` (default: `find_java`)."""
    path = java or find_java()
    return _version(str(path))


def require_java() -> Path:
    """Find a Java that is new enough: `MINIMUM_VERSION`."""
    java = find_java()
    version = java_version(java)
    if version < MINIMUM_VERSION:
        raise JavaError(
            f"{java} is Java {version}; Java {MINIMUM_VERSION} or later is needed",
            hint=_INSTALL_JRE,
        )
    return java


def private_cache(name: str) -> Path:
    """Return a folder of the user's cache, which is made if it is missing.

    What is in it is run: no other user may be able to exchange it.
    """
    from platformdirs import user_cache_path

    # Java would remove the dots of a class path by itself
    folder = Path(os.path.normpath(user_cache_path("icecomb").absolute() / name))
    hint = "Take others' right to write there away, or point XDG_CACHE_HOME at a folder of yours."
    try:
        part = make_private(folder.parent.parent)
        for each in (folder.parent, folder):
            if part is None:
                each.mkdir(mode=0o700, exist_ok=True)
                found = each.lstat()
                if found.st_uid == os.geteuid() and may_be_written(each, found):
                    _set_aside(each)
                part = open_part(each)
    except OSError as error:
        raise JavaError(f"{folder} cannot be used: {error.strerror or error}", hint=hint) from error
    if part is not None:
        raise JavaError(f"{folder} is not used: {part} is open to other users", hint=hint)
    return folder


def _set_aside(folder: Path) -> None:
    """Replace a folder of the cache by a new one: others may have put files into the old one."""
    aside = folder.with_name(f"{folder.name}-{secrets.token_hex(4)}")
    folder.rename(aside)
    _LOG.warning("%s was open to other users: it is %s now, and a new one is used", folder, aside)
    folder.mkdir(mode=0o700, exist_ok=True)


def compile_jar(sources: Sequence[Path], classpath: str, name: str, key: str) -> Path:
    """Compile ``sources`` to a jar, once per ``key``, and keep it in the user's cache.

    Args:
        name: The jar's name without ``.jar``.
        key: Identifies a version of sources and class path; a new key is a new jar.
    """
    from filelock import FileLock

    folder = private_cache("jars")
    jar = folder / f"{name}-{key}.jar"
    if jar.is_file() and is_own(jar.stat()):
        return jar
    javac = find_javac()
    try:
        with FileLock(folder / f"{name}.lock"):
            if not (jar.is_file() and is_own(jar.stat())):
                _LOG.info("compiling %s.jar, once for this version; it takes a while", name)
                _compile(javac, sources, classpath, jar)
    except OSError as error:
        raise JavaError(
            f"The compiled {name}.jar cannot be kept in {folder}: {error}",
            hint="Free space there, or point XDG_CACHE_HOME at a writable folder.",
        ) from error
    return jar


def _compile(javac: Path, sources: Sequence[Path], classpath: str, jar: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="icecomb-javac-", dir=jar.parent) as scratch:
        classes = Path(scratch) / "classes"
        command = [
            *(str(javac), "--release", str(MINIMUM_VERSION), "-nowarn", "-proc:none"),
            *("-encoding", "UTF-8", "-cp", classpath, "-d", str(classes)),
            *(str(source) for source in sources),
        ]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=_COMPILE_TIMEOUT_S,
                check=False,
                env=java_environment(),
            )
        except subprocess.TimeoutExpired as error:
            raise JavaError(
                f"{javac} did not end within {_COMPILE_TIMEOUT_S:.0f} s",
                hint="Check whether the machine is overloaded, and try again.",
            ) from error
        if done.returncode != 0:
            complaint = (done.stderr or done.stdout).strip()[-2000:]
            raise JavaError(
                f"{jar.name} cannot be compiled by {javac}:\n{complaint}",
                hint="Check that JAVA_HOME names a complete JDK, and that the jars fit together.",
            )
        draft = Path(scratch) / jar.name
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
            content = {"META-INF/MANIFEST.MF": b"Manifest-Version: 1.0\r\n\r\n"}
            for path in sorted(classes.rglob("*.class")):
                content[path.relative_to(classes).as_posix()] = path.read_bytes()
            for name, data in content.items():
                # the same sources give the same jar, whenever they are compiled
                entry = zipfile.ZipInfo(name)
                archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
        draft.replace(jar)


def _find(program: str, hint: str) -> Path:
    home = os.environ.get("JAVA_HOME")
    if home:
        path = Path(home) / "bin" / program
        if path.is_file():
            return path
        if program == "java" or not Path(home).is_dir():
            raise JavaError(f"JAVA_HOME is {home}, but there is no {path}", hint=hint)
        raise JavaError(f"The Java in JAVA_HOME ({home}) has no {program}", hint=hint)
    found = shutil.which(program)
    if found is None:
        raise JavaError(f"There is no {program} on PATH and JAVA_HOME is not set", hint=hint)
    return Path(found)


@functools.cache
def _version(java: str) -> int:
    try:
        done = subprocess.run(
            [java, "-version"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=java_environment(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaError(f"{java} cannot be run: {error}", hint=_INSTALL_JRE) from error
    text = done.stderr + done.stdout
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    if done.returncode != 0 or found is None:
        raise JavaError(f"{java} -version failed: {text.strip()[:500]}", hint=_INSTALL_JRE)
    return int(found[1])
