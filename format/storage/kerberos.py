"""Kerberos through the system's library (RFC 2744, MIT's ``libgssapi_krb5``), loaded on demand.

Every machine with Kerberos clients has the library; the Python bindings to it need a compiler.
"""

from __future__ import annotations

import ctypes
import functools
import os
from ctypes import POINTER, byref, c_char_p, c_int, c_uint32, c_void_p
from typing import Any, Final

from icecomb.format.errors import IcecombError, MissingDependencyError

_LIBRARIES: Final = ("libgssapi_krb5.so.2", "libgssapi_krb5.dylib")
_CONTINUE: Final = 1
_ERRORS: Final = 0xFFFF0000
"""The bits of a major status that report errors: calling and routine errors."""
_INITIATE: Final = 1
_FLAGS: Final = 2 | 4 | 8 | 16 | 32
"""Mutual authentication, detection of repeated messages and of their order, confidentiality and
integrity: without the second and the third (RFC 4752, 3.1), a server takes a message as often as
somebody between sends it."""
_MISPLACED: Final = 2 | 4 | 8 | 16
"""The bits of a major status for messages that are repeated, old, in another order, or after a
missing one."""
_MECHANISM_CODE: Final = 2


class _Buffer(ctypes.Structure):
    _fields_ = (("length", ctypes.c_size_t), ("value", c_void_p))

    def take(self) -> bytes:
        """Return the bytes and release the library's memory."""
        data = ctypes.string_at(self.value, self.length) if self.length else b""
        _library().gss_release_buffer(byref(c_uint32()), byref(self))
        return data


class _Oid(ctypes.Structure):
    _fields_ = (("length", c_uint32), ("elements", c_void_p))


class _Element(ctypes.Structure):
    _fields_ = (("key", c_char_p), ("value", c_char_p))


class _Store(ctypes.Structure):
    _fields_ = (("count", c_uint32), ("elements", POINTER(_Element)))


def _oid(encoded: bytes) -> _Oid:
    kept = ctypes.create_string_buffer(encoded, len(encoded))
    oid = _Oid(len(encoded), ctypes.cast(kept, c_void_p))
    oid.kept = kept
    return oid


_KERBEROS: Final = _oid(bytes.fromhex("2a864886f712010202"))
_PRINCIPAL: Final = _oid(bytes.fromhex("2a864886f71201020201"))


class GssError(IcecombError, ConnectionError):
    """An error of Kerberos: the library's own message, and a hint what to do."""


class SecurityContext:
    """The client's side of a security context with one service.

    Args:
        service: Service principal such as ``hive/host.example.com@REALM``; the realm is optional.
        principal: Client principal; None = the one of the ticket cache or the keytab.
        keytab: A keytab file to get tickets with; None = the ticket cache (``kinit``).
    """

    def __init__(
        self, service: str, principal: str | None = None, keytab: str | None = None
    ) -> None:
        self._context = c_void_p()
        self._credential = c_void_p()
        self._target = _name(service, _PRINCIPAL)
        self._service = service
        self.established = False
        if principal is not None or keytab is not None:
            self._acquire(principal, keytab)

    def step(self, token: bytes | None) -> bytes:
        """Return the next token in response to ``token``; empty if there is none."""
        minor, output, received = c_uint32(), _Buffer(), _buffer(token or b"")
        major = _library().gss_init_sec_context(
            byref(minor),
            self._credential,
            byref(self._context),
            self._target,
            byref(_KERBEROS),
            c_uint32(_FLAGS),
            c_uint32(0),
            None,
            byref(received) if token is not None else None,
            None,
            byref(output),
            None,
            None,
        )
        data = output.take()
        _check(major, minor, f"no Kerberos conversation with {self._service}", self._service)
        self.established = not major & _CONTINUE
        return data

    def wrap(self, data: bytes, *, encrypt: bool) -> bytes:
        """Return ``data`` signed, or encrypted."""
        minor, output, given = c_uint32(), _Buffer(), _buffer(data)
        major = _library().gss_wrap(
            byref(minor), self._context, int(encrypt), 0, byref(given), None, byref(output)
        )
        sealed = output.take()
        _check(major, minor, "a message cannot be sealed")
        return sealed

    def unwrap(self, data: bytes) -> bytes:
        """Return the data that was passed to `wrap` at the other end.

        GssError is raised if it was not sealed by the other end, or was changed, repeated or
        reordered in transit.
        """
        minor, output, given = c_uint32(), _Buffer(), _buffer(data)
        major = _library().gss_unwrap(
            byref(minor), self._context, byref(given), byref(output), None, None
        )
        plain = output.take()
        _check(major, minor, "a message of the service was changed in transit")
        if major & _MISPLACED:
            raise GssError(
                "A message of the service was repeated, left out or moved in transit",
                hint="Check the network between this machine and the service, and try again.",
            )
        return plain

    def __del__(self) -> None:
        minor = c_uint32()
        if context := getattr(self, "_context", None):
            _library().gss_delete_sec_context(byref(minor), byref(context), None)
        if credential := getattr(self, "_credential", None):
            _library().gss_release_cred(byref(minor), byref(credential))
        if target := getattr(self, "_target", None):
            _library().gss_release_name(byref(minor), byref(target))

    def _acquire(self, principal: str | None, keytab: str | None) -> None:
        minor = c_uint32()
        wanted = _name(principal, _PRINCIPAL) if principal is not None else None
        store = _Store()
        if keytab is not None:
            # tickets obtained with a keytab stay in this process and are not used for another one
            cache = f"MEMORY:icecomb-{principal or ''}-{keytab}"
            pairs = ((b"client_keytab", keytab.encode()), (b"ccache", cache.encode()))
            elements = (_Element * len(pairs))(*(_Element(*pair) for pair in pairs))
            store = _Store(len(pairs), elements)
        major = _library().gss_acquire_cred_from(
            byref(minor),
            wanted,
            c_uint32(0),
            None,
            _INITIATE,
            byref(store) if keytab is not None else None,
            byref(self._credential),
            None,
            None,
        )
        if wanted is not None:
            _library().gss_release_name(byref(c_uint32()), byref(wanted))
        who = f" for {principal}" if principal else ""
        source = f"the keytab {keytab}" if keytab else "the ticket cache"
        _check(major, minor, f"no Kerberos credentials{who} from {source}", self._service)


