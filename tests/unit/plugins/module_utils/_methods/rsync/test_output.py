# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What rsync prints, in pieces of any size; and what it means."""

from __future__ import annotations

import os
import subprocess

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.failure import classify
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.output import (
    ErrorReader,
    OutputReader,
    parse_item,
    read_error,
    unescape,
)
from hypothesis import given, settings
from hypothesis import strategies as st

OUTPUT = b"""\
@id .d..t...... 0 ./
@id cL+++++++++ 0 a -> b
\r          32768   0%    0.00kB/s    0:00:00  \r      193232896  61%  184.25MB/s    0:00:00  \
\r      314572800  99%  163.74MB/s    0:00:01 (xfr#1, to-chk=2/30)@id <f+++++++++ 314611239 two\\#012lines
@id *deleting   0 gone/
skipping non-regular file "fifo"
IO error encountered -- skipping file deletion

Number of files: 3 (reg: 1, dir: 1, link: 1)
Total file size: 1,314,572,811 bytes
Literal data: 314572800 bytes
Number of 4 KiB logical blocks touched: 76801
"""


def read(pieces):
    items, progress = [], []
    reader = OutputReader("@id ", items.append, lambda *found: progress.append(found))
    for piece in pieces:
        reader.feed(piece)
    reader.feed(b"")
    return reader, items, progress


def check(reader, items, progress):
    assert [(item.kind, item.path, item.is_directory) for item in items] == [
        ("attributes", b"", True),
        ("created", b"a -> b", False),
        ("created", b"two\nlines", False),
        ("deleted", b"gone", True),
    ]
    assert progress == [(32768, 0, 0), (193232896, 0, 0), (314572800, 28, 30)]
    assert reader.statistics["Total file size"] == 1314572811
    assert reader.statistics["Literal data"] == 314572800
    assert reader.statistics["Number of files"] == 3
    assert list(reader.remarks) == ['skipping non-regular file "fifo"']
    assert reader.skipped_special == 1
    assert reader.deletes_skipped


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, len(OUTPUT)), max_size=20))
def test_pieces_of_any_size_read_the_same(cuts):
    edges = [0, *sorted(cuts), len(OUTPUT)]
    check(*read([piece for piece in (OUTPUT[a:b] for a, b in zip(edges, edges[1:])) if piece]))


@pytest.mark.parametrize(
    ("line", "kind", "only_time"),
    [
        (b">f+++++++++ 1 x", "created", False),
        (b"cd+++++++++ 0 x/", "created", False),
        (b"hf+++++++++ 0 x", "created", False),
        (b">f.st...... 1 x", "updated", False),
        (b"<fcst...... 1 x", "updated", False),
        (b"cLc.t...... 0 x", "updated", False),
        (b"hf..t...... 0 x", "attributes", False),
        (b".f...p..... 0 x", "attributes", False),
        (b".d..t...... 0 x/", "attributes", True),
        (b".d..t.og... 0 x/", "attributes", False),
        (b".L..T...... 0 x", "attributes", True),
        (b"*deleting   0 x", "deleted", False),
    ],
)
def test_kinds_of_items(line, kind, only_time):
    item = parse_item(line)
    assert (item.kind, item.path, item.only_time) == (kind, b"x", only_time)


@settings(max_examples=40, deadline=None)
@given(st.binary(min_size=1, max_size=60).map(lambda text: text.replace(b"\0", b"n").replace(b"/", b"s")))
def test_every_name_comes_back_from_the_real_rsync(tmp_path_factory, name):
    if name in (b".", b".."):
        return
    source = os.fsencode(tmp_path_factory.mktemp("names"))
    with open(os.path.join(source, name), "w"):
        pass
    argv = ["rsync", "-r", "--dry-run", "--out-format=@id %i %l %n", source + b"/", source + b".none/"]
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=True, env=dict(os.environ, LC_ALL="C"))
    assert name in [item.path for item in read([done.stdout])[1]]


def test_an_escape_is_undone_once():
    assert unescape(rb"a\#134#012b\#377") == rb"a\#012b" + b"\xff"


