# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A real client on the other host lists, pushes, pulls, and is turned away."""

from __future__ import annotations

import pytest
import testinfra

testinfra_hosts = ["ansible://all"]

PEER = {"rsyncd-debian12": "rsyncd-debian13", "rsyncd-debian13": "rsyncd-debian12"}
PASSWORDS = {"alice": "alice-may-write", "bob": "bob-may-read"}


@pytest.fixture
def name(host) -> str:
    return host.backend.get_hostname()


@pytest.fixture
def client(name):
    """Give a function that runs rsync on the other host, as somebody, against this one."""
    other = testinfra.get_host(f"docker://{PEER[name]}")

    def run(arguments: str, user: str = "", password: str | None = None):
        secret = PASSWORDS.get(user, "") if password is None else password
        who = f"{user}@" if user else ""
        return other.run(f"RSYNC_PASSWORD={secret} rsync {arguments.replace('URL', f'rsync://{who}{name}')}")

    run.host = other
    return run


def test_modules_are_listed_ours_beside_those_of_others(client, name):
    listed = client("URL/").stdout.split()
    assert {"data", "public", "local", "other"} <= set(listed)
    assert ("ftp" in listed) == (name == "rsyncd-debian12")
    assert "everybody" in listed


def test_a_tree_is_pushed_and_pulled_as_it_is(client, host):
    client.host.check_output(
        "rm -rf /root/tree /root/back; mkdir -p /root/tree/sub; echo hello > /root/tree/sub/file; "
        "ln -s /etc/hostname /root/tree/link; mknod /root/tree/null c 1 3; chown 4321:8765 /root/tree/sub/file; "
        "setfattr -n user.colour -v red /root/tree/sub/file; setfacl -m u:1234:r /root/tree/sub/file"
    )
    pushed = client("-aHAX --numeric-ids --delete /root/tree/ URL/data/pushed/", "alice")
    assert pushed.rc == 0, pushed.stderr
    found = host.check_output("cd /srv/data/pushed && stat -c '%n %F %u:%g %t,%T' sub/file link null && readlink link")
    assert "sub/file regular file 4321:8765" in found
    assert "null character special file 0:0 1,3" in found
    assert found.endswith("/etc/hostname")
    assert client("-aHAX --numeric-ids URL/data/pushed/ /root/back/", "bob").rc == 0
    differences = client.host.run("rsync -naHAXc --numeric-ids --itemize-changes --delete /root/tree/ /root/back/")
    assert differences.stdout == ""


@pytest.mark.parametrize(
    "arguments, user, password, words",
    [
        ("/etc/hostname URL/public/", "", "", "module is read only"),
        ("/etc/hostname URL/data/", "bob", None, "module is read only"),
        ("/etc/hostname URL/data/", "alice", "wrong", "auth failed on module data"),
        ("/etc/hostname URL/data/", "mallory", "x", "auth failed on module data"),
        ("URL/nothing/", "", "", "Unknown module 'nothing'"),
    ],
)
def test_what_is_refused(client, arguments, user, password, words):
    ran = client(arguments, user, password)
    assert ran.rc != 0
    assert words in ran.stderr


def test_the_unit_lets_the_daemon_write_below_usr_and_only_there(client, host):
    assert client("/etc/hostname URL/local/sent").rc == 0
    assert host.file("/usr/local/share/drop/sent").user == "nobody"
    drop_in = host.file("/etc/systemd/system/rsync.service.d/zz-longhaul-fleet.conf").content_string
    settings = [line for line in drop_in.splitlines() if "=" in line]
    assert settings == ["PrivateDevices=no", "ReadWritePaths=-/usr/local/share/drop"]
    shown = host.check_output("systemctl show rsync --property=ProtectSystem,NoNewPrivileges")
    assert "ProtectSystem=full" in shown and "NoNewPrivileges=yes" in shown


def test_the_unit_of_the_package_is_as_it_was(host):
    assert host.run("dpkg --verify rsync").stdout == ""
    assert not host.file("/etc/systemd/system/rsync.service").exists


def test_the_module_of_another_service_is_as_it_was(client, host):
    assert host.file("/etc/rsyncd.d/other.conf").content_string.startswith("# of another service\n[other]\n")
    assert client("/etc/hostname URL/other/").rc == 0
    assert host.file("/srv/other/hostname").exists


def test_the_configuration_of_the_distribution_is_kept(client, host, name):
    if name == "rsyncd-debian13":
        assert not host.file("/root/rsyncd.conf.before").exists
        return
    before = host.file("/root/rsyncd.conf.before").content_string
    assert before in host.file("/etc/rsyncd.conf").content_string
    assert host.file("/etc/rsyncd.conf").mode == 0o640
    assert client("URL/ftp/").rc == 0


def test_secrets_are_for_root_alone(host):
    secrets = host.file("/etc/rsyncd.d/longhaul.secrets")
    assert (secrets.user, secrets.mode) == ("root", 0o600)
    for place in ("/etc/rsyncd.conf", "/etc/rsyncd.d/data.conf", "/var/log/rsyncd.log"):
        assert "alice-may-write" not in host.file(place).content_string


def test_transfers_are_logged(client, host):
    client("/etc/hostname URL/data/logged", "alice")
    client("/etc/hostname URL/local/logged")
    assert "logged" in host.file("/var/log/rsyncd.log").content_string
    assert "alice" in host.file("/var/log/rsyncd.log").content_string
    assert "logged" in host.file("/var/log/rsyncd-local.log").content_string


def test_logs_are_rotated_and_written_on(client, host):
    client("/etc/hostname URL/data/before-rotation", "alice")
    for _time in range(2):
        host.check_output("logrotate --force /etc/logrotate.d/longhaul-rsyncd")
        client("/etc/hostname URL/data/after-rotation", "alice")
        client("/etc/hostname URL/local/after-rotation")
    assert host.file("/var/log/rsyncd.log.1").exists
    assert host.file("/var/log/rsyncd.log.2.gz").exists
    assert "after-rotation" in host.file("/var/log/rsyncd.log").content_string
    assert "after-rotation" in host.file("/var/log/rsyncd-local.log").content_string


def test_the_daemon_runs_and_will_after_a_boot(host):
    assert host.service("rsync").is_running
    assert host.service("rsync").is_enabled
    assert host.socket("tcp://0.0.0.0:873").is_listening


def test_nothing_of_a_diagnosis_is_left(host):
    assert host.check_output("find /srv /usr/local/share /run -name '*longhaul*' -not -path '/run/systemd/*'") == ""


def test_rsync_finds_nothing_wrong_with_the_configuration(host):
    host.check_output(
        r"printf '@RSYNCD: 31.0 sha512\n#list\n' | "
        "rsync --server --daemon --log-file=/tmp/trial.log --config=/etc/rsyncd.conf . > /tmp/trial; "
        "grep -q '@RSYNCD: EXIT' /tmp/trial && ! grep -E 'adly formed|nknown|Global parameter|invalid' /tmp/trial.log"
    )
