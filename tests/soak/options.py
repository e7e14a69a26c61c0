# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A value or more of every option of transfer, which of them go together, and what is refused.

The pairwise table (``pairwise``) is made of this one. An option that transfer gets must be added here: a unit test
holds that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

SSH = ("rsync", "sftp", "scp")
ALL = ("owner", "group", "permissions", "times", "acls", "xattrs", "hardlinks", "devices", "sparse")
FREE_PORT, PORT_RANGE, OLDER = "a free port", "free ports", "an older copy"  # stand for what a case has
# Of rsync_opts: what leaves the trees different, as asked
UNLIKE = (("--copy-links",), ("--max-size=1000",), ("--existing",), ("--chmod=F640",), ("--omit-dir-times",))

NAMES_SRC = ("/s/a",)  # begins with the name of src, where that has no slash at its end

Row = Mapping[str, Any]


def _without(*names: str) -> tuple[str, ...]:
    return tuple(name for name in ALL if name not in names)


VALUES: dict[str, tuple[Any, ...]] = {
    # How src is written: the contents of a folder three ways, the folder itself, a symbolic link to it, a file
    "src": ("contents", "dot", "dotdot", "folder", "link", "file"),
    "src_host": ("one",),
    "dest": ("there", "missing", "backslash"),
    "dest_host": ("two",),
    "method": ("auto", "stream", "rsync", "rsyncd", "tar_nc", "scp", "sftp"),
    "encryption": ("auto", "required", "none"),
    "trust": (None, "full", "none"),
    "rsync_floor": (None, "3.1.0"),
    "delete": (False, True),
    "max_delete": (None, 0, 2, 100_000),
    "filter": (None, ("P *.keep", "- *.tmp"), ("- /b", "+ /a/***", "H c", "- *.keep"), ("- /*/", "R *")),
    "include": (None, ("/a/*.tmp", "c")),
    "exclude": (None, ("*.keep",), ("/a/", "y.*"), NAMES_SRC),
    "exclude_if_present": (None, (".nobackup",)),
    "exclude_caches": (False, True),
    "checksum": (False, True),
    "compress": ("auto", "none", "zstd", "lz4", "zlibx", "zlib"),
    "compress_level": (None, 1),
    "bwlimit": ("0", "200M"),
    "streams": ("auto", "1", "3"),
    "congestion": ("auto", "none", "reno"),
    "preserve": (
        None,
        ("times",),
        ("permissions", "times"),
        ("owner", "group", "permissions"),
        (),
        _without("hardlinks"),
        _without("sparse", "devices"),
        _without("acls", "xattrs"),
        _without("owner"),
    ),
    "numeric_ids": (True, False),
    "owner_map": (None, {"users": {1: 54321, 54321: 1}, "groups": {2: 54322}}),
    "owner_warnings": (True, False),
    "sync": ("none", "data"),
    "one_file_system": (False, True),
    "link_dest": (None, (OLDER,), ("/nonexistent/older", OLDER)),
    "link_dest_exclude": (None, ("small", "d/large")),
    "partial": (True, False),
    "delta": ("auto", "none", "blocks", "rsync"),
    "inplace": (False, True),
    "verify": ("size", "none", "checksum"),
    "timeout": (300, 30),
    "connect": ("auto", "push", "pull"),
    "port": (None, FREE_PORT),
    "port_range": (None, PORT_RANGE),
    "rsync_opts": (None, ("--no-whole-file", "--fuzzy"), *UNLIKE),
    "ssh_ciphers": (None, ("aes128-gcm@openssh.com",)),
    "sftp_buffer_size": (None, 16384),
    "sftp_requests": (None, 8),
    "rsyncd_module": (None, "soak"),
    "rsyncd_user": (None, "mover"),
    "rsyncd_password": (None, "of this test alone"),
    "wait": (True, False),
    "collect": (False, True),
}
DEFAULTS: dict[str, Any] = {name: values[0] for name, values in VALUES.items()}
DEFAULTS["rsync_opts"] = None
TRUSTING = ("rsync_opts", "ssh_ciphers", "sftp_buffer_size", "sftp_requests", "rsyncd_module")  # not for stream
TAGS = ("exclude_if_present", "exclude_caches")  # not for rsync
ROOTS_OWN = ("owner", "devices")  # of preserve: what a user cannot keep


@dataclass(frozen=True)
class Refused:
    """A combination of two options that is refused before anything is done, and words that the message has."""

    options: tuple[str, ...]
    words: str  # a regular expression
    holds: Callable[[Row], bool]


