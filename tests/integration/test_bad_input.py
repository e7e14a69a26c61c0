# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Mistakes in a task and in what it names: each gives one clear error, writes nothing, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks
from ansible_collections.longhaul.fleet.tests.support.refusal import hide, make_mistakes, mistake, replace, small_tree
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

OPTIONS = [
    mistake("unknown host", "'old.example.org'", "inventory", src_host="old.example.org"),
    mistake("unknown destination host", "'new'", "inventory", dest_host="new"),
    mistake("no src", "src", src=None),
    mistake("unknown option", "compres", "compress", compres="none"),
    mistake("unknown method", "method", "rsnc", "tar_nc", method="rsnc"),
    mistake("no number of streams", "streams", "many", streams="many"),
    mistake("zero streams", "streams", "0", streams=0),
    mistake("a port that is none", "port", "70000", port=70000),
    mistake("port and port_range", "port", "port_range", "mutually exclusive", port=5000, port_range="5000-5001"),
    mistake("one port as a range", "port_range", "5000", "50000-50100", port_range="5000"),
    mistake("a range backwards", "port_range", "6000-5000", port_range="6000-5000"),
    mistake("no rate", "bwlimit", "'fast'", "50M", bwlimit="fast"),
    mistake("negative timeout", "timeout", "-1", timeout=-1),
    mistake("negative max_delete", "max_delete", "-1", max_delete=-1, delete=True),
    mistake("relative src", "src", "'data/src'", "absolute", src="data/src"),
    mistake("relative dest", "dest", "'~/dest'", "absolute", dest="~/dest"),
    mistake("relative link_dest", "link_dest", "'old'", "absolute", link_dest=["old"]),
    mistake("merge file", "filter", "merge /etc/rules", filter=["merge /etc/rules"]),
    mistake("no rule", "filter", "'*.tmp'", filter=["*.tmp"]),
    mistake("empty exclude", "exclude", exclude=[""]),
    mistake("option of rsync that removes the source", "--remove-source-files", rsync_opts=["--remove-source-files"]),
    mistake("unknown option of rsync", "--nonsense", rsync_opts=["--nonsense"]),
    mistake("option of rsync that the task has", "--delete", "delete", rsync_opts=["--delete"]),
    mistake("cipher that left OpenSSH", "arcfour", "offer", ssh_ciphers=["arcfour"]),
    mistake("compression of another method", "lz4", "tar_nc", "zlib", method="tar_nc", compress="lz4"),
    mistake("option of another method", "sftp_requests", "rsync", method="rsync", sftp_requests=9),
    mistake("encryption required", "tar_nc", "encrypt", "rsync", method="tar_nc", encryption="required"),
    mistake("password without a module", "rsyncd_password", "rsyncd_module", method="rsyncd", rsyncd_password="x"),
]

PATHS = [
    mistake("missing source", "/data/none", "nothing", "alpha", src="/data/none/"),
    mistake("dangling source", "/data/dangling", "link", "alpha", src="/data/dangling"),
    mistake("a pipe as the source", "/data/pipe", "regular file", src="/data/pipe"),
    mistake("contents of a file", "/data/src/file", "slash", src="/data/src/file/"),
    mistake("another name for a file", "rename", "/data/file", src="/data/src/file", dest="/data/other"),
    mistake("the same directory", "same", "/data/src", dest_host="alpha", dest="/data/src"),
    mistake("the same by a link", "same", dest_host="alpha", dest="/data/link"),
    mistake("inside the source", "inside", "itself", dest_host="alpha", dest="/data/src/folder/copy"),
    mistake("into itself by its name", "inside", "itself", src="/data/src", dest_host="alpha", dest="/data/src"),
    mistake("delete around the source", "inside", "delete", dest_host="alpha", dest="/data", delete=True),
    mistake("a file is the destination", "/data/file", "not a directory", "beta", dest="/data/file"),
    mistake("a file above it", "/data/file", "not a directory", dest="/data/file/sub/deeper"),
    mistake("a dangling link is the destination", "/data/dangling", "link", "beta", dest="/data/dangling"),
    mistake("an empty source, and delete", "empty", "max_delete", src="/data/empty/", dest="/data/full", delete=True),
    mistake(
        "read-only file system",
        "/data/dest",
        "read-only",
        "beta",
        before={"beta": "mount -o remount,ro /data"},
        after={"beta": "mount -o remount,rw /data"},
    ),
    mistake(
        "no space",
        "/data/dest",
        "beta",
        "room for",
        "KiB",
        before={"beta": "mount -o remount,size=500k /data"},
        after={"beta": "mount -o remount,size=1g /data"},
    ),
    mistake(
        "no space for one file",
        "/data/dest",
        "beta",
        "room for",
        "KiB",
        src="/data/src/file",
        dest="/data/dest/",
        before={"beta": "mount -o remount,size=500k /data"},
        after={"beta": "mount -o remount,size=1g /data"},
    ),
    mistake(
        "no inodes",
        "/data/dest",
        "beta",
        "inodes",
        before={"beta": "mount -o remount,nr_inodes=20 /data"},
        after={"beta": "mount -o remount,nr_inodes=1000000 /data"},
    ),
]

