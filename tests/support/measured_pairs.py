# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Made-up measurements and endpoints of pairs, for the tests of what is concluded from them."""

from __future__ import annotations

import copy
from typing import Any

from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.abilities import PairRules, find_abilities
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.candidates import list_candidates
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.measurement import (
    BenchmarkResult,
    DiskMeasurement,
    LinkMeasurement,
    LinkRates,
    PairMeasurement,
    ProcessorMeasurement,
    TreeMeasurement,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.recommend import conclude
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.endpoint import Endpoint, make_endpoint
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.methods import METHODS
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.probe import parse_probe

MB = 1e6
GB = 1e9
_PATH = {
    "given": "/srv",
    "real": "/srv",
    "type": "directory",
    "existing": "/srv",
    "empty": True,
    "existing_is_directory": True,
    "readable": True,
    "writable": True,
}
_PROGRAMS: dict[str, dict[str, Any]] = {
    "rsync": {
        "path": "/usr/bin/rsync",
        "version": [3, 5, 0],
        "compress": ["zstd", "lz4", "zlibx", "zlib"],
        "acls": True,
        "xattrs": True,
        "holes": [],
    },
    "tar": {"path": "/usr/bin/tar", "flavour": "gnu", "text": "tar (GNU tar) 1.34"},
    "ssh": {
        "path": "/usr/bin/ssh",
        "version": "OpenSSH_9.2p1",
        "ciphers": ["chacha20-poly1305@openssh.com", "aes128-gcm@openssh.com", "aes128-ctr"],
        "configured": [],
    },
    "scp": {"path": "/usr/bin/scp", "legacy_flag": True},
    "sftp": {"path": "/usr/bin/sftp"},
}


def end(side: str, lacking: tuple[str, ...] = (), **more: Any) -> Endpoint:
    """Return a host with every program but those that are lacking, a listening sshd and root."""
    programs = {name: one for name, one in copy.deepcopy(_PROGRAMS).items() if name not in lacking}
    probe = {
        "python": [3, 11, 2],
        "system": "Linux",
        "user": "root",
        "uid": 0,
        "now_ns": 10**18,
        "machine": side,
        "cores": 4,
        "aes": True,
        "tls13": True,
        "zstd": True,
        "addresses": ["10.0.0.1"],
        "link_mbit": 10000,
        "path": _PATH,
        "programs": programs,
        "selinux": False,
        "owners": {},
        "methods": list(METHODS),
        "sshd": {"listening": [22], "config": {}, "home": "/root"},
        "rsyncd_module": None,
        "no_folders": [],
        "not_followed": "",
        "job": {"running": False, "request": {}, "status": {}},
        **more,
    }
    return make_endpoint(side, side, {}, "ssh", parse_probe(probe))


def measured(
    line: float = 117 * MB,
    several: float = 0.0,
    encrypted: float = 0.0,
    trip: float = 0.0002,
    read: float = 2 * GB,
    written: float = 1 * GB,
    small: float = 50_000,
    cores: int = 4,
    load: float = 0.0,
    ciphers: dict[str, float] | None = None,
    machine: float = 1.0,
    ratio: float = 1.0,
    files: int = 4,
    size: float = 2.147 * GB,
    large: float | None = None,
    gaps: tuple[str, ...] = (),
    connect: str = "push",
    **tree: Any,
) -> PairMeasurement:
    """Return the measurement of a pair with these speeds; ``several`` connections carry as much as one by default."""
    several = several or line
    known = {"tls": 1.8 * GB, "aes128-gcm@openssh.com": 2.2 * GB, "chacha20-poly1305@openssh.com": 1.1 * GB}
    processor = ProcessorMeasurement(
        cores=cores,
        load=load,
        ciphers=known if ciphers is None else ciphers,
        hashes={"blake2b": 750 * MB * machine, "sha256": 1600 * MB * machine},
        compression={"zstd-1": 500 * MB * machine, "zlib-1": 120 * MB * machine},
    )
    rates = LinkRates(one_stream=line, several_streams=several, streams=4, encrypted=encrypted or several)
    return PairMeasurement(
        source="old",
        dest="new",
        at=1.8e9,
        link=LinkMeasurement(forth=rates, back=rates, connect=connect, round_trip=trip),
        disks={
            "source": DiskMeasurement(large=read, small=small * 2, entries=200_000, compared=min(read, GB)),
            "dest": DiskMeasurement(large=written, small=small, entries=200_000, compared=min(written, GB)),
        },
        processors={"source": processor, "dest": processor},
        tree=TreeMeasurement(
            entries=int(files * 1.01) + 1,
            files=files,
            bytes_apparent=int(size),
            bytes_on_disk=int(size),
            large_bytes=int(size if large is None else large),
            ratio=ratio,
            **tree,
        ),
        gaps=gaps,
    )


_ENCRYPTED = PairRules()


def concluded(
    pair: PairMeasurement, rules: PairRules = _ENCRYPTED, source: Endpoint | None = None, dest: Endpoint | None = None
) -> BenchmarkResult:
    """Return the result for a pair whose hosts have every program, unless an end is given."""
    abilities = find_abilities(source or end("source"), dest or end("dest"), rules)
    return conclude(pair, abilities, list_candidates(pair, abilities))