def _only(option: str, methods: tuple[str, ...]) -> Refused:
    return Refused(("method", option), option, lambda row: bool(row[option]) and row["method"] not in methods)


def _clash(one: str, other: str) -> Refused:
    """Two options of which no method knows both."""
    return Refused((one, other), f"{one}|{other}", lambda row: bool(row[one]) and bool(row[other]))


def _delta(row: Row) -> bool:
    return row["delta"] in ("blocks", "rsync")


def _names_congestion(row: Row) -> bool:
    return row["congestion"] not in ("auto", "none")


REFUSED = (
    _only("rsync_opts", ("auto", "rsync", "rsyncd")),
    _only("inplace", ("auto", "stream", "rsync", "rsyncd")),
    *(_only(one, ("auto", "stream", "tar_nc", "scp", "sftp")) for one in TAGS),
    _only("ssh_ciphers", ("auto", *SSH)),
    _only("sftp_buffer_size", ("sftp",)),  # which auto never chooses
    _only("sftp_requests", ("sftp",)),
    _only("rsyncd_module", ("rsyncd",)),
    Refused(("method", "delta"), "delta", lambda row: _delta(row) and row["method"] not in ("stream", "auto")),
    *(
        Refused((one, "delta"), f"delta|{one}", lambda row, one=one: bool(row[one]) and _delta(row))
        for one in ("rsync_opts", "ssh_ciphers", "sftp_buffer_size", "sftp_requests", "rsyncd_module")
    ),
    *(
        _clash(one, other)
        for one, other in (
            ("rsync_opts", "sftp_buffer_size"),
            ("rsync_opts", "sftp_requests"),
            ("inplace", "sftp_buffer_size"),
            ("inplace", "sftp_requests"),
            ("inplace", "link_dest"),
            *((one, other) for one in TAGS for other in ("rsync_opts", "rsyncd_module")),
            ("port", "port_range"),
            ("rsyncd_module", "ssh_ciphers"),
            ("rsyncd_module", "sftp_buffer_size"),
            ("rsyncd_module", "sftp_requests"),
        )
    ),
    *(
        Refused(
            (one, "ssh_ciphers"),
            f"{one}|ssh_ciphers|no method fits",
            lambda row, one=one: bool(row[one]) and bool(row["ssh_ciphers"]) and row["method"] == "auto",
        )
        for one in TAGS
    ),
    Refused(("rsyncd_user", "rsyncd_module"), "rsyncd_user", lambda r: r["rsyncd_user"] and not r["rsyncd_module"]),
    Refused(
        ("rsyncd_password", "rsyncd_module"),
        "rsyncd_password",
        lambda row: row["rsyncd_password"] and not row["rsyncd_module"],
    ),
    Refused(
        ("inplace", "preserve"),
        "inplace",
        lambda row: row["inplace"] and row["preserve"] is not None and "times" not in row["preserve"],
    ),
    Refused(
        ("link_dest", "method"),
        "link_dest",
        lambda row: (
            bool(row["link_dest"])
            and row["method"] == "rsyncd"
            and not row["rsyncd_module"]
            and row["connect"] != "pull"
        ),
    ),
    Refused(
        ("owner_map", "preserve"),
        "owner_map",
        lambda row: (
            bool(row["owner_map"]) and row["preserve"] is not None and not {"owner", "group"} <= set(row["preserve"])
        ),
    ),
    Refused(
        ("encryption", "method"),
        "encrypt",
        lambda row: row["encryption"] == "required" and row["method"] in ("rsyncd", "tar_nc"),
    ),
    Refused(
        ("trust", "method"),
        "trust is none",
        lambda row: row["trust"] == "none" and row["method"] not in ("auto", "stream", "rsync", "sftp"),
    ),
    Refused(
        ("trust", "link_dest"),
        "trust is none",
        lambda row: row["trust"] == "none" and row["method"] in ("rsync", "sftp") and bool(row["link_dest"]),
    ),
    *(
        Refused(
            ("trust", one),
            "trust is none",
            lambda row, one=one: (
                (row["trust"], row["method"]) == ("none", "rsync") and bool(row[one]) and row["connect"] != "pull"
            ),
        )
        for one in ("filter", "include", "exclude")
    ),
    *(
        Refused(("trust", one), f"trust is none|{one}", lambda row, one=one: row["trust"] == "none" and bool(row[one]))
        for one in TRUSTING
    ),
    Refused(
        ("trust", "compress"),
        "trust is none|compress",
        lambda row: row["trust"] == "none" and row["compress"] in ("lz4", "zlibx"),
    ),
    Refused(
        ("compress", "method"),
        "compress",
        lambda row: row["compress"] not in ("auto", "none", *_COMPRESS.get(row["method"], row["compress"].split())),
    ),
    *(
        Refused(
            (one, "compress"), f"compress|{one}", lambda r, one=one: r[one] and r["compress"] not in ("auto", "none")
        )
        for one in ("sftp_buffer_size", "sftp_requests")
    ),
    Refused(
        ("src", "exclude"),
        "begins with the name of src",
        lambda row: row["src"] == "folder" and row["exclude"] == NAMES_SRC,
    ),
    Refused(("compress", "delta"), "compress|delta", lambda r: _delta(r) and r["compress"] in ("lz4", "zlibx")),
    Refused(
        ("method", "congestion"),
        "congestion",
        lambda row: _names_congestion(row) and row["method"] not in ("auto", "stream"),
    ),
    Refused(
        ("compress", "congestion"),
        "compress|congestion",
        lambda row: _names_congestion(row) and row["compress"] in ("lz4", "zlibx"),
    ),
    *(
        Refused(
            (one, "congestion"), f"congestion|{one}", lambda row, one=one: bool(row[one]) and _names_congestion(row)
        )
        for one in TRUSTING
    ),
)
_COMPRESS = {"tar_nc": ("zlib",), "scp": (), "sftp": (), "stream": ("zlib", "zstd")}


