# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rates of a processor are measured on any data, and the load of others is told from its own."""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._benchmark import processor
from ansible_collections.longhaul.fleet.plugins.module_utils._benchmark.processor import Jiffies
from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Context
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net import tls
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.credentials import certificate


def context_maker(folder: Path) -> processor.MakeContext:
    key, shown = certificate("test")
    settings: Any = {}

    def make(serves: bool) -> ssl.SSLContext:
        secrets = {tls.KEY: key, tls.CERTIFICATE: shown, tls.PEER: shown}
        return tls.make(Context("source", "serve" if serves else "drive", b"/", settings, str(folder), secrets=secrets))

    return make


def test_every_rate_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "_ciphers_of_ssh", lambda: frozenset(processor._SSH))
    gaps: list[str] = []
    found = processor.measure(os.urandom(1 << 20), context_maker(tmp_path), 0.2, gaps.append)
    assert set(found["ciphers"]) == {"tls", *processor._SSH}
    assert set(found["hashes"]) == {"blake2b", "sha256"}
    assert {"zlib-1", "zlib-6"} <= set(found["compression"])
    rates = [rate for kind in ("ciphers", "hashes", "compression") for rate in found[kind].values()]
    assert all(0 < rate < 1e13 for rate in rates)
    assert found["cores"] >= 1
    assert 0 <= found["load"] <= 1
    assert ["ssh's ciphers" in gap for gap in gaps] == [True]


def test_a_cipher_that_openssl_lacks_is_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "_SSH", {"aes128-gcm@openssh.com": "NO-SUCH-SUITE"})
    monkeypatch.setattr(processor, "_ciphers_of_ssh", lambda: frozenset({"aes128-gcm@openssh.com"}))
    gaps: list[str] = []
    found = processor.measure(b"x", context_maker(tmp_path), 0.1, gaps.append)
    assert set(found["ciphers"]) == {"tls"}
    assert "aes128-gcm@openssh.com could not be measured" in gaps[0]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("cpu  10 1 2 30 4 5 6 7 100 100\n", Jiffies(65, 34)),
        ("cpu 1 2 3 4 5", Jiffies(15, 9)),
        ("cpu0 1 2 3 4 5", None),
        ("cpu 1 2 x 4 5", None),
        ("", None),
    ],
)
def test_processor_time_is_read(line: str, found: Jiffies | None) -> None:
    assert processor.parse_jiffies(line) == found


@pytest.mark.parametrize(
    ("before", "after", "own", "load"),
    [
        (Jiffies(100, 50), Jiffies(200, 100), 0.0, 0.5),
        (Jiffies(100, 50), Jiffies(200, 100), 50.0, 0.0),
        (Jiffies(100, 50), Jiffies(200, 50), 25.0, 0.75),
        (Jiffies(100, 50), Jiffies(200, 150), 25.0, 0.0),
        (Jiffies(100, 50), Jiffies(100, 50), 0.0, 0.0),
        (None, Jiffies(100, 50), 0.0, 0.0),
    ],
)
def test_the_load_is_that_of_others(before: Jiffies | None, after: Jiffies | None, own: float, load: float) -> None:
    assert processor.load_between(before, after, own) == load
