# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From what is asked for to files in place: tried by a real rsync, or refused with nothing changed."""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import tempfile
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._rsyncd import identity
from ansible_collections.longhaul.fleet.plugins.module_utils._rsyncd.config_writer import (
    ConfigRefusal,
    ConfigRequest,
    ConfigWriter,
    read_trial,
)

RSYNC = shutil.which("rsync") or "rsync"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
NOBODY = pwd.getpwnam("nobody")


class Place:
    """A folder with everything of a host that the module touches."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.config, self.include = folder, folder / "rsyncd.conf", folder / "rsyncd.d"
        self.data = folder / "data"
        self.scratch = folder / "scratch"
        for path in (self.data, self.scratch):
            path.mkdir()

    def asked(self, *modules: dict, **changes) -> ConfigWriter:
        wanted = ConfigRequest(
            path=str(self.config),
            include_dir=str(self.include),
            mode=changes.pop("mode", "include"),
            modules=list(modules),
            options=changes.pop("options", {}),
            defaults=changes.pop("defaults", {"reverse_lookup": False}),
            user="nobody",
            group=grp.getgrgid(NOBODY.pw_gid).gr_name,
            users=changes.pop("users", []),
            secrets_file=changes.pop("secrets_file", None),
            header="managed",
        )
        return ConfigWriter(wanted, changes.pop("rsync", RSYNC), str(self.scratch))

    def apply(self, *modules: dict, **changes) -> ConfigWriter:
        installing = self.asked(*modules, **changes)
        installing.install(shutil.move)
        return installing

    def refused(self, *modules: dict, **changes) -> str:
        before = self.files()
        with pytest.raises(ConfigRefusal) as refusal:
            self.apply(*modules, **changes)
        assert self.files() == before
        return str(refusal.value)

    def files(self) -> dict[str, str]:
        return {str(path): path.read_text() for path in self.folder.rglob("*") if path.is_file()}

    def module(self, **changes) -> dict:
        return {"name": "data", "path": str(self.data), **changes}


@pytest.fixture(name="place")
def a_place():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Place(Path(folder))


def test_a_second_time_changes_nothing(place):
    first = place.apply(place.module(), options={"port": 8730})
    assert first.changed and first.result().restart_needed
    second = place.apply(place.module(), options={"port": 8730})
    assert not second.changed and not second.result().restart_needed
    assert second.diff() == []
    assert not any(place.scratch.iterdir())


def test_a_changed_module_needs_no_restart_and_a_changed_port_does(place):
    place.apply(place.module())
    changed = place.apply(place.module(comment="new"))
    assert changed.changed and not changed.result().restart_needed
    assert place.apply(place.module(comment="new"), options={"port": 8730}).result().restart_needed


def test_modules_are_removed_and_those_that_are_not_named_stay(place):
    place.apply(place.module(), place.module(name="other"))
    place.apply({"name": "data", "state": "absent"}, {"name": "never", "state": "absent"})
    assert [path.name for path in place.include.iterdir()] == ["other.conf"]


def test_modules_that_stay_are_told_with_what_they_need(place):
    place.apply(place.module(read_only=False, hosts_allow=["::1"]), place.module(name="gone"))
    result = place.apply(place.module(name="new"), {"name": "gone", "state": "absent"}).result()
    assert [values["name"] for values in result.modules] == ["new"]
    assert [(values["name"], values["read_only"]) for values in result.kept] == [("data", False)]


def test_a_file_of_others_is_not_removed(place):
    place.include.mkdir()
    (place.include / "data.conf").write_text(f"[data]\npath = {place.data}\n")
    assert not [path for path in place.asked({"name": "data", "state": "absent"}).changes if path.endswith("data.conf")]
    assert "not by this role" in place.refused(place.module())


def test_the_module_of_another_service_is_not_taken(place):
    place.config.write_text(f"[Da ta]\npath = {place.data}\n")
    assert f"is written in {place.config} already" in place.refused(place.module())
    place.apply(place.module(), mode="whole")  # it is gone then
    assert "Da ta" not in place.config.read_text()


def test_a_daemon_with_a_root_of_its_own_is_refused(place):
    """What the role finds and writes on the host, rsync would look for below that root."""
    refusal = "daemon_chroot is /srv/jail, so rsync would look for the paths and files of all modules below it"
    assert refusal in place.refused(place.module(), options={"daemon_chroot": "/srv/jail"})
    place.config.write_text("daemon chroot = /srv/jail\n")
    assert refusal in place.refused(place.module())
    place.apply(place.module(), mode="whole")


@needs_root
def test_modules_of_a_daemon_that_is_not_root_ask_for_none_of_its_rights(place):
    """rsync ends with "setgroups failed" where a module names a group."""
    place.data.chmod(0o755)
    asked = place.apply(place.module(), options={"daemon_uid": "nobody"})
    place.config.write_text("daemon uid = nobody\n")
    for installing in (asked, place.asked(place.module())):
        (values,) = installing.modules
        assert (values["use_chroot"], values["uid"], "gid" in values) == (False, "nobody", False)


@needs_root
@pytest.mark.parametrize("mode", ["include", "whole"])
def test_modules_of_a_daemon_that_becomes_root_again_have_its_rights(place, mode):
    place.data.chmod(0o755)
    place.apply(place.module(), options={"daemon_uid": "nobody"}, mode=mode)
    (values,) = place.apply(place.module()).modules
    assert (values["use_chroot"], values["uid"], "gid" in values) == (True, "nobody", True)


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ({"use_chroot": True}, "cannot use chroot"),
        ({"uid": "root"}, "cannot become another user or group"),
        ({"gid": ["mail"]}, "cannot become another user or group"),
        ({"auth_users": ["alice"]}, "cannot read the passwords"),
    ],
)
def test_what_a_daemon_that_is_not_root_cannot_do_is_refused(place, module, said):
    changes = {"options": {"daemon_uid": "nobody"}, "users": ["alice"], "secrets_file": str(place.folder / "secrets")}
    refusal = place.refused(place.module(**module), **changes)
    assert "the daemon runs as nobody (daemon_uid), who" in refusal and said in refusal


def test_an_option_that_rsyncd_conf_sets_itself_is_refused(place):
    place.config.write_text("port = 9999\n")
    assert "rsyncd.conf says `port = 9999`" in place.refused(place.module(), options={"port": 8730})
    place.apply(place.module(), options={"port": 9999})
    assert place.config.read_text().count("9999") == 2


def test_defaults_do_not_reach_the_modules_of_others(place):
    theirs = f"[theirs]\npath = {place.data}\n"
    place.config.write_text(theirs)
    place.apply(place.module(), defaults={"log_file": str(place.folder / "log")}, options={"timeout": 5})
    assert place.config.read_text().startswith(theirs)
    assert "timeout = 5" in (place.include / "data.conf").read_text()
    assert "log file" in (place.include / "data.conf").read_text()


def test_modules_of_others_beside_ours_count_before_the_first_time_too(place):
    place.include.mkdir()
    (place.include / "theirs.conf").write_text(f"[theirs]\npath = {place.data}\n")
    place.apply(place.module())
    assert "reverse lookup" not in place.config.read_text()
    assert not place.asked(place.module()).changed


@pytest.mark.parametrize("modes", [("include", "whole"), ("whole", "include")])
def test_the_mode_can_be_changed(place, modes):
    for mode in modes:
        place.apply(place.module(), mode=mode)
        assert not place.asked(place.module(), mode=mode).changed


def test_a_default_can_be_taken_away(place):
    place.apply(place.module(), defaults={"log_file": str(place.folder / "log")}, options={"log_file": None})
    assert "log file" not in place.config.read_text() + (place.include / "data.conf").read_text()


def test_the_mode_of_a_file_that_is_there_is_kept(place):
    place.config.write_text("# mine\n")
    place.config.chmod(0o640)
    place.apply(place.module())
    assert place.config.stat().st_mode & 0o777 == 0o640


def test_what_rsync_does_not_understand_is_never_put_in_place(place):
    place.apply(place.module())
    (place.include / "zz.conf").write_text("[broken\n")
    said = place.refused(place.module(comment="new"))
    assert "rsync does not understand the new configuration" in said
    assert "does not understand the one that is in place either" in said


def test_what_only_others_wrote_wrong_is_a_warning(place):
    place.config.write_text("slp refresh = 300\n")
    installing = place.apply(place.module())
    assert any("slp refresh" in text for text in installing.warnings)


def test_a_program_that_is_no_rsync(place):
    assert "would not talk to clients" in place.refused(place.module(), rsync=shutil.which("true"))
    assert "could not be run" in place.refused(place.module(), rsync="/nonexistent/rsync")


def test_without_rsync_it_is_predicted(place):
    assert place.asked(place.module(), rsync="").changed


@pytest.mark.parametrize(
    "options",
    [
        {"proxy_protocol": True, "proxy_protocol_hosts": ["127.0.0.1"]},
        {"daemon_chroot": "/"},
        {"daemon_uid": "nobody"},
        {"daemon_gid": grp.getgrgid(NOBODY.pw_gid).gr_name},
        {"motd_file": "/etc/hostname"},
        {"pid_file": "/run/x.pid", "address": "127.0.0.1", "listen_backlog": 9, "socket_options": ["SO_KEEPALIVE"]},
    ],
)
def test_options_of_the_daemon_that_would_disturb_the_trial(place, options):
    place.apply(place.module(), options=options)


def test_every_option_of_a_module_is_known_to_rsync(place):
    patterns = place.folder / "patterns"
    patterns.write_text("*.tmp\n")
    every = {
        "comment": "x", "use_chroot": True, "name_converter": "/bin/cat", "numeric_ids": True, "munge_symlinks": False,
        "charset": "utf8", "max_connections": 3, "log_file": f"{place.folder}/log", "syslog_facility": "local1",
        "syslog_tag": "x", "max_verbosity": 2, "lock_file": f"{place.folder}/lock", "read_only": False,
        "write_only": True, "open_noatime": True, "list": True, "uid": 0, "gid": [0], "fake_super": True,
        "filter": "- /x", "exclude": ["*.a"], "include": ["*.b"], "exclude_from": str(patterns),
        "include_from": str(patterns), "incoming_chmod": "Dg+s", "outgoing_chmod": "go-w", "auth_users": ["a:rw"],
        "secrets_file": str(place.folder / "s"), "strict_modes": True, "hosts_allow": ["::1"], "hosts_deny": ["*"],
        "reverse_lookup": False, "forward_lookup": False, "ignore_errors": True, "ignore_nonreadable": True,
        "transfer_logging": True, "log_format": "%o %f", "timeout": 5, "refuse_options": ["delete"],
        "dont_compress": ["*"], "early_exec": "/bin/true", "pre_xfer_exec": "/bin/true",
        "post_xfer_exec": "/bin/true", "temp_dir": "/tmp",
    }  # fmt: skip
    secrets = place.folder / "s"
    secrets.write_text("a:b\n")
    secrets.chmod(0o600)
    place.apply(place.module(**every))
    assert len((place.include / "data.conf").read_text().splitlines()) == len(every) + 1 + 3


@needs_root
def test_a_missing_directory_is_made_only_when_asked_for(place):
    path = place.folder / "new/deep"
    assert f"the path {path} does not exist" in place.refused(place.module(path=str(path)))
    installing = place.apply(place.module(path=str(path), create_path=True, path_mode="0750"))
    assert installing.result().created == [str(path)]
    assert (path.stat().st_mode & 0o7777, path.stat().st_uid) == (0o750, NOBODY.pw_uid)
    assert not place.apply(place.module(path=str(path), create_path=True)).changed


@needs_root
def test_a_user_that_cannot_enter(place):
    place.data.chmod(0o700)
    assert "its user nobody cannot enter" in place.refused(place.module())
    place.apply(place.module(uid="root"))


@needs_root
@pytest.mark.parametrize(
    "changes, words",
    [
        ({"uid": "nosuchuser"}, "the user nosuchuser (uid) does not exist"),
        ({"gid": ["nosuchgroup"]}, "the group nosuchgroup (gid) does not exist"),
        ({"path": "/etc/passwd"}, "is no directory"),
        ({"exclude_from": "/nonexistent"}, "exclude_from names /nonexistent"),
        ({"lock_file": "/nonexistent/lock"}, "lock_file is in /nonexistent"),
        ({"auth_users": ["a"], "secrets_file": "/nonexistent"}, "cannot be used (No such file"),
    ],
)
def test_what_the_host_lacks(place, changes, words):
    assert words in place.refused(place.module(**changes))


@needs_root
@pytest.mark.parametrize(
    "mode, owner, strict, words",
    [
        (0o644, 0, True, "has mode 0644"),
        (0o602, 0, True, "has mode 0602"),
        (0o600, NOBODY.pw_uid, True, "belongs to nobody"),
        (0o640, 0, True, ""),
        (0o644, 0, False, ""),
    ],
)
def test_secrets_files_of_others(place, mode, owner, strict, words):
    secrets = place.folder / "secrets"
    secrets.write_text("a:b\n")
    secrets.chmod(mode)
    os.chown(secrets, owner, 0)
    module = place.module(auth_users=["a"], secrets_file=str(secrets), strict_modes=strict)
    if words:
        assert words in place.refused(module)
    else:
        place.apply(module)


def test_the_folder_of_the_secrets_must_be_there_unless_it_is_the_one_of_the_modules(place):
    module = place.module(read_only=True, auth_users=["alice"])
    elsewhere = place.folder / "missing"
    said = place.refused(module, users=["alice"], secrets_file=str(elsewhere / "secrets"))
    assert f"rsyncd_secrets_file is in {elsewhere}, which does not exist" in said
    place.asked(module, users=["alice"], secrets_file=str(place.include / "secrets"))
    elsewhere.mkdir()
    place.asked(module, users=["alice"], secrets_file=str(elsewhere / "secrets"))


@needs_root
def test_a_symlink_of_a_third_user(place):
    link = place.folder / "link"
    link.symlink_to(place.data)
    place.apply(place.module(path=str(link)))
    os.chown(link, 12345, 0, follow_symlinks=False)
    assert f"Write the real path, {place.data}" in place.refused(place.module(path=str(link)))


@needs_root
@pytest.mark.parametrize(
    "changes, words",
    [
        ({"read_only": False, "hosts_allow": ["::1"]}, "has no permission to write"),
        ({"read_only": False}, "everybody who reaches the port"),
    ],
)
def test_warnings(place, changes, words):
    assert any(words in text for text in place.asked(place.module(**changes)).warnings)


@needs_root
def test_a_closed_directory_above_counts_only_without_chroot(place):
    closed = place.folder / "closed"
    (closed / "in").mkdir(parents=True)
    closed.chmod(0o700)
    assert place.asked(place.module(path=str(closed / "in"))).warnings == []
    (text,) = place.asked(place.module(path=str(closed / "in"), use_chroot=False)).warnings
    assert f"depends on the daemon to pass {closed} (root:root 0700)" in text


@needs_root
def test_an_error_in_a_child_comes_back(place):
    ids = identity.find_ids("nobody", ())
    with pytest.raises(FileNotFoundError):
        identity.as_user(ids, lambda: os.stat("/nonexistent").st_size)
    assert identity.as_user(ids, lambda: [os.geteuid(), os.getcwd()]) == [NOBODY.pw_uid, "/"]
    assert identity.find_ids("12345", ()).groups == (12345,)


@pytest.mark.parametrize(
    "log, out, serves, complaints",
    [
        ("", b"@RSYNCD: EXIT\n", True, ()),
        ("2026/11/21 13:37:31 [674] connect from UNKNOWN (0.0.0.0)\n", b"@RSYNCD: EXIT\n", True, ()),
        (
            '2026/11/21 13:37:31 [9] Badly formed boolean in configuration file: "no # x".\n',
            b"@RSYNCD: EXIT\n",
            True,
            ('Badly formed boolean in configuration file: "no # x".',),
        ),
        (
            "2026/11/21 13:37:31 [9] Global parameter port found in module section!\n",
            b"@RSYNCD: EXIT\n",
            True,
            ("Global parameter port found in module section!",),
        ),
        ("params.c:Section() - Badly formed line", b"", False, ("params.c:Section() - Badly formed line",)),
    ],
)
def test_what_a_trial_says(log, out, serves, complaints):
    verdict = read_trial(log, out)
    assert (verdict.serves, verdict.complaints) == (serves, complaints)
