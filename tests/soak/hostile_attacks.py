# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a hostile host could try, done with real programs.

The attacker is root on one host, and holds what that host has for the transfer; in H9 it is a local user.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import stat
import subprocess
import time
from typing import Callable, NamedTuple

from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine import ends

from .hostile_ground import EVIL, OLD, SECRET, STAGING, Ends, Ground

USER = 1234  # some local user
LARGE = 17 << 20  # bytes of a file that is staged as partial
_TESTS = "tests/unit/plugins/module_utils"


class Attack(NamedTuple):
    """One way to try a finding. ``run`` does it; the ground tells what was harmed."""

    finding: str
    variant: str
    run: Callable[[Ground], None]
    test: str  # of the unit tests that hold the same

    @property
    def id(self) -> str:
        """Its name in test results."""
        return "-".join([self.finding, *re.split(r"[,: ]+", self.variant)])


def _ssh(pair: Ends) -> list[str]:
    """Return the options for a real ssh, scp or sftp with the one-time key."""
    known = [f"Port={pair.peer['port']}", f"User={pair.peer['user']}", "StrictHostKeyChecking=no", "LogLevel=ERROR"]
    known += ["UserKnownHostsFile=/dev/null", "IdentitiesOnly=yes", "BatchMode=yes"]
    return ["-F", "none", "-i", str(pair.work / "keys" / "driver"), *(word for one in known for word in ("-o", one))]


def _call(argv: list[str], given: str = "") -> str:
    """Run a client of the attacker; return what it complained of."""
    try:
        ended = subprocess.run(argv, input=given, capture_output=True, text=True, timeout=40, check=False)
    except subprocess.TimeoutExpired:
        return f"{argv[0]} was stopped"
    return f"{argv[0]} ended with {ended.returncode}: {(ended.stderr or ended.stdout).strip()[-300:]}"


def sftp_opens_the_host(serving: str) -> Callable[[Ground], None]:
    """C1: the real sftp, with the one-time key, asks for files that are not of the transfer."""

    def run(ground: Ground) -> None:
        evil = ground.folder / "evil"
        evil.write_text(EVIL)
        ground.watch()
        pair = ground.ends("sftp", serving)
        lines = [f"-get {ground.outside}/secret {ground.loot}/secret", f"-put {evil} {ground.outside}/evil"]
        lines += [f"-rm {ground.outside}/secret", f"-ls {ground.outside}"]
        argv = ["sftp", "-q", "-b", "-"]
        ground.said = pair.served(lambda: _call([*argv, *_ssh(pair), "127.0.0.1"], "\n".join(lines) + "\n"))

    return run


def staging_replaced(method: str, serving: str, **changes: object) -> Callable[[Ground], None]:
    """C2, C4, H7, H8: a source offers links in the place of the staging folders."""

    def run(ground: Ground) -> None:
        if changes.get("delete"):  # then what is in the folder is no obstacle
            (ground.source / STAGING).symlink_to(ground.outside)
        else:
            ground.plant(tmp=ground.outside / "tmp", partial=ground.outside / "partial")
        if method in ("stream", "sftp"):
            (ground.source / "zlarge").write_bytes(os.urandom(LARGE))
        ground.watch()
        pair = ground.ends(method, serving, **changes)
        pair.lies["source"] = "staging_offered"
        ground.said = pair.transfer()

    return run


def _rsync(pair: Ends, ground: Ground, options: list[str], pulls: bool = False) -> str:
    shell = f"--rsh={shlex.join(['ssh', *_ssh(pair)])}"
    ends_at = ["127.0.0.1:./", f"{ground.loot}/"] if pulls else [f"{ground.source}/", "127.0.0.1:./"]
    return _call(["rsync", "--no-protect-args", *options, shell, *ends_at])


def _plant_what_is_adopted(ground: Ground) -> None:
    ground.plant(partial=ground.outside)
    (ground.source / STAGING / "tmp").mkdir()
    for name, text in (("evil-job", EVIL), ("secret", f"{SECRET} is not what it says now")):
        (ground.source / STAGING / "tmp" / f"{name}.aaaaaa").write_text(text)


def adopted_over_ssh(ground: Ground) -> None:
    """C3: the source puts into its staging folder what the destination moves to a place of its choice."""
    _plant_what_is_adopted(ground)
    ground.watch()
    pair = ground.ends("rsync", "dest", preserve=["times"])
    ground.said = pair.served(
        lambda: " / ".join(_rsync(pair, ground, ["-rlt", "--numeric-ids", "--timeout=5"]) for _time in range(2))
    )


