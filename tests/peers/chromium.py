"""Headless Chromium: what a browser makes of a page, as a document and as a picture."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

_NAMES = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
_SECONDS = 120
Pixels = npt.NDArray[np.uint8]


def find_or_install() -> str:
    """The browser; where this is Debian and we are root, its package is installed once.

    Raises:
        FileNotFoundError: There is none.
    """
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    apt = shutil.which("apt-get")
    if found is None and os.getuid() == 0 and apt is not None:
        subprocess.run([apt, "update", "-qq"], check=True, timeout=_SECONDS * 5)
        install = [apt, "install", "-qq", "-y", "--no-install-recommends", "chromium"]
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(install, check=True, timeout=_SECONDS * 5, env=environment)
        found = shutil.which("chromium")
    if found is None:
        raise FileNotFoundError("these tests need Chromium; on Debian: apt install chromium")
    return found


class Chromium:
    """One browser with a profile of its own, started anew for each look.

    Args:
        folder: Its profile, and what it makes.
    """

    def __init__(self, folder: Path) -> None:
        self._program = find_or_install()
        self._folder = folder

    def document(self, page: Path, *, width: int = 1100) -> str:
        """The document after the page was loaded and whatever it would run has run, as HTML."""
        return self._run(page, f"--window-size={width},1200", "--dump-dom")

    def picture(self, page: Path, *, width: int = 1100, dark: bool = False) -> Pixels:
        """The first screen: height x width x 3."""
        shot = self._folder / f"{page.stem}-{width}-{dark}.png"
        # Blink's preferredColorScheme: 0 is dark, 1 is light
        scheme = f"--blink-settings=preferredColorScheme={int(not dark)}"
        self._run(page, f"--window-size={width},1200", scheme, f"--screenshot={shot}")
        return _pixels(shot.read_bytes())

    def _run(self, page: Path, *options: str) -> str:
        command = [
            self._program,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            # whatever asks for a host gets none
            "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--user-data-dir={self._folder / 'profile'}",
            "--hide-scrollbars",
            "--virtual-time-budget=3000",
            *options,
            page.as_uri(),
        ]
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        return done.stdout.decode()


def _pixels(png: bytes) -> Pixels:
    """A PNG of 8 bits a channel (PNG specification, sections 5 and 9)."""
    at, packed, shape = 8, b"", (0, 0, 0)
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        kind, body = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, color, *_, interlaced = struct.unpack(">IIBBBBB", body)
            assert (depth, interlaced) == (8, 0)
            shape = (height, width, {2: 3, 6: 4}[color])
        elif kind == b"IDAT":
            packed += body
        at += length + 12
    height, width, channels = shape
    raw = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + width * channels)
    out = np.zeros((height + 1, (width + 1) * channels), np.int64)
    for row in range(height):
        _unfilter(int(raw[row, 0]), raw[row, 1:], out[row], out[row + 1], channels)
    pixels = out[1:, channels:].reshape(height, width, channels)[..., :3]
    return pixels.astype(np.uint8)


def _unfilter(
    kind: int, line: Pixels, above: npt.NDArray[np.int64], out: npt.NDArray[np.int64], step: int
) -> None:
    """One line of pixels; both lines have a pixel of zeros before the first."""
    if kind == 0:
        out[step:] = line
    elif kind == 2:
        out[step:] = (line + above[step:]) % 256
    else:
        values, before = line.tolist(), above.tolist()
        made = out.tolist()
        for at, value in enumerate(values, step):
            left, up, corner = made[at - step], before[at], before[at - step]
            made[at] = (value + _predicted(kind, left, up, corner)) % 256
        out[:] = made


def _predicted(kind: int, left: int, up: int, corner: int) -> int:
    if kind == 1:
        return left
    if kind == 3:
        return (left + up) // 2
    guess = left + up - corner
    return min((left, up, corner), key=lambda value: abs(guess - value))