@functools.cache
def _library() -> Any:
    for name in _LIBRARIES:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        for function, arguments in _SIGNATURES.items():
            found = getattr(library, function)
            found.restype = c_uint32
            found.argtypes = arguments
        return library
    raise MissingDependencyError(
        f"Kerberos needs the library {_LIBRARIES[0]}, which this machine does not have",
        hint="Install it: libgssapi-krb5-2 of Debian, krb5-libs of Red Hat.",
    )


_STATUS: Final = POINTER(c_uint32)
_HANDLE: Final = POINTER(c_void_p)
_BYTES: Final = POINTER(_Buffer)
_SIGNATURES: Final[dict[str, list[Any]]] = {
    "gss_import_name": [_STATUS, _BYTES, POINTER(_Oid), _HANDLE],
    "gss_release_name": [_STATUS, _HANDLE],
    "gss_release_buffer": [_STATUS, _BYTES],
    "gss_release_cred": [_STATUS, _HANDLE],
    "gss_delete_sec_context": [_STATUS, _HANDLE, _BYTES],
    "gss_acquire_cred_from": [
        *(_STATUS, c_void_p, c_uint32, c_void_p, c_int),
        *(POINTER(_Store), _HANDLE, c_void_p, _STATUS),
    ],
    "gss_init_sec_context": [
        *(_STATUS, c_void_p, _HANDLE, c_void_p, POINTER(_Oid), c_uint32, c_uint32),
        *(c_void_p, _BYTES, c_void_p, _BYTES, _STATUS, _STATUS),
    ],
    "gss_wrap": [_STATUS, c_void_p, c_int, c_uint32, _BYTES, POINTER(c_int), _BYTES],
    "gss_unwrap": [_STATUS, c_void_p, _BYTES, _BYTES, POINTER(c_int), _STATUS],
    "gss_display_status": [_STATUS, c_uint32, c_int, POINTER(_Oid), _STATUS, _BYTES],
}


def _buffer(data: bytes) -> _Buffer:
    buffer = _Buffer(len(data), ctypes.cast(c_char_p(data), c_void_p))
    buffer.kept = data
    return buffer


def _name(text: str, kind: _Oid) -> c_void_p:
    minor, name, given = c_uint32(), c_void_p(), _buffer(text.encode())
    major = _library().gss_import_name(byref(minor), byref(given), byref(kind), byref(name))
    _check(major, minor, f"{text!r} is not a Kerberos name")
    return name


def _check(major: int, minor: c_uint32, what: str, service: str = "") -> None:
    if not major & _ERRORS:
        return
    reason = _text(minor.value, _MECHANISM_CODE) or _text(major, 1)
    raise GssError(f"{what}: {reason}", hint=_hint(reason, service))


def _text(status: int, kind: int) -> str:
    minor, more, output = c_uint32(), c_uint32(), _Buffer()
    _library().gss_display_status(
        byref(minor), c_uint32(status), kind, byref(_KERBEROS), byref(more), byref(output)
    )
    return output.take().decode(errors="replace")


_WEB_KEYS: Final = "hdfs.kerberos.principal and hdfs.kerberos.keytab"
_METASTORE_KEYS: Final = "hive.metastore.client.principal and .keytab"
_HINTS: Final = (
    (
        ("credentials cache", "No Kerberos credentials", "cache collection"),
        "get a ticket with kinit, or name a principal and its keytab: {keys}",
    ),
    (("expired",), "get a new ticket with kinit"),
    (
        ("not found in Kerberos database", "Server not found"),
        "check hive.metastore.kerberos.principal; _HOST in it is the host in the metastore's uri",
    ),
    (
        ("Cannot contact", "Cannot find KDC"),
        "check the realm's kdc in krb5.conf, and that it can be reached",
    ),
    (("Clock skew",), "set this machine's clock"),
    (("keytab",), "check that the keytab can be read and holds the principal: klist -kt FILE"),
)


def _hint(reason: str, service: str) -> str:
    keys = _WEB_KEYS if service.startswith("HTTP/") else _METASTORE_KEYS
    for words, hint in _HINTS:
        if any(word in reason for word in words):
            return hint.format(keys=keys)
    return f"Check krb5.conf ({os.environ.get('KRB5_CONFIG', '/etc/krb5.conf')}) and klist."