def _daemon(pair: Ends, ground: Ground, source: str, path: str) -> str:
    password = ground.folder / "password"
    password.write_text(ends.SECRET + "\n")
    password.chmod(0o600)
    address = f"rsync://longhaul@127.0.0.1:{pair.peer['port']}/longhaul/{path}"
    return _call(["rsync", f"--password-file={password}", "-rlt", "--timeout=5", "--bwlimit=2000", source, address])


def daemon_with_older_copies(ground: Ground) -> None:
    """C5: the source writes into an older copy by way of the daemon's module."""
    evil = ground.folder / "evil"
    evil.mkdir()
    (evil / "same").write_text("ENCRYPTED, pay")
    ground.watch()
    pair = ground.ends("rsyncd", "dest", link_dest=[str(ground.older)])
    ground.said = pair.served(lambda: _daemon(pair, ground, f"{evil}/", "older/"))


def adopted_by_the_daemon(ground: Ground) -> None:
    """C6: as C3, with what the job does when a client of the daemon is gone."""
    _plant_what_is_adopted(ground)
    (ground.source / "zlarge").write_bytes(os.urandom(2 << 20))  # a second, in which the job sees the client
    ground.watch()
    pair = ground.ends("rsyncd", "dest", preserve=["times"])
    pair.lies["dest"] = "looked_at"

    def attack() -> str:
        said = []
        for _time in range(3):
            said.append(_daemon(pair, ground, f"{ground.source}/", ""))
            time.sleep(0.5)  # in which the job sees that the client is gone
        return " / ".join(said)

    ground.said = pair.served(attack)


def rsync_deletes(ground: Ground) -> None:
    """H1: the plan does not delete."""
    (ground.root / "kept").write_text("kept")
    ground.watch()
    pair = ground.ends("rsync", "dest", preserve=["times"])
    ground.said = pair.served(lambda: _rsync(pair, ground, ["-rlt", "--numeric-ids", "--delete"]))
    if not (ground.root / "kept").exists():
        ground.harms.append("kept was deleted")


def rsync_smuggles(ground: Ground) -> None:
    """H1: the plan has one file, and of its attributes the times."""
    (ground.source / "suid").write_text("evil")
    (ground.source / "suid").chmod(0o4755)
    os.mknod(ground.source / "device", stat.S_IFBLK | 0o666, os.makedev(7, 0))
    ground.watch()
    pair = ground.ends("rsync", "dest", preserve=["times"], only="same")
    ground.said = pair.served(lambda: _rsync(pair, ground, ["-rltpogD", "--numeric-ids"]))
    ground.harms += [f"{path.name} arrived" for path in ground.root.iterdir() if path.name in ("suid", "device")]


def rsync_writes_in_place(ground: Ground) -> None:
    """H2: the contents of an older copy are written through the name that the new tree has of it."""
    ground.watch()
    pair = ground.ends("rsync", "dest", preserve=["times"], link_dest=[str(ground.older)])
    plain = ["-rlt", "--numeric-ids"]

    def attack() -> str:
        said = _rsync(pair, ground, [*plain, "--link-dest=/longhaul/link/0"])
        (ground.source / "same").write_text("ENCRYPTED, pay 1 BTC")
        return f"{said} / {_rsync(pair, ground, [*plain, '--inplace'])}"

    ground.said = pair.served(attack)


def rsync_follows(options: list[str]) -> Callable[[Ground], None]:
    """H3: a destination has the source's rsync follow a link that leads out of the source."""

    def run(ground: Ground) -> None:
        (ground.source / "current").symlink_to(ground.outside)
        names = ground.folder / "names"
        names.write_bytes(b"current/secret\0")
        ground.watch()
        pair = ground.ends("rsync", "source", preserve=["times"])
        given = [option.replace("NAMES", str(names)) for option in options]
        ground.said = pair.served(lambda: _rsync(pair, ground, given, pulls=True))

    return run


def older_copy_is_dressed(method: str, serving: str) -> Callable[[Ground], None]:
    """H4: a file that is linked to an older copy gets another mode and owner, with the honest source, too."""

    def run(ground: Ground) -> None:
        ground.watch()
        pair = ground.ends(method, serving, link_dest=[str(ground.older)])
        first = pair.transfer()
        (ground.source / "same").chmod(0o6777)
        os.chown(ground.source / "same", USER, USER)
        (ground.source / "same").chmod(0o6777)
        again = ground.ends(method, serving, link_dest=[str(ground.older)])
        ground.said = f"{first} / {ground.expect_well(again.transfer())}"

    return run


