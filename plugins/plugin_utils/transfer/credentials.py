# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is made for one transfer and thrown away after it."""

from __future__ import annotations

import secrets

from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Serve
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.detect_programs import SSH_METHODS


def for_transfer(method: str, encrypt: bool, daemon_password: str | None) -> tuple[dict[str, dict[str, str]], Serve]:
    """Make what a transfer needs: the secrets of each part by their names, and what the serving end may know openly.

    ``encrypt`` counts for ``stream``. ``daemon_password`` is that of a daemon that is there already, None if there
    is none.
    """
    if method in SSH_METHODS:
        private, public = ssh_key_pair()
        host_private, _host_public = ssh_key_pair()
        return {"drive": {"identity": private}, "serve": {"host_key": host_private}}, {"public_key": public}
    if daemon_password is not None:
        return {"drive": {"rsyncd_password": daemon_password}, "serve": {}}, {}
    if method == "stream":
        return _of_stream(encrypt), {}
    shared = {"rsyncd": "daemon", "tar_nc": "exchange"}[method]
    made = token()
    return {"drive": {shared: made}, "serve": {shared: made}}, {}


def _of_stream(encrypt: bool) -> dict[str, dict[str, str]]:
    """Make what the two ends of a stream know each other by."""
    shared = token()
    found = {"drive": {"exchange": shared}, "serve": {"exchange": shared}}
    if encrypt:
        made = {part: certificate(part) for part in found}
        for part, other in (("drive", "serve"), ("serve", "drive")):
            found[part].update(tls_key=made[part][0], tls_certificate=made[part][1], tls_peer=made[other][1])
    return found


def ssh_key_pair() -> tuple[str, str]:
    """Return a new Ed25519 key as (private, public), each in OpenSSH's own format."""
    # ansible-core brings this package; ansible-test imports plugins without it
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return private.decode(), public.decode()


def certificate(name: str) -> tuple[str, str]:
    """Return a new key and a certificate that it signed itself, as (private, certificate), both PEM texts.

    The peer trusts this certificate and no other, so neither its name nor its dates decide anything: it is valid
    from long ago to far ahead, because clocks of hosts differ.
    """
    import datetime

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.datetime(2000, 1, 1))
        .not_valid_after(datetime.datetime(2199, 1, 1))
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private.decode(), made.public_bytes(serialization.Encoding.PEM).decode()


def token() -> str:
    """Return a new secret of 256 bits, as text without special characters."""
    return secrets.token_hex(32)
