# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans are pure: tables of what users write and probes find, and what follows."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.settings import parse_settings
from ansible_collections.longhaul.fleet.plugins.modules.transfer import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.argument_spec import spec_from_documentation
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.refusal import Refusal
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.endpoint import make_endpoint
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.link_memory import KnownLine
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.methods import METHODS
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.plan import (
    first_look,
    make_plan,
    needs_all,
    transfer_id,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.probe import parse_probe
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.roots import refuse_lost_dest

PROGRAMS = {
    "rsync": {
        "path": "/usr/bin/rsync",
        "version": [3, 2, 7],
        "compress": ["zstd", "zlibx"],
        "acls": True,
        "xattrs": True,
        "holes": [],
    },
    "tar": {"path": "/usr/bin/tar", "flavour": "gnu", "text": "tar (GNU tar) 1.34"},
    "nc": {"path": "/usr/bin/nc", "dialect": "openbsd"},
    "ssh": {
        "path": "/usr/bin/ssh",
        "version": "OpenSSH_9.2p1",
        "ciphers": ["aes128-gcm@openssh.com", "aes128-ctr", "3des-cbc"],
        "configured": [],
    },
    "scp": {"path": "/usr/bin/scp", "legacy_flag": True},
    "sftp": {"path": "/usr/bin/sftp"},
    "sshd": {"path": "/usr/sbin/sshd"},
}

NO_STREAM = {"stream": "its port is closed"}


def path(kind="directory", real="/srv/data", **more):
    """Return the probe of a path with free space and permissions."""
    found = {
        "given": real,
        "real": real,
        "type": kind,
        "empty": True,
        "existing": real,
        "folder": {"path": real, "device": 1, "inode": 2},
        "existing_is_directory": True,
        "readable": True,
        "writable": True,
        "free_bytes": 10**12,
        "free_inodes": 10**6,
        "read_only": False,
    }
    return dict(found, **more)


def end(side, name=None, at=None, variables=None, connection="ssh", **more):
    """Return an endpoint with every program, a listening sshd and root."""
    probe = {
        "python": [3, 11, 2],
        "system": "Linux",
        "user": "root",
        "uid": 0,
        "now_ns": 10**18,
        "machine": name or side,
        "cores": 2,
        "aes": True,
        "tls13": True,
        "zstd": False,
        "addresses": ["10.0.0.1", "127.0.0.1"],
        "link_mbit": 10000,
        "path": at or path(),
        "programs": copy.deepcopy(PROGRAMS),
        "selinux": False,
        "owners": {},
        "methods": list(METHODS),
        "sshd": {"listening": [22], "config": {}, "home": "/root"},
        "rsyncd_module": None,
        "no_folders": [],
        "not_followed": "",
        "job": {"running": False, "request": {}, "status": {}},
    }
    return make_endpoint(name or side, side, variables or {}, connection, parse_probe(dict(probe, **more)))


def options(**given):
    """Return the module's options with their defaults."""
    spec = spec_from_documentation(DOCUMENTATION)
    defaults = {name: option.get("default") for name, option in spec.items()}
    return dict(defaults, **{"src": "/srv/data/", "dest": "/srv/data", "trust": "full", **given})


def plan(from_end=None, to_end=None, check=False, avoid=None, **given):
    return make_plan(options(**given), from_end or end("source"), to_end or end("dest"), check, avoid=avoid)


def without(*programs, side="dest", **more):
    kept = {name: value for name, value in copy.deepcopy(PROGRAMS).items() if name not in programs}
    return end(side, programs=kept, **more)


def with_rsync(*version):
    programs = copy.deepcopy(PROGRAMS)
    programs["rsync"]["version"] = list(version)
    return end("dest", programs=programs)


@pytest.mark.parametrize("given", [{}, {"delete": True, "link_dest": ["/older"]}, {"method": "rsync"}], ids=str)
def test_a_job_reads_all_settings_of_a_plan(given):
    """What a plan forgets would get the value that an earlier version meant."""
    settings = plan(**given).settings
    assert parse_settings(settings) == settings


@pytest.mark.parametrize(("connect", "sides"), [("push", ("source", "dest")), ("pull", ("dest", "source"))])
def test_the_connecting_side_comes_first(connect, sides):
    assert plan(connect=connect).sides == sides


@pytest.mark.parametrize(
    ("given", "dest", "expected"),
    [
        ({}, None, "stream"),
        ({"encryption": "none"}, None, "stream"),
        ({}, without(*PROGRAMS), "stream"),
        ({"encryption": "none"}, end("dest", tls13=False), "stream"),
        ({"compress": "zlib"}, None, "stream"),
        # what stream cannot do is left to others
        ({}, end("dest", tls13=False), "rsync"),
        ({}, end("dest", python=[3, 6, 8]), "rsync"),
        ({"compress": "zstd"}, None, "rsync"),
        ({"rsync_opts": ["--fuzzy"]}, None, "rsync"),
        ({"rsync_opts": ["--fuzzy"], "encryption": "none"}, None, "rsyncd"),
        ({"ssh_ciphers": ["aes128-ctr"]}, None, "rsync"),
    ],
)
def test_stream_is_the_best_where_it_can_run(given, dest, expected):
    made = plan(to_end=dest, **given)
    assert made.choice.method == expected
    assert (expected == "stream") != ("stream does not fit" in made.choice.reason)
    assert made.choice.tentative == (expected in ("stream", "rsyncd"))
    assert bool(made.peer["patience"]) == made.choice.tentative


@pytest.mark.parametrize(
    ("given", "dest", "expected"),
    [
        ({}, None, "rsync"),
        ({"encryption": "none"}, None, "rsyncd"),
        ({"encryption": "required"}, None, "rsync"),
        ({"encryption": "none"}, without("rsync"), "tar_nc"),
        ({"encryption": "none"}, without("rsync", "nc"), "tar_nc"),
        ({"encryption": "none"}, end("dest", uid=7), "tar_nc"),  # a daemon without root rewrites symlinks
        ({"encryption": "none"}, without("tar", uid=7), "rsync"),
        ({"encryption": "none", "method": "rsyncd"}, end("dest", uid=7), "rsyncd"),
        ({"method": "tar_nc"}, None, "tar_nc"),
    ],
)
def test_without_stream_it_is_the_best_that_both_hosts_can(given, dest, expected):
    made = plan(to_end=dest, avoid=NO_STREAM, **given)
    assert made.choice.method == expected
    assert made.encrypted == (expected == "rsync")


@pytest.mark.parametrize("encryption", ["auto", "none", "required"])
@pytest.mark.parametrize(
    "lies",
    [
        {"programs": {name: PROGRAMS[name] for name in ("ssh", "sftp")}, "python": [3, 7, 0]},
        {"programs": {name: PROGRAMS[name] for name in ("ssh", "scp")}, "python": [3, 7, 0]},
    ],
    ids=["sftp", "scp"],
)
@pytest.mark.parametrize("connect", ["push", "pull", "auto"])
def test_no_host_brings_a_slower_method_about(lies, connect, encryption):
    """A client that says it has an old Python and no rsync gets no key to the repository's files."""
    for ends in ({"from_end": end("source", **lies)}, {"to_end": end("dest", **lies)}):
        with pytest.raises(Refusal, match="Method sftp or scp can be named"):
            plan(connect=connect, encryption=encryption, **ends)


PART = {"source": "from_end", "dest": "to_end"}  # of plan


@pytest.mark.parametrize("connect", ["push", "pull"])
@pytest.mark.parametrize("method", ["sftp", "scp"])
def test_the_serving_end_needs_neither_program_nor_trust(method, connect):
    serving = "dest" if connect == "push" else "source"
    made = plan(method=method, connect=connect, **{PART[serving]: without("scp", "sftp", side=serving)})
    assert made.warnings == ()


def test_a_daemon_of_ours_never_holds_older_copies():
    given = {"link_dest": ["/older"], "encryption": "none"}
    with pytest.raises(Refusal, match="method rsyncd cannot be used: the source could write"):
        plan(method="rsyncd", **given)
    assert plan(method="rsyncd", connect="pull", **given).choice.method == "rsyncd"  # the links are made by our side
    assert plan(avoid=NO_STREAM, **given).choice.method == "tar_nc"


@pytest.mark.parametrize(
    ("given", "looked"),
    [
        ({}, ("stream",)),
        ({"encryption": "none"}, ("stream",)),
        ({"compress": "zstd"}, ("stream",)),
        ({"method": "rsync"}, ("rsync",)),
        ({"method": "tar_nc", "encryption": "required"}, ("tar_nc",)),
        ({"rsync_opts": ["--fuzzy"]}, METHODS),
        ({"sftp_requests": 99}, METHODS),
        ({"delta": "rsync"}, ("stream", "rsync")),
        ({"delta": "rsync", "method": "sftp"}, ("sftp", "rsync")),
        ({"delta": "blocks"}, ("stream",)),
        ({"congestion": "bbr"}, ("stream",)),
    ],
)
def test_the_first_probe_looks_at_no_more_than_is_likely_to_be_used(given, looked):
    assert first_look(options(**given)) == looked


@pytest.mark.parametrize(
    ("given", "dest", "expected"),
    [
        ({}, {}, False),
        ({}, {"tls13": False}, True),
        ({}, {"python": [3, 6, 8]}, True),
        ({"encryption": "none"}, {"tls13": False}, False),
        ({"compress": "zstd"}, {}, True),
        ({"compress": "zlib"}, {}, False),
        ({"method": "stream"}, {"tls13": False}, False),  # refused by name
        ({"method": "rsync"}, {"tls13": False}, False),
        ({"rsync_opts": ["--fuzzy"]}, {"tls13": False}, False),  # all were looked at first
    ],
)
def test_all_methods_are_looked_at_where_auto_cannot_have_the_first(given, dest, expected):
    ends = end("source", programs={}), end("dest", programs={}, **dest)
    assert needs_all(options(**given), *ends) == expected
    if not expected and "method" not in given and "rsync_opts" not in given:
        assert plan(*ends, **given).choice.method == "stream"  # without a look at any program


def test_auto_takes_a_daemon_where_the_end_that_is_connected_to_is_root():
    user, root = end("source", uid=7), end("dest")
    assert plan(user, root, encryption="none", avoid=NO_STREAM).choice.method == "rsyncd"
    assert plan(user, root, encryption="none", connect="pull", avoid=NO_STREAM).choice.method == "tar_nc"


@pytest.mark.parametrize(
    ("given", "dest", "words"),
    [
        ({"method": "tar_nc", "encryption": "required"}, None, "does not encrypt"),
        ({"method": "rsync"}, without("rsync"), "dest has no rsync"),
        ({"method": "stream"}, end("dest", tls13=False), "Python of dest has no TLS 1.3"),
        ({"method": "stream"}, end("dest", python=[3, 6, 8]), "Python of dest is older than 3.8"),
        ({"method": "stream", "compress": "zstd"}, None, "compress is zstd"),
        ({"method": "stream", "ssh_ciphers": ["aes128-ctr"]}, None, "ssh_ciphers"),
        ({}, without("rsync", "scp", "sftp", python=[3, 6, 8]), "encryption: none"),
        ({"sftp_requests": 99}, None, "sftp_requests is set.*name method sftp"),
        ({}, without("rsync", python=[3, 6, 8]), "sftp or scp can be named"),
        ({"rsyncd_module": "m"}, None, "rsyncd_module is set.*name method rsyncd"),
        ({"method": "rsync"}, with_rsync(3, 0, 9), "rsync of dest is 3.0.9, and 3.1.0"),
        ({"connect": "push"}, without("rsync", "scp", "sftp", tls13=False), "connect: pull"),
        ({"rsync_opts": ["--fuzzy"], "method": "scp"}, None, "rsync_opts"),
        ({"compress": "lz4"}, None, "compress is lz4"),
        ({"inplace": True, "method": "sftp"}, None, "inplace is set.*name method stream or rsync"),
        ({"inplace": True, "preserve": ["permissions"]}, None, "preserve is without times"),
        ({"inplace": True, "link_dest": ["/older"]}, None, "changed in both"),
        ({"ssh_ciphers": ["arcfour"]}, None, "arcfour"),
        ({"preserve": ["owner"]}, end("dest", uid=1000, user="bob"), "bob on dest is not root"),
    ],
)
def test_refusals_say_what_was_found(given, dest, words):
    with pytest.raises((Refusal, ValueError), match=words):
        plan(to_end=dest, **given)


def test_an_unencrypted_method_by_name_warns_unless_the_network_is_trusted():
    assert "does not encrypt" in plan(method="rsyncd").warnings[0]
    assert plan(method="rsyncd", encryption="none").warnings == ()


@pytest.mark.parametrize("encryption", ["auto", "required", "none"])
def test_a_stream_is_encrypted_unless_the_network_is_trusted(encryption):
    made = plan(to_end=without(*PROGRAMS), method="stream", encryption=encryption)
    assert made.encrypted == made.settings["encrypt"] == (encryption != "none")
    assert made.warnings == () and "ssh" not in made.serve
    assert plan(to_end=end("dest", tls13=False), method="stream", encryption="none").choice.method == "stream"


@pytest.mark.parametrize(
    ("given", "cores", "expected"),
    [
        ({"method": "stream"}, 1, 1),
        ({"method": "stream"}, 3, 3),
        ({"method": "stream"}, 64, 4),
        ({"method": "stream", "streams": "9"}, 1, 9),
        ({"method": "rsync"}, 64, 1),
        ({"method": "rsync", "streams": "3"}, 1, 3),
        ({"method": "scp", "streams": "3"}, 4, 1),
        ({"method": "sftp", "streams": "3"}, 4, 1),
    ],
)
def test_streams(given, cores, expected):
    made = plan(end("source", cores=64), end("dest", cores=cores), **given).settings
    assert made["streams"] == expected
    measures = given == {"method": "stream"}
    assert made["streams_max"] == (16 if measures else expected)
    assert (made["streams_first"], made["congestion_first"]) == (expected, "")


@pytest.mark.parametrize(
    ("given", "known", "expected"),
    [
        ({"method": "stream"}, 12, 12),
        ({"method": "stream"}, 1, 3),
        ({"method": "stream"}, 10**9, 16),
        ({"method": "stream", "streams": "5"}, 12, 5),
        ({"method": "rsync"}, 12, 1),
    ],
)
def test_a_transfer_begins_with_what_is_known_of_the_line(given, known, expected):
    ends = end("source", cores=64), end("dest", cores=3)
    made = make_plan(options(**given), *ends, check=False, line=KnownLine(known, "bbr")).settings
    assert (made["streams_first"], made["congestion_first"]) == (expected, "bbr")
    assert made["streams"] == min(expected, 3) or given.get("streams")


@pytest.mark.parametrize("method", ["scp", "sftp", "rsync", "tar_nc", "stream"])
@pytest.mark.parametrize("streams", ["auto", "1", "3"])
def test_streams_that_a_method_has_not_are_a_warning(method, streams):
    warned = [text for text in plan(method=method, streams=streams).warnings if "streams" in text]
    told = [f"streams is 3, but method {method} has one: use another method, or leave streams out"]
    assert warned == (told if streams == "3" and method in ("scp", "sftp") else [])


@pytest.mark.parametrize(
    ("compress", "zstd", "expected"),
    [
        ("auto", False, {"algorithm": "zlib", "level": None, "auto": True}),
        ("auto", True, {"algorithm": "zstd", "level": None, "auto": True}),
        ("none", True, {"algorithm": None, "level": None}),
        ("zlib", True, {"algorithm": "zlib", "level": None}),
    ],
)
def test_what_a_stream_compresses_with(compress, zstd, expected):
    ends = end("source", zstd=True), end("dest", zstd=zstd)
    assert plan(*ends, method="stream", compress=compress).settings["compress"] == expected


@pytest.mark.parametrize(
    ("src", "dest", "source_path", "dest_path", "expected"),
    [
        ("/srv/data/", "/mnt/x", path(), path(real="/mnt/x"), ("/srv/data", "/mnt/x", None)),
        (
            "/srv/data",
            "/mnt/x",
            path(),
            path(real="/mnt/x", child=path("missing", "/mnt/x/data", existing="/mnt/x")),
            ("/srv/data", "/mnt/x/data", None),
        ),
        ("/srv/disk.img", "/mnt/x", path("file", "/srv/disk.img"), path(real="/mnt/x"), ("/srv", "/mnt/x", "disk.img")),
        (
            "/srv/disk.img",
            "/mnt/y/disk.img",
            path("file", "/srv/disk.img"),
            path("missing", "/mnt/y/disk.img", existing="/mnt"),
            ("/srv", "/mnt/y", "disk.img"),
        ),
    ],
)
def test_roots_follow_rsyncs_trailing_slash(src, dest, source_path, dest_path, expected):
    made = plan(end("source", at=source_path), end("dest", at=dest_path), src=src, dest=dest)
    assert (made.roots.source, made.roots.dest, made.roots.only) == expected


@pytest.mark.parametrize(
    ("source", "dest", "given", "words"),
    [
        (path("missing"), path(), {}, "there is nothing"),
        (path("file"), path(), {"src": "/srv/data/"}, "slash at its end"),
        (path("dangling"), path(), {}, "symbolic link"),
        (path(), path("file"), {}, "not a directory"),
        (path(), path("missing", existing="/srv/file", existing_is_directory=False), {}, "/srv/file"),
        (path("file", "/srv/a"), path("missing", "/mnt/b"), {"src": "/srv/a", "dest": "/mnt/b"}, "does not rename"),
        (path(), path("dangling"), {}, "symbolic link"),
        (path(), path("unreachable", reason="Permission denied"), {}, "become"),
        (path("unreachable", reason="Permission denied"), path(), {}, "become"),
        (path(), path(writable=False), {}, "cannot be written"),
        (path(), path(read_only=True), {}, "mounted read-only"),
        (path(readable=False), path(), {}, "cannot be read"),
        (
            path(measured={"content": 2**40, "apparent": 2**40, "entries": 5, "complete": True}),
            path(free_bytes=2**30),
            {},
            r"1\.0 TiB.*1\.0 GiB",
        ),
        (
            path(measured={"content": 0, "apparent": 0, "entries": 500, "complete": False}),
            path(free_inodes=9),
            {},
            "9 inodes",
        ),
    ],
)
def test_bad_paths_are_refused(source, dest, given, words):
    with pytest.raises(Refusal, match=words):
        plan(end("source", at=source), end("dest", at=dest), **given)


@pytest.mark.parametrize(
    ("source", "dest", "delete", "words"),
    [
        ("/srv/data", "/srv/data", False, "same directory"),
        ("/srv/data", "/srv/data/copy", False, "inside the source"),
        ("/srv/data/old", "/srv/data", True, "inside the destination"),
    ],
)
def test_nested_roots_on_one_machine_are_refused(source, dest, delete, words):
    ends = [end("source", name="one", at=path(real=source)), end("dest", name="one", at=path(real=dest))]
    with pytest.raises(Refusal, match=words):
        plan(*ends, delete=delete)


def test_siblings_with_a_common_prefix_are_not_nested():
    ends = [end("source", name="one", at=path(real="/srv/data")), end("dest", name="one", at=path(real="/srv/data2"))]
    assert plan(*ends).roots.dest == "/srv/data2"


def test_an_ordinary_user_keeps_what_it_may_and_is_told_the_rest():
    made = plan(to_end=end("dest", uid=1000, user="bob"))
    assert set(made.settings["preserve"]).isdisjoint({"owner", "devices"})
    assert {"group", "specials"} <= set(made.settings["preserve"])
    assert made.warnings == (
        "owner and device nodes cannot be kept: bob on dest is not root",
        "of groups only those are kept that bob on dest is a member of",
    )


def test_a_user_without_rights_may_ask_for_groups():
    made = plan(to_end=end("dest", uid=1000, user="bob"), preserve=["group", "times"])
    assert made.settings["preserve"] == ["group", "times"] and made.warnings == ()


@pytest.mark.parametrize(
    ("links", "given", "warns"),
    [
        (["/srv/data/old"], {"delete": True}, True),
        (["/srv/data"], {"delete": True}, False),
        (["/srv/data/old"], {}, False),
        (["/srv/data/old"], {"delete": True, "exclude": ["/old"]}, False),
        (["/srv/data2", "/srv"], {"delete": True}, False),
    ],
)
def test_a_link_dest_that_delete_removes_is_told(links, given, warns):
    made = plan(end("source"), end("dest", at=path(real="/srv/data")), link_dest=links, **given)
    assert any("inside" in text and links[0] in text for text in made.warnings) == warns


def test_what_an_rsync_cannot_keep_is_told_once():
    programs = copy.deepcopy(PROGRAMS)
    programs["rsync"].update(acls=False, xattrs=False)
    assert plan(to_end=end("dest", programs=programs)).warnings == ()
    assert plan(to_end=end("dest", programs=programs), method="rsync").warnings == (
        "acls cannot be kept: the rsync on dest was built without acls",
        "xattrs cannot be kept: the rsync on dest was built without xattrs",
    )


@pytest.mark.parametrize(
    ("dest", "given", "ssh"),
    [
        (end("dest"), {}, "system"),
        (end("dest"), {"port_range": "50000-50010"}, "private"),
        (end("dest", sshd={"listening": [], "config": {}, "home": "/root"}), {}, "private"),
        (end("dest", sshd={"listening": [22], "config": {"permitrootlogin": "no"}, "home": "/root"}), {}, "private"),
        (end("dest", uid=7, sshd={"listening": [22], "config": {"permitrootlogin": "no"}, "home": "/h"}), {}, "system"),
        (end("dest", variables={"ansible_port": 2222}), {}, "private"),
    ],
)
def test_the_hosts_own_sshd_serves_unless_it_cannot(dest, given, ssh):
    assert plan(to_end=dest, method="rsync", **given).serve["ssh"] == ssh


def test_the_destination_connects_where_only_that_works():
    assert plan(without("ssh", side="source"), avoid=NO_STREAM).driver == "dest"
    assert plan(without("ssh", side="source"), method="sftp").driver == "dest"
    assert plan(without("ssh", side="source"), without("ssh"), encryption="none", avoid=NO_STREAM).driver == "source"
    assert plan(without("ssh", side="source")).driver == "source"  # stream needs no ssh


def test_a_missing_link_dest_is_a_warning():
    (warning,) = plan(to_end=end("dest", no_folders=["/old"]), link_dest=["/old"]).warnings
    assert "/old is no directory on dest" in warning


def test_what_is_linked_needs_no_room():
    large = end("source", at=path(measured={"content": 2**40, "apparent": 2**40, "entries": 5, "complete": True}))
    little = end("dest", at=path(free_bytes=2**30))
    assert plan(large, little, link_dest=["/old"]).settings["link_dest"] == ["/old"]
    little = end("dest", at=path(free_bytes=2**30), no_folders=["/old"])
    with pytest.raises(Refusal, match="has room for"):
        plan(large, little, link_dest=["/old"])


def test_pull_makes_the_destination_drive():
    made = plan(connect="pull")
    assert (made.driver, made.peer["host"]) == ("dest", "source")


@pytest.mark.parametrize(
    ("given", "link", "algorithm"),
    [({}, 10000, None), ({}, 100, "zstd"), ({"bwlimit": "5M"}, 10000, "zstd"), ({"compress": "none"}, 100, None)],
)
def test_compression_is_automatic_on_slow_lines_only(given, link, algorithm):
    made = plan(end("source", link_mbit=link), method="rsync", **given)
    assert made.settings["compress"]["algorithm"] == algorithm


@pytest.mark.parametrize(
    ("src", "source", "words"),
    [
        ("/srv/data", path(), "begins with the name of src"),
        ("/srv/data", path("file"), "leave out src /srv/data"),
    ],
)
def test_rules_that_would_be_misread_are_refused(src, source, words):
    with pytest.raises(Refusal, match=words):
        plan(end("source", at=source), end("dest", at=path(child=path())), src=src, dest="/srv/", exclude=["/data"])


def test_transfer_id_is_stable_and_depends_on_every_part():
    names = {transfer_id(*parts) for parts in ("abcd", "abce", "abxd", "xbcd", "axcd")}
    assert len(names) == 5
    assert transfer_id(*"abcd") == transfer_id(*"abcd")


@pytest.mark.parametrize(
    ("variables", "connection", "address"),
    [
        ({"longhaul_address": "10.9.9.9", "ansible_host": "10.1.1.1"}, "ssh", "10.9.9.9"),
        ({"ansible_host": "10.1.1.1"}, "ssh", "10.1.1.1"),
        ({"ansible_ssh_host": "10.1.1.2"}, "ssh", "10.1.1.2"),
        ({"ansible_host": "10.1.1.1", "ansible_ssh_host": "10.1.1.2"}, "ssh", "10.1.1.2"),  # as Ansible's ssh
        ({"longhaul_address": "10.9.9.9", "ansible_ssh_host": "10.1.1.2"}, "ssh", "10.9.9.9"),
        ({}, "ssh", "web1"),
        ({"ansible_host": "container7"}, "community.docker.docker", "10.0.0.1"),
        ({}, "local", "10.0.0.1"),
    ],
)
def test_the_address_for_the_other_end(variables, connection, address):
    assert end("dest", name="web1", variables=variables, connection=connection).address == address


def test_a_daemon_module_must_contain_the_root():
    module = {"path": "/srv", "config": "/etc/rsyncd.conf"}
    made = plan(to_end=end("dest", rsyncd_module=module), method="rsyncd", rsyncd_module="m")
    assert made.settings["rsyncd_module"] == {
        "name": "m",
        "user": None,
        "port": 873,
        "subpath": "data",
        "options": module,
    }
    with pytest.raises(Refusal, match="not inside /elsewhere"):
        plan(to_end=end("dest", rsyncd_module={"path": "/elsewhere"}), method="rsyncd", rsyncd_module="m")
    with pytest.raises(Refusal, match="no rsync daemon module"):
        plan(method="rsyncd", rsyncd_module="m")


def test_a_daemon_module_with_older_copies_is_told():
    """An administrator's module may hold them, unlike that of a daemon of ours; who may write to it can change them."""
    configured = {"method": "rsyncd", "rsyncd_module": "m", "link_dest": ["/srv/older"], "encryption": "none"}
    holds = end("dest", rsyncd_module={"path": "/srv", "config": "/etc/rsyncd.conf"})
    (warning,) = plan(to_end=holds, **configured).warnings
    assert all(text in warning for text in ("link_dest", "the module m on dest", "source", "could change the older"))
    without = {**configured, "link_dest": []}
    assert plan(to_end=holds, **without).warnings == ()
    reads = end("source", rsyncd_module={"path": "/srv", "config": "/etc/rsyncd.conf"})
    assert plan(from_end=reads, connect="pull", **configured).warnings == ()  # our side makes the links


def test_a_destination_with_selinux_gets_advice_that_a_shell_can_read():
    assert plan().relabel == ""
    made = plan(to_end=end("dest", selinux=True, at=path(real="/new data")))
    assert "restorecon -R '/new data'" in made.relabel and "SELinux is enabled on dest" in made.relabel
    assert made.warnings == ()  # only where something is made


def test_without_trust_nothing_but_stream_is_taken():
    made = plan(trust="none")
    assert (made.choice.method, made.trust) == ("stream", "none")
    assert not made.choice.tentative  # where its port cannot be reached, no other method takes its place
    assert plan(trust="none", encryption="none").choice.method == "stream"
    assert plan(trust="none", link_dest=["/srv/older"]).choice.method == "stream"


@pytest.mark.parametrize(
    "more, given, why",
    [
        ({"tls13": False}, {}, "the Python of dest has no TLS 1.3"),
        ({"python": [3, 7, 3]}, {}, "the Python of dest is older than 3.8"),
        ({}, {"rsync_opts": ["--fsync"]}, "it does not know rsync_opts"),
        ({}, {"compress": "zstd"}, "it does not offer zstd here"),
    ],
)
def test_what_a_host_lacks_is_no_reason_to_trust_it(more, given, why):
    assert plan(to_end=end("dest", **more), **given).choice.method == "rsync"
    with pytest.raises(Refusal, match=f"only method stream is used unless another is named, and it cannot be: {why}"):
        plan(to_end=end("dest", **more), trust="none", **given)


def test_without_trust_only_what_stream_needs_is_looked_at():
    wary = options(trust="none", rsync_opts=["--fsync"])
    assert first_look(wary) == ("stream",)
    assert not needs_all(wary, end("source"), end("dest", tls13=False))


@pytest.mark.parametrize(
    "variables, machine, allowed",
    [
        ({}, "source", ["10.0.0.1"]),
        ({}, "dest", ["10.0.0.1", "127.0.0.1"]),  # one machine
        ({"longhaul_address": "127.0.0.1"}, "source", ["10.0.0.1", "127.0.0.1"]),  # the end of a tunnel
        ({"longhaul_address": "localhost"}, "source", ["10.0.0.1", "127.0.0.1"]),
    ],
)
def test_users_of_the_serving_host_may_not_connect(variables, machine, allowed):
    from_end = end("source", connection="local", machine=machine)
    to_end = end("dest", at=path(real="/srv/other"), variables=variables, connection="local")
    made = plan(from_end, to_end, dest="/srv/other")
    assert made.serve["allow"] == allowed


@pytest.mark.parametrize(
    ("source", "dest", "delete", "is_refused"),
    [
        ("8:1:/a", "8:1:/a", False, True),
        ("8:1:/a", "8:1:/a/b", False, True),
        ("8:1:/a/b", "8:1:/a", True, True),
        ("8:1:/a/b", "8:1:/a", False, False),
        ("8:1:/a", "8:1:/ab", True, False),
        ("8:1:/a", "8:2:/a", True, False),
        ("8:1:/a", "", True, False),
        ("", "", True, False),
    ],
)
def test_a_bind_mount_does_not_hide_that_a_copy_would_contain_itself(source, dest, delete, is_refused):
    one = end("source", name="one", at=path(real="/one", empty=False, device_path=source))
    two = end("dest", name="one", at=path(real="/two", device_path=dest))
    if not is_refused:
        plan(one, two, delete=delete)
        return
    with pytest.raises(Refusal, match="/one and /two show the same folder"):
        plan(one, two, delete=delete)
    plan(one, end("dest", at=path(real="/two", device_path=dest)), delete=delete)  # another machine


def test_a_root_folder_is_emptied_only_up_to_a_limit():
    dest = end("dest", at=path(real="/", empty=False))
    given = {"dest": "/", "exclude": ["*.tmp"]}
    with pytest.raises(Refusal, match="dest is / and delete is set"):
        plan(end("source", at=path(empty=False)), dest, delete=True, **given)
    plan(end("source", at=path(empty=False)), dest, delete=True, max_delete=10, **given)
    plan(end("source", at=path(empty=False)), dest, delete=False, **given)


@pytest.mark.parametrize(
    ("kind", "empty", "entries", "is_refused"),
    [
        ("directory", True, 7, True),
        ("missing", True, 7, True),
        ("directory", False, 7, False),
        ("directory", True, 1, False),  # the source had nothing
        ("missing", True, 0, False),  # the first pass
    ],
)
def test_an_empty_destination_is_not_what_an_earlier_pass_left(kind, empty, entries, is_refused):
    roots = plan(to_end=end("dest", at=path(kind, real="/new", empty=empty))).roots
    if not is_refused:
        refuse_lost_dest(roots, "dest", entries)
        return
    with pytest.raises(Refusal, match="/new on dest is empty, and the last pass left 7 entries there.* mount it"):
        refuse_lost_dest(roots, "dest", entries)
