# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Credentials of one transfer are fit for their purpose, and new each time."""

from __future__ import annotations

import socket
import ssl
import threading

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Context
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net import tls
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.handshake import HandshakeError
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer import credentials


def context(part: str, own: tuple[str, str], other: str) -> Context:
    """Return one end with its own key and certificate, and the certificate that it expects."""
    secrets = {tls.KEY: own[0], tls.CERTIFICATE: own[1], tls.PEER: other}
    return Context("dest", part, b"/", {}, "/tmp", secrets=secrets)


def meet(serving: Context, driving: Context) -> list[str]:
    """Let two ends shake hands; gives what went wrong at each."""
    here, there = socket.socketpair()
    wrong: list[str] = []

    def shake(end: Context, connection: socket.socket) -> None:
        connection.settimeout(5)
        try:
            engine = tls.make(end)
            assert engine.minimum_version == ssl.TLSVersion.TLSv1_3
            with tls.wrap(engine, end.secrets[tls.PEER], end.part == "serve", connection) as wrapped:
                wrapped.sendall(b"x")  # with TLS 1.3 a refused certificate shows here
                assert wrapped.recv(1) == b"x"
        except (OSError, HandshakeError, AssertionError) as error:
            wrong.append(str(error))

    thread = threading.Thread(target=shake, args=(serving, here))
    thread.start()
    shake(driving, there)
    thread.join()
    return wrong


def test_two_ends_that_expect_each_other_meet():
    one, two = credentials.certificate("serve"), credentials.certificate("drive")
    assert one != credentials.certificate("serve")
    assert meet(context("serve", one, two[1]), context("drive", two, one[1])) == []


@pytest.mark.parametrize("impostor", ["serve", "drive"])
def test_another_certificate_of_the_same_name_is_refused(impostor):
    made = {part: credentials.certificate(part) for part in ("serve", "drive")}
    shown = {**made, impostor: credentials.certificate(impostor)}
    assert meet(context("serve", shown["serve"], made["drive"][1]), context("drive", shown["drive"], made["serve"][1]))


def test_a_certificate_that_is_trusted_but_not_the_one_is_refused():
    other = credentials.certificate("other")
    with pytest.raises(HandshakeError):
        tls.check_peer(ssl.PEM_cert_to_DER_cert(other[1]), credentials.certificate("serve")[1])
    with pytest.raises(HandshakeError):
        tls.check_peer(None, other[1])


@pytest.mark.parametrize("lacks", [tls.KEY, tls.CERTIFICATE, tls.PEER])
def test_without_all_its_secrets_no_end_begins(lacks):
    end = context("serve", credentials.certificate("serve"), credentials.certificate("drive")[1])
    end.secrets[lacks] = ""
    with pytest.raises(TransferFailed, match=lacks):
        tls.make(end)
    end.secrets[lacks] = "no PEM"
    with pytest.raises(TransferFailed, match="cannot be used"):
        tls.make(end)