@pytest.mark.parametrize(
    ("line", "kind", "path"),
    [
        ('rsync: [sender] opendir "/s/bad" failed: Permission denied (13)', "error", "/s/bad"),
        ('rsync: [sender] send_files failed to open "/s/ok": Permission denied (13)', "error", "/s/ok"),
        ('rsync: [receiver] mkstemp ".a.XXXX" (in m) failed: Permission denied (13)', "error", ".a.XXXX"),
        ('rsync: [generator] failed to set times on "." (in m): Operation not permitted (1)', "error", "."),
        ('rsync: [receiver] rename "/d/.t/a.X" -> "b/a": Is a directory (21)', "error", "b/a"),
        ('rsync: [receiver] rename "/.t/a.X" (in tree) -> "b/a": Is a directory (21)', "error", "b/a"),
        ('rsync: [receiver] copy "/.t/a" -> "b" (in tree) -> "c" d": Is a directory (21)', "error", 'c" d'),
        ('rsync: [generator] recv_generator: failed to stat "x "y" z": Too many (40)', "error", 'x "y" z'),
        ('rsync: rsync_xal_set: lsetxattr("f","user.a") failed: Operation not supported (95)', "error", "f"),
        ('rsync: rsync_xal_set: lsetxattr("/f" (in m),"user.a") failed: Not supported (95)', "error", "/f"),
        ("rsync: set_acl: sys_acl_set_file(f, ACL_TYPE_ACCESS): Operation not supported (95)", "error", "f"),
        ("rsync: [receiver] set_acl: acl_set_file_at(a/f, ACL_TYPE_ACCESS): Bad file (9)", "error", "a/f"),  # 3.5.1
        ('file has vanished: "/s/gone"', "vanished", "/s/gone"),
        ("could not make way for new regular file: x\\#012y", "in the way", "x\ny"),
        ('ERROR: daemon refused to receive file "z.tmp"', "error", "z.tmp"),
        ("ERROR: big failed verification -- update discarded.", "unstable", "big"),
        ("rsync: filename overflows max-path len by 177: a/b", "error", "a/b"),
    ],
)
def test_messages_about_one_path(line, kind, path):
    found = read_error(line)
    assert found is not None
    assert (found.kind, found.path) == (kind, path)
    assert found.reason


@pytest.mark.parametrize(
    "line",
    [
        "rsync error: some files/attrs were not transferred (see previous errors) (code 23) at main.c(1394)",
        "rsync: connection unexpectedly closed (0 bytes received so far) [sender]",
        'rsync: server sent "SSH-2.0-x" rather than greeting',
        "@ERROR: auth failed on module m",
        "WARNING: big failed verification -- update discarded (will try again).",
        "a banner",
    ],
)
def test_messages_about_the_whole(line):
    assert read_error(line) is None


def test_errors_are_handed_on_and_the_last_lines_kept():
    found = []
    reader = ErrorReader(found.append)
    for number in range(1000):
        reader.feed(b'rsync: [sender] opendir "%d" failed: Permission denied (13)\n' % number)
    reader.feed(b"the end")
    reader.feed(b"")
    assert len(found) == 1000
    assert len(reader.tail) == 40
    assert list(reader.general) == ["the end"]


@pytest.mark.parametrize(
    ("code", "output", "words", "transient"),
    [
        (1, "ERROR: module is read only", ["read only = no"], False),
        (12, "ERROR: module is write only", ["write only = no"], False),
        (5, "@ERROR: Unknown module 'nope'", ["nope", "hosts allow"], False),
        (5, "@ERROR: access denied to m from UNDETERMINED (10.0.0.1)", ["10.0.0.1", "hosts allow"], False),
        (5, "@ERROR: chroot failed", ["use chroot"], False),
        (5, "@ERROR: chdir failed", ["does not exist"], False),
        (5, "@ERROR: no path setting.", ["path"], False),
        (5, "@ERROR: invalid uid bob", ["uid bob"], False),
        (5, "@ERROR: setuid failed", ["root"], False),
        (5, "@ERROR: auth failed on module m", ["password", "log"], False),
        (5, "@ERROR: max connections (1) reached -- try again later", ["max connections", "1"], False),
        (5, "@ERROR: failed to open lock file", ["lock file"], False),
        (5, "@ERROR: daemon security issue -- contact admin", ["rsyncd-munged"], False),
        (4, "The server is configured to refuse --delete", ["--delete", "refuse options"], False),
        (10, "pre-xfer exec returned failure (256)", ["pre-xfer exec"], False),
        (1, "ERROR: password file must not be other-accessible", ["password"], False),
        (5, 'rsync: server sent "SSH-2.0-x" rather than greeting', ["SSH-2.0-x", "port"], False),
        (11, 'write failed on "big" (in m): No space left on device (28)', ["full", "of big", "again"], False),
        (11, "No space left on device (28)", ["full", "again"], False),
        (23, "Read-only file system (30)", ["read-only", "ProtectSystem"], False),
        (10, "rsync: failed to connect to h: Connection refused (111)", ["listens"], True),
        (10, "No route to host (113)", ["firewall"], True),
        (35, "timeout waiting for daemon connection (code 35)", ["firewall"], True),
        (5, "did not see server greeting", ["configuration"], False),
        (12, "connection unexpectedly closed", ["broke"], True),
        (30, "timeout", ["timeout"], True),
        (255, "", ["ssh"], True),
        (-9, "", ["signal 9"], True),
        (99, "odd", ["99", "odd"], False),
    ],
)
def test_what_a_failure_means(code, output, words, transient):
    failure = classify(code, output)
    assert failure is not None
    assert [word for word in words if word not in failure.text] == []
    assert failure.transient is transient


@pytest.mark.parametrize("code", [0, 23, 24])
def test_what_is_no_failure_of_the_whole(code):
    assert classify(code, "nothing special") is None