PLAIN = [
    mistake("unwritable destination", "/data", "plain", "beta", "become"),
    mistake("unreadable source", "/data/closed", "plain", "alpha", "become", src="/data/closed/", dest="/data/open"),
    mistake(
        "source in a closed folder", "/data/closed/a", "Permission denied", "alpha", "become", src="/data/closed/a/"
    ),
    mistake(
        "destination in a closed folder", "/data/closed/a", "Permission denied", "beta", "become", dest="/data/closed/a"
    ),
    mistake("owner without root", "owner", "plain", "become", dest="/data/open/x", preserve=["owner"]),
]

RSYNC_309 = 'echo "rsync  version 3.0.9  protocol version 30"'
PROGRAMS = [
    mistake("no rsync at the source", "rsync", "alpha", method="rsync", **hide("alpha", "/usr/bin/rsync")),
    mistake("no rsync at the destination", "rsync", "beta", method="rsync", **hide("beta", "/usr/bin/rsync")),
    mistake("no rsync for a daemon", "rsync", "beta", method="rsyncd", **hide("beta", "/usr/bin/rsync")),
    mistake(
        "old rsync at the source", "alpha", "3.0.9", "3.1.0", method="rsync", **replace("alpha", "rsync", RSYNC_309)
    ),
    mistake("old rsync, daemon", "beta", "3.0.9", "3.1.0", method="rsyncd", **replace("beta", "rsync", RSYNC_309)),
    mistake("no tar", "tar", "beta", method="tar_nc", **hide("beta", "/usr/bin/tar")),
    mistake(
        "a tar of another kind",
        "tar",
        "alpha",
        "BusyBox",
        "GNU tar",
        method="tar_nc",
        **replace("alpha", "tar", "echo BusyBox v1.35.0 multi-call binary"),
    ),
    mistake("no scp", "scp", "alpha", method="scp", connect="push", **hide("alpha", "/usr/bin/scp")),
    mistake("no sftp", "sftp", "alpha", method="sftp", connect="push", **hide("alpha", "/usr/bin/sftp")),
    mistake("no ssh", "ssh", "alpha", "pull", method="rsync", connect="push", **hide("alpha", "/usr/bin/ssh")),
    mistake(
        "nothing at all",
        "rsync",
        "sftp",
        "scp",
        "encryption: none",
        "alpha",
        "install",
        compress="lz4",  # which leaves stream out; that needs none of the programs
        before={
            "alpha": "cd /usr/bin && mkdir .h && mv rsync sftp scp ssh .h",
            "beta": "mv /usr/bin/ssh /usr/bin/.ssh",
        },
        after={
            "alpha": "cd /usr/bin && mv .h/* . && rmdir .h",
            "beta": "mv /usr/bin/.ssh /usr/bin/ssh",
        },
    ),
]


def test_options_that_make_no_sense(hosts: Testbed, playbooks: Playbooks) -> None:
    small_tree(hosts)
    make_mistakes(hosts, playbooks, OPTIONS)


def test_paths_that_cannot_be_used(hosts: Testbed, playbooks: Playbooks) -> None:
    small_tree(hosts)
    hosts.exec("alpha", ["sh", "-c", "cd /data; mkfifo pipe; mkdir empty; ln -s none/at/all dangling; ln -s src link"])
    hosts.exec("beta", ["sh", "-c", "cd /data; touch file; ln -s none/at/all dangling; mkdir full; touch full/one"])
    make_mistakes(hosts, playbooks, PATHS)


def test_what_a_user_may_not_do(hosts: Testbed, playbooks: Playbooks, tmp_path: Path) -> None:
    small_tree(hosts)
    for host in hosts.hosts:
        hosts.exec(host, ["sh", "-c", "cd /data; mkdir -p closed/a open; chmod 700 closed; chmod 777 open"])
    playbooks.inventory = hosts.inventory(tmp_path / "plain.yml", user="plain")
    make_mistakes(hosts, playbooks, PLAIN)


def test_programs_that_are_missing_or_too_old(hosts: Testbed, playbooks: Playbooks) -> None:
    small_tree(hosts)
    make_mistakes(hosts, playbooks, PROGRAMS)


def test_a_result_lists_few_changes_without_diff(hosts: Testbed, playbooks: Playbooks) -> None:
    source = hosts.root("alpha") / "data/src"
    source.mkdir()
    for number in range(50):
        (source / f"file{number}").write_text("content")
    options = {"src_host": "alpha", "src": "/data/src/"}
    broken = {**options, "dest": "/data/broken", "delete": True, "max_delete": 0}
    (hosts.root("beta") / "data/broken/extra").mkdir(parents=True)
    tasks = [
        {"name": "Plain", "longhaul.fleet.transfer": {**options, "dest": "/data/plain"}},
        {"name": "Diff", "longhaul.fleet.transfer": {**options, "dest": "/data/diff"}, "diff": True},
        {"name": "Failed", "longhaul.fleet.transfer": broken, "ignore_errors": True},
    ]
    run = playbooks.run(tasks, hosts="beta").expect_success()
    plain, diff, failed = (run.result(name) for name in ("Plain", "Diff", "Failed"))
    assert (len(plain["changes"]), plain["changes_total"], plain["changes_truncated"]) == (20, 51, True)
    assert (len(diff["changes"]), diff["changes_total"], diff["changes_truncated"]) == (51, 51, False)
    assert len(diff["diff"]["prepared"].splitlines()) == 51
    assert "max_delete" in failed["msg"] and len(failed.get("changes", [])) <= 20, failed