def by_ssh(row: Row) -> bool:
    """Whether the method is one over ssh, as far as the options say."""
    wanted = ("rsync_opts", "ssh_ciphers")
    return row["method"] in SSH or (
        row["method"] == "auto" and (any(row[o] for o in wanted) or row["compress"] in ("lz4", "zlibx"))
    )


# What is no mistake of a user's, but cannot be here, where no ssh server listens, or would test nothing.
LEFT_OUT: tuple[Callable[[Row], bool], ...] = (
    lambda row: by_ssh(row) and not row["port_range"],
    lambda row: (
        bool(row["rsyncd_module"]) and (not row["port"] or not row["rsyncd_user"] or not row["rsyncd_password"])
    ),
    lambda row: bool(row["rsync_opts"]) and row["rsync_opts"][0] == "--existing" and row["dest"] == "missing",
    lambda row: bool(row["rsyncd_module"]) and bool(row["link_dest"]) and row["link_dest"][0] != OLDER,
    lambda row: row["src"] == "file" and bool(row["filter"] or row["exclude"] or row["include"]),
)


def refused(row: Row) -> Refused | None:
    """Return why a row must be refused; None if it need not be."""
    return next((one for one in REFUSED if one.holds(row)), None)


def possible(row: Row) -> bool:
    """Whether a row can be a transfer here."""
    return not refused(row) and not any(left_out(row) for left_out in LEFT_OUT)


def mend(row: dict[str, Any], fixed: Collection[str]) -> None:
    """Set what some options need besides, where a row's author left that open."""

    def put(name: str, value: Any) -> None:
        if name not in fixed:
            row[name] = value

    if row["trust"] == "none":
        if "trust" in fixed and row["method"] != "rsync":
            put("method", "stream")
            for name in (*TRUSTING, "rsyncd_user", "rsyncd_password"):
                put(name, None)
        elif "trust" not in fixed:
            put("trust", None if refused(row) or row["rsyncd_user"] or row["rsyncd_password"] else "none")
    if row["rsyncd_user"] or row["rsyncd_password"]:
        put("rsyncd_module", VALUES["rsyncd_module"][1])
    if row["rsyncd_module"]:
        put("method", "rsyncd")
        for name in ("rsyncd_user", "rsyncd_password", "port"):
            put(name, VALUES[name][1])
        put("port_range", None)
        if row["encryption"] == "required":
            put("encryption", "auto")
    if row["sftp_buffer_size"] or row["sftp_requests"]:
        put("method", "sftp")
    if row["link_dest"] and row["method"] == "rsyncd" and not row["rsyncd_module"]:
        put("connect", "pull")
    if row["link_dest"] and row["rsyncd_module"]:
        put("link_dest", VALUES["link_dest"][1])
    if by_ssh(row):
        put("port_range", PORT_RANGE)
        put("port", None)
