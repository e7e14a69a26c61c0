# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A real client on the other host lists, pushes, pulls, and is turned away."""

from __future__ import annotations

import ipaddress
import re

import pytest
import testinfra

testinfra_hosts = ["ansible://all"]

PEER = {"rsyncd-debian12": "rsyncd-debian13", "rsyncd-debian13": "rsyncd-debian12"}
MODULES = {"rsyncd-debian12": "/etc/rsyncd.d", "rsyncd-debian13": "/etc/rsync-modules"}
SECRETS = {"rsyncd-debian12": "/etc/rsyncd.d/longhaul.secrets", "rsyncd-debian13": "/etc/rsync-passwords"}
PASSWORDS = {"alice": "alice-may-write", "bob": "bob-may-read", "carol": "carol-may-read"}
GREEN = "gr\N{LATIN SMALL LETTER U WITH DIAERESIS}n"


@pytest.fixture
def name(host) -> str:
    return host.backend.get_hostname()


@pytest.fixture
def client(name):
    """Return a function that runs rsync on the other host, as some user, against this one."""
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
    assert "inbox" not in listed and "earlier" not in listed
    assert " ".join(listed).startswith("Debian GNU/Linux")


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


def test_the_module_of_another_service_is_as_it_was(client, host, name):
    assert host.file(f"{MODULES[name]}/other.conf").content_string.startswith("# of another service\n[other]\n")
    assert client("/etc/hostname URL/other/").rc == 0
    assert host.file("/srv/other/hostname").exists


def test_the_configuration_that_was_there_is_kept_or_makes_way_and_a_copy_stays(client, host, name):
    text = host.file("/etc/rsyncd.conf").content_string
    copies = host.check_output("ls -tr /etc/rsyncd.conf.*~").split()
    if name == "rsyncd-debian13":
        assert "# longhaul.fleet.rsyncd: the whole file" in text and "earlier" not in text
        assert host.file(copies[0]).content_string == "[earlier]\npath = /srv/other\n"
        return
    before = host.file("/root/rsyncd.conf.before").content_string
    assert before in text
    assert host.file(copies[0]).content_string == before
    assert host.file("/etc/rsyncd.conf").mode == 0o640
    assert client("URL/ftp/").rc == 0


def test_everything_is_in_the_places_that_were_named(host, name):
    for place in set(MODULES.values()) | set(SECRETS.values()):
        assert host.file(place).exists == (place in (MODULES[name], SECRETS[name])), place


def test_secrets_are_for_root_alone(host, name):
    secrets = host.file(SECRETS[name])
    assert (secrets.user, secrets.mode) == ("root", 0o600)
    assert "alice:alice-may-write" in secrets.content_string
    for place in ("/etc/rsyncd.conf", f"{MODULES[name]}/data.conf", "/var/log/rsyncd.log"):
        assert "alice-may-write" not in host.file(place).content_string


def test_the_firewall_lets_the_named_network_in_and_nobody_else(host, name):
    """Every connection of these tests comes through the rule, since the one behind it drops them."""
    if name == "rsyncd-debian13":
        assert not host.exists("nft")
        return
    first, second = re.findall(
        r"^\s+(.*tcp dport .*)$", host.check_output("nft list chain inet guard input"), re.MULTILINE
    )
    address, prefix = host.check_output("ip -4 -brief address show eth0").split()[2].split("/")
    network = ipaddress.ip_network(f"{address}/{prefix}", strict=False)
    assert first.startswith(f"ip saddr {network} tcp dport 873 accept"), first
    assert second.endswith("drop")
    assert f"ip saddr {{ {network} }} tcp dport 873" in host.file("/etc/longhaul-rsyncd.nft").content_string
    assert 'include "/etc/longhaul-rsyncd.nft"' in host.file("/etc/nftables.conf").content_string


def test_the_inbox_takes_files_and_shows_none(client, host):
    host.check_output("rm -f /var/log/rsyncd-exec")
    client.host.check_output("mkdir -p /root/gift; echo gift > /root/gift/file; chown -R 4321:8765 /root/gift")
    assert client("-a --numeric-ids /root/gift URL/inbox/").rc == 0
    found = host.check_output("stat -c '%n %a %u:%g' /srv/inbox/gift /srv/inbox/gift/file").splitlines()
    assert found == ["/srv/inbox/gift 750 0:0", "/srv/inbox/gift/file 640 0:0"]
    assert " 4321:8765" in host.check_output("getfattr --only-values -n user.rsync.%stat /srv/inbox/gift/file")
    refused = client("URL/inbox/gift/file /root/stolen")
    assert refused.rc != 0 and "write only" in refused.stderr
    assert "inbox took 5 bytes" in host.file("/var/log/rsyncd-inbox.log").content_string
    said = host.file("/var/log/rsyncd-exec").content_string.splitlines()
    assert said[:3] == ["early", "before inbox", "after 0"]
    host.check_output("rmdir /srv/inbox/.temporary")
    assert client("-a --ignore-times /root/gift URL/inbox/").rc != 0
    host.check_output("mkdir /srv/inbox/.temporary")


def test_what_is_shown_is_what_may_be_seen(client, host):
    client.host.check_output("rm -rf /root/seen; mkdir /root/seen")
    assert client("-a URL/shown/ /root/seen/").rc == 0
    seen = client.host.run("ls /root/seen").stdout_bytes.decode("utf-8").split()
    assert seen == ["again.secret", GREEN, "link", "open.secret", "plain"]
    assert client.host.check_output("stat -c %a /root/seen/plain") == "604"
    assert client.host.check_output("readlink /root/seen/link") == "/etc/hostname"
    assert "rsync on shown/" in host.check_output("journalctl --identifier shown --output cat --no-pager")


def test_a_client_with_another_charset_gets_names_in_its_own(client):
    client.host.check_output("rm -rf /root/seen; mkdir /root/seen")
    assert client("-a --iconv=ISO-8859-1 URL/shown/ /root/seen/").rc == 0
    assert GREEN.encode("iso-8859-1") in client.host.run("ls /root/seen").stdout_bytes.split()


def test_owners_have_the_names_that_a_program_gives_them(client):
    client.host.check_output("rm -rf /root/named")
    fetched = client("-a URL/named/ /root/named/", "carol")
    assert fetched.rc == 0, fetched.stderr
    assert client.host.check_output("stat -c %U:%G /root/named/file") == "mail:mail"


def test_the_daemon_tells_its_process(host):
    said = host.file("/run/rsyncd-of-all.pid").content_string.strip()
    assert said == host.check_output("systemctl show --property=MainPID --value rsync")


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
    rule = host.file("/etc/logrotate.d/longhaul-rsyncd").content_string
    assert "    daily\n    rotate 3\n" in rule
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