def rules_ignored(method: str, serving: str) -> Callable[[Ground], None]:
    """H5: a source sends what the filter rules exclude."""

    def run(ground: Ground) -> None:
        (ground.source / "excluded.key").write_text("EVIL KEY")
        ground.watch()
        pair = ground.ends(method, serving, rules=["- *.key"])
        pair.plans["source"] = {"rules": []}
        ground.said = pair.transfer()
        if (ground.root / "excluded.key").exists():
            ground.harms.append("excluded.key arrived")

    return run


def one_level_up(method: str, serving: str) -> Callable[[Ground], None]:
    """H5, H6: a source that was asked for one file sends a tree."""

    def run(ground: Ground) -> None:
        (ground.source / "authorized_keys").write_text("EVIL KEY")
        ground.watch()
        pair = ground.ends(method, serving, only="same")
        pair.plans["source"] = {"only": None}
        ground.said = pair.transfer()
        names = {path.name for path in ground.root.iterdir()} - {"same", STAGING}
        ground.harms += [f"{name} arrived" for name in sorted(names)]

    return run


def a_users_partial_file(ground: Ground) -> None:
    """H9: the user who owns the destination has put there what a program will be made of."""
    program = ground.source / "zlarge"
    program.write_bytes(os.urandom(LARGE))
    program.chmod(0o4755)
    os.utime(program, ns=(OLD, OLD))
    found = program.stat()
    identity = repr((b"zlarge", found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)).encode()
    name = hashlib.blake2b(identity, digest_size=16).hexdigest()
    partial = ground.root / STAGING / "partial"
    partial.mkdir(parents=True)
    (ground.root / STAGING / "tmp").mkdir()
    (partial / name).write_bytes(b"E" * LARGE)
    line = b"%d %d %d" % ((partial / name).stat().st_ino, 0, LARGE)
    check = hashlib.blake2b(name.encode() + b" " + line, digest_size=8).hexdigest().encode()
    (partial / f"{name}.ranges").write_bytes(line + b" " + check + b"\n")
    for path in (ground.root, *ground.root.rglob("*")):
        os.chown(path, USER, USER)
    ground.watch()
    ground.said = ground.ends("stream", "dest").transfer()
    placed = ground.root / "zlarge"
    if placed.exists() and placed.stat().st_mode & stat.S_ISUID and placed.read_bytes() == b"E" * LARGE:
        ground.harms.append(f"zlarge is set-id, of user {placed.stat().st_uid}, with the contents of another user")


def set_id_that_is_not_preserved(method: str, serving: str) -> Callable[[Ground], None]:
    """M2: a program is set-id at the source, and permissions are not preserved."""

    def run(ground: Ground) -> None:
        (ground.source / "program").write_text("#!/bin/sh\n")
        (ground.source / "program").chmod(0o6755)
        ground.watch()
        ground.said = ground.expect_well(ground.ends(method, serving, preserve=["times"]).transfer())
        if (ground.root / "program").exists() and (ground.root / "program").stat().st_mode & 0o6000:
            ground.harms.append("program is set-id")

    return run


def capabilities_without_owner(method: str, serving: str) -> Callable[[Ground], None]:
    """M3: a program has capabilities at the source, and owners are not preserved."""

    def run(ground: Ground) -> None:
        program = ground.source / "program"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        os.chown(program, USER, USER)
        os.setxattr(program, "security.capability", bytes.fromhex("0100000280000000000000000000000000000000"))
        ground.watch()
        kept = ["permissions", "times", "xattrs"]
        ground.said = ground.expect_well(ground.ends(method, serving, preserve=kept).transfer())
        placed = ground.root / "program"
        if placed.exists() and "security.capability" in os.listxattr(placed):
            ground.harms.append("program has capabilities")

    return run


