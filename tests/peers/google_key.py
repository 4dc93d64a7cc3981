"""Key files of Google's service accounts, whose tokens a server of the tests gives."""

from __future__ import annotations

import json
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat


def write_key_file(file: Path, token_uri: str) -> str:
    """Write a key file, and return its name."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    named = {"type": "service_account", "client_email": "tests@icecomb.invalid"}
    file.write_text(json.dumps({**named, "private_key": text, "token_uri": token_uri}))
    return str(file)