_SIDES = ("dest", "source")
_HOSTILE_SOURCE = f"{_TESTS}/_methods/copy/test_hostile_source.py"
_HOSTILE_RSYNC = f"{_TESTS}/_methods/rsync/test_hostile.py"
_HOSTILE_PEER = f"{_TESTS}/_engine/test_hostile_peer.py"
_OFFERED = f"{_HOSTILE_SOURCE}::test_a_staging_name_is_refused"
_EXCLUDED = f"{_TESTS}/_engine/receiver/test_offer_check.py::test_what_the_rules_exclude_is_refused"
_ONLY = f"{_TESTS}/_engine/receiver/test_offer_check.py::test_of_a_single_file_nothing_else_is_taken"
_GRANTED = f"{_TESTS}/_methods/copy/test_hostile_sftp.py::test_a_client_gets_nothing_but_the_files_of_the_plan"
_PLANTED = f"{_HOSTILE_RSYNC}::test_a_planted_staging_folder_leads_nowhere"
_NO_OLDER = f"{_TESTS}/_methods/rsyncd/test_method.py::test_a_daemon_never_holds_older_snapshots"
_WITHHELD = f"{_TESTS}/_methods/test_withheld.py::test_setuid_and_capabilities_of_other_users_are_a_warning"
_LINKED = f"{_TESTS}/_methods/test_lying_stream.py::test_lies_harm_nothing"


def _direction(serving: str) -> str:
    return "push" if serving == "dest" else "pull"


ATTACKS = [
    *(Attack("C1", f"sftp, {_direction(side)}", sftp_opens_the_host(side), _GRANTED) for side in _SIDES),
    *(Attack("C2", f"{name}, pull", staging_replaced(name, "source"), _OFFERED) for name in ("scp", "sftp")),
    Attack("C3", "rsync, push", adopted_over_ssh, _PLANTED),
    Attack("C4", "scp, push", staging_replaced("scp", "dest"), _OFFERED),
    Attack("C5", "rsyncd, push, link_dest", daemon_with_older_copies, _NO_OLDER),
    Attack("C6", "rsyncd, push", adopted_by_the_daemon, _PLANTED),
    Attack(
        "H1", "rsync, push: deletes", rsync_deletes, f"{_HOSTILE_RSYNC}::test_a_source_writes_as_planned_or_not_at_all"
    ),
    Attack(
        "H1", "rsync, push: devices", rsync_smuggles, f"{_HOSTILE_RSYNC}::test_a_source_writes_as_planned_or_not_at_all"
    ),
    Attack(
        "H2",
        "rsync, push, link_dest",
        rsync_writes_in_place,
        f"{_HOSTILE_RSYNC}::test_an_older_snapshot_is_not_written_to",
    ),
    Attack(
        "H3",
        "rsync, pull: -L",
        rsync_follows(["-rltL", "--numeric-ids"]),
        f"{_HOSTILE_RSYNC}::test_a_destination_reads_as_planned_or_not_at_all",
    ),
    Attack(
        "H3",
        "rsync, pull: a list",
        rsync_follows(["-dlt", "--numeric-ids", "--from0", "--files-from=NAMES"]),
        f"{_HOSTILE_RSYNC}::test_a_destination_does_not_name_what_it_gets",
    ),
    *(
        Attack("H4", f"{name}, {_direction(side)}, link_dest", older_copy_is_dressed(name, side), _LINKED)
        for name in ("stream", "tar_nc", "scp", "sftp")
        for side in _SIDES
    ),
    *(
        Attack("H5", f"{name}, {_direction(side)}: rules", rules_ignored(name, side), _EXCLUDED)
        for name in ("stream", "tar_nc", "scp", "sftp")
        for side in _SIDES
    ),
    *(
        Attack("H6", f"{name}, {_direction(side)}: one file", one_level_up(name, side), _ONLY)
        for name in ("stream", "tar_nc", "scp", "sftp")
        for side in _SIDES
    ),
    *(
        Attack(
            "H7",
            f"tar_nc, {_direction(side)}",
            staging_replaced("tar_nc", side),
            f"{_HOSTILE_PEER}::test_a_staging_name_is_refused",
        )
        for side in _SIDES
    ),
    *(
        Attack(
            "H8",
            f"stream, {_direction(side)}, delete",
            staging_replaced("stream", side, delete=True),
            f"{_HOSTILE_PEER}::test_a_staging_name_is_refused",
        )
        for side in _SIDES
    ),
    Attack(
        "H9",
        "stream, a local user",
        a_users_partial_file,
        f"{_TESTS}/_tree/test_staging.py::test_a_folder_of_another_user_is_refused_and_left_alone",
    ),
    *(
        Attack("M2", f"tar_nc, {_direction(side)}", set_id_that_is_not_preserved("tar_nc", side), _WITHHELD)
        for side in _SIDES
    ),
    *(
        Attack("M3", f"{name}, {_direction(side)}", capabilities_without_owner(name, side), _WITHHELD)
        for name in ("stream", "tar_nc")
        for side in _SIDES
    ),
]
