# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How ssh is called, and what its words mean."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Context
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._job.confine_job import confine_job
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.ssh import client_check, sshd, sshd_config
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.ssh import client_command as ssh
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.ssh import failure as ssh_failure
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import settings
from hypothesis import given
from hypothesis import strategies as st

PEER = {"alias": "longhaul-0123456789abcdef", "user": "backup", "port": 2222}
needs_ssh = pytest.mark.skipif(shutil.which("ssh") is None, reason="there is no ssh here")
needs_rsync = pytest.mark.skipif(shutil.which("rsync") is None, reason="there is no rsync here")


def effective(argv: list[str]) -> dict:
    """Ask ssh itself what it makes of an argv."""
    done = subprocess.run([*argv, "-G", "192.0.2.1"], capture_output=True, text=True, check=True)
    return sshd_config.parse_sshd_config(done.stdout)


@needs_ssh
def test_ssh_takes_our_options_before_those_of_a_configuration(tmp_path):
    config = tmp_path / "config"
    config.write_text(
        "Host *\n ProxyJump bastion\n User somebody\n Port 1\n Compression yes\n ControlMaster auto\n"
        " ControlPath /tmp/%C\n ForwardAgent yes\n ForwardX11 yes\n StrictHostKeyChecking no\n LogLevel QUIET\n"
        " UserKnownHostsFile /tmp/known\n AddressFamily inet6\n IPQoS throughput\n PubkeyAuthentication no\n"
        " LocalForward 1234 localhost:22\n RequestTTY force\n"
    )
    found = effective(ssh.ssh_command(PEER, "/tmp/a b/no%h", "/tmp/a b/known%d", timeout=100, config=str(config)))
    expected = {
        "user": "backup",
        "port": [2222],
        "compression": "no",
        "controlmaster": "false",
        "forwardagent": "no",
        "forwardx11": "no",
        "stricthostkeychecking": "true",
        "globalknownhostsfile": "/dev/null",
        "userknownhostsfile": "/tmp/a b/known%d",
        "hostkeyalias": "longhaul-0123456789abcdef",
        "identityfile": "/tmp/a b/no%%h",
        "identitiesonly": "yes",
        "identityagent": "none",
        "addressfamily": "any",
        "ipqos": "none none",
        "pubkeyauthentication": "true",
        "preferredauthentications": "publickey",
        "batchmode": "yes",
        "requesttty": "false",
        "loglevel": "INFO",
        "serveraliveinterval": "15",
        "serveralivecountmax": "7",
        "clearallforwardings": "yes",
    }
    assert {key: found.get(key) for key in expected} == expected
    assert "proxyjump" not in found
    assert "controlpath" not in found


@needs_ssh
def test_the_systems_crypto_policy_stays_in_force(tmp_path):
    config = tmp_path / "config"
    config.write_text("Match final all\n Ciphers aes256-ctr\n MACs hmac-sha2-512\n")
    found = effective(ssh.ssh_command(PEER, "/i", "/k", config=str(config)))
    assert (found["ciphers"], found["macs"]) == (["aes256-ctr"], ["hmac-sha2-512"])
    assert effective(ssh.ssh_command(PEER, "/i", "/k", "aes128-ctr", config="none"))["ciphers"] == ["aes128-ctr"]


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("Host *\n  SendEnv LANG\n#   ProxyCommand ssh -W %h:%p gate\n", False),
        ("Match final all\n  Include {more}\n", False),
        ("ProxyCommand /usr/bin/nc %h %p\nPermitLocalCommand yes\nLocalCommand id\n", False),  # ours are other ones
        ("KnownHostsCommand none\n", False),
        ("# Match exec true\n", False),
        ('Match host a !exec "ping -c1 gate"\n  ProxyJump gate\n', True),
        ("\tmatch EXEC=true\n", True),
        ("knownhostscommand=/usr/bin/sss_ssh_knownhosts %H\n", True),
        ("Host *\n  Include {runs}\n", True),
        ('Include "unbalanced\n', True),
    ],
)
def test_a_configuration_that_runs_programs_is_known(tmp_path, text, runs):
    included = {"more": "Ciphers aes128-ctr\n", "runs": "Match exec true\n"}
    for name, content in included.items():
        (tmp_path / f"{name}.conf").write_text(content)
    config = tmp_path / "config"
    config.write_text(text.format(**{name: tmp_path / f"{name}.c*" for name in included}))
    assert ssh.runs_programs(str(config)) is runs


def test_what_cannot_be_read_may_run_programs(tmp_path):
    assert ssh.runs_programs(str(tmp_path / "none there"))
    assert not ssh.runs_programs("none")
    (tmp_path / "circle").write_text(f"Include {tmp_path}/circle\n")
    assert not ssh.runs_programs(str(tmp_path / "circle"))


@needs_ssh
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="cannot run here: needs Linux")
def test_a_job_whose_ssh_runs_programs_gives_up_nothing(tmp_path, monkeypatch):
    """A helper may be setuid, or need the network's rights: it must work as it does for the host's own ssh."""
    config = tmp_path / "config"
    monkeypatch.setattr(ssh, "SYSTEM_CONFIG", str(config))
    context = Context("dest", "drive", bytes(tmp_path), settings("sftp"), str(tmp_path))
    config.write_text(f'Match exec "touch {tmp_path}/helped"\n Port 99\n')
    assert confine_job(context) == []
    assert effective([*ssh.ssh_command(PEER, "/i", "/k")])["port"] == [2222] and (tmp_path / "helped").exists()
    with open("/proc/self/status") as lines:
        assert "NoNewPrivs:\t0\n" in lines.readlines()


def test_scp_and_sftp_get_options_that_they_have_too():
    options = ssh.common_options(PEER, "/i", "/k", "aes128-ctr", config="none")
    assert set(options[::2]) == {"-F", "-o", "-c"}
    assert "Port=2222" in options
    assert "User=backup" in options


@pytest.mark.parametrize(
    ("address", "bare", "bracketed"),
    [
        ("192.0.2.1", "192.0.2.1", "192.0.2.1"),
        ("::1", "::1", "[::1]"),
        ("[2001:db8::1]", "2001:db8::1", "[2001:db8::1]"),
        ("fe80::1%eth0", "fe80::1%eth0", "[fe80::1%eth0]"),
        ("host.example.net", "host.example.net", "host.example.net"),
    ],
)
def test_addresses_are_written_as_each_program_wants_them(address, bare, bracketed):
    assert (ssh.ssh_host(address), ssh.bracketed_host(address)) == (bare, bracketed)


@pytest.mark.parametrize("address", ["", "-oProxyCommand=id", "a b", "user@host", "a\nb", "a/b", "[]"])
def test_what_could_be_taken_for_something_else_is_no_address(address):
    with pytest.raises(ValueError, match="no address"):
        ssh.ssh_host(address)


@needs_rsync
@pytest.mark.parametrize("word", ["/a b/c", "it's", 'a"b', "'", "''", "\"a\" 'b'", "a''b c", "back\\slash", "-x"])
def test_rsync_splits_its_shell_into_the_words_that_were_joined(tmp_path, word):
    shell = tmp_path / "shell.py"
    shell.write_text(
        f"#!{sys.executable}\nimport sys\nopen({str(tmp_path / 'argv')!r}, 'w').write(repr(sys.argv[1:]))\n"
    )
    shell.chmod(0o755)
    rsync = ["rsync", "-e", ssh.rsync_shell([str(shell), word, "last"]), "host:x", str(tmp_path / "to")]
    subprocess.run(rsync, capture_output=True, check=False)
    assert eval((tmp_path / "argv").read_text())[:3] == [word, "last", "host"]


def test_known_hosts_lines_name_the_alias_and_drop_comments():
    lines = ssh.known_hosts_lines("0123456789abcdef", ["ssh-ed25519 AAAA root@host", "ssh-rsa BBBB"])
    assert lines == "longhaul-0123456789abcdef ssh-ed25519 AAAA\nlonghaul-0123456789abcdef ssh-rsa BBBB\n"


@needs_ssh
@pytest.mark.parametrize("kind", ["ed25519", "rsa", "ecdsa"])
def test_the_public_key_is_read_from_the_private_one(tmp_path, kind):
    path = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", str(path)], check=True)
    assert sshd.public_key_of(path.read_text()) == " ".join((tmp_path / "key.pub").read_text().split()[:2])


@given(st.text())
def test_what_is_no_private_key_is_said_to_be_none(text):
    with pytest.raises(ValueError, match="no private key"):
        sshd.public_key_of(f"-----BEGIN OPENSSH PRIVATE KEY-----\n{text}\n-----END OPENSSH PRIVATE KEY-----\n")


def test_what_sshd_says_about_itself_becomes_plain_data():
    found = sshd_config.parse_sshd_config(
        "port 22\nport 2222\npermitrootlogin without-password\npubkeyauthentication yes\n"
        "authorizedkeysfile .ssh/authorized_keys .ssh/authorized_keys2\nlistenaddress [::]:22\n"
        "listenaddress 0.0.0.0:22\nciphers aes128-ctr,aes256-ctr\n"
        "allowusers root\nallowusers backup@10.*\nhostkeyalgorithms ssh-ed25519,rsa-sha2-512\nmaxstartups 10:30:100\n\n"
    )
    assert found == {
        "port": [22, 2222],
        "permitrootlogin": "without-password",
        "pubkeyauthentication": "yes",
        "authorizedkeysfile": [".ssh/authorized_keys", ".ssh/authorized_keys2"],
        "listenaddress": ["[::]:22", "0.0.0.0:22"],
        "ciphers": ["aes128-ctr", "aes256-ctr"],
        "allowusers": ["root", "backup@10.*"],
        "hostkeyalgorithms": ["ssh-ed25519", "rsa-sha2-512"],
        "maxstartups": "10:30:100",
    }


@pytest.mark.parametrize(
    ("patterns", "path"),
    [
        ([], "/home/me/.ssh/authorized_keys"),
        ([".ssh/authorized_keys", ".ssh/authorized_keys2"], "/home/me/.ssh/authorized_keys"),
        (["%h/.ssh/keys"], "/home/me/.ssh/keys"),
        (["/etc/ssh/keys/%u"], "/etc/ssh/keys/me"),
        (["/etc/ssh/%%/%U"], "/etc/ssh/%/1000"),
        (["none"], None),
    ],
)
def test_the_file_of_authorized_keys_is_the_one_that_sshd_reads(patterns, path):
    assert sshd_config.authorized_keys_path(patterns, "me", "/home/me", 1000) == path


# Taken from OpenSSH 9.2 (most of them by provoking them), and from the sources of 7.6 and 9.8 where they differ
MESSAGES = [
    ("@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\nHost key verification failed.\n", "not the one"),
    ("No ED25519 host key is known for longhaul-1 and you have requested strict checking.\n", "host key of a type"),
    ("root@127.0.0.21: Permission denied (publickey).\n", "it accepts: publickey"),
    ("root@127.0.0.21: Permission denied (publickey,password).\n", "it accepts: publickey,password"),
    ('Load key "id": error in libcrypto\nroot@127.0.0.21: Permission denied (publickey).\n', "error in libcrypto"),
    (
        "Warning: Identity file x not accessible: No such file or directory.\nroot@h: Permission denied (publickey).\n",
        r"not readable on this end \(No such file or directory\)",
    ),
    (
        "no such identity: /proc/1/fd/9: No such file or directory\nroot@h: Permission denied (publickey).\n",
        "not readable",
    ),
    ("ssh: connect to host 127.0.0.22 port 45161: Connection refused\n", "127.0.0.22 nothing listens on port 45161"),
    ("ssh: connect to host ::1 port 22: Connection timed out\r\n", "::1 did not answer on port 22"),
    ("ssh: connect to host 10.8.0.1 port 22: No route to host\n", r"no way to 10.8.0.1 \(No route to host\)"),
    ("ssh: connect to host 10.1.2.3 port 22: Network is unreachable\n", "Network is unreachable"),
    ("ssh: Could not resolve hostname no-such.invalid: Name or service not known\n", "does not know the name no-such"),
    ("Unknown cipher type 'arcfour'\n", "does not have the cipher arcfour"),
    ("command-line line 0: Bad SSH2 cipher spec 'arcfour'.\n", "arcfour"),
    ("c1 line 1: Bad SSH2 cipher spec 'arcfour'.\nc1: terminating, 1 bad configuration options\n", "arcfour.*c1"),
    ("c2: line 1: Bad configuration option: blah\nc2: terminating, 1 bad configuration options\n", "c2: Bad .*blah"),
    (
        "Unable to negotiate with 127.0.0.21 port 45161: no matching cipher found. Their offer: arcfour,3des-cbc\n",
        "share no cipher. The peer offers arcfour,3des-cbc",
    ),
    (
        "Unable to negotiate with 127.0.0.21 port 1: no matching host key type found. Their offer: ssh-ed25519\n",
        "share no host key type. The peer offers ssh-ed25519",
    ),
    (
        "kex_exchange_identification: read: Connection reset by peer\nConnection reset by 127.0.0.22 port 7723\n",
        "MaxStartups",
    ),
    ("ssh_exchange_identification: Connection closed by remote host\n", "PerSourcePenalties"),
    ("Connection timed out during banner exchange\nConnection to 127.0.0.22 port 7722 timed out\n", "not speak ssh"),
    ("Can't open user config file /nope: No such file or directory\n", r"cannot read /nope"),
    ("Connection to 127.0.0.21 closed by remote host.\n", "connection was lost"),
    ("Timeout, server 192.0.2.1 not responding.\n", "192.0.2.1 was lost: no answer"),
    ("client_loop: send disconnect: Broken pipe\n", "connection was lost"),
    ("Received disconnect from h port 22:2: Too many authentication failures\n", "MaxAuthTries"),
]


@pytest.mark.parametrize(("stderr", "meaning"), MESSAGES)
def test_ssh_s_words_are_explained(stderr, meaning):
    assert re.search(meaning, ssh_failure.explain("Welcome. Authorised users only.\n" + stderr, 255) or "")


@pytest.mark.parametrize(("stderr", "code"), [("", 255), ("rsync: link_stat failed\n", 23), (MESSAGES[0][0], 0)])
def test_other_words_are_left_to_others(stderr, code):
    assert ssh_failure.explain(stderr, code) is None


ANSWER = b"longhaul 0123456789abcdef ready\n"


@pytest.mark.parametrize(
    ("code", "stdout", "stderr", "said"),
    [
        (0, b"Welcome to host\n" + ANSWER, "", "prints text .*'Welcome to host'"),
        (0, ANSWER + b"bye\n", "", "'bye'"),
        (255, b"", "root@h: Permission denied (publickey).\n", "refused the one-time key"),
        (1, b"This account is currently not available.\n", "", "This account is currently not available"),
        (0, b"longhaul fedcba9876543210 ready\n", "", "did not answer"),
        (0, b"", "", "It said: nothing"),
    ],
)
def test_a_connection_is_judged_by_its_hello(code, stdout, stderr, said):
    with pytest.raises(TransferFailed, match=said):
        client_check.check_hello(code, stdout, stderr, "h", "0123456789abcdef")


def test_a_clean_hello_is_enough_whatever_stands_in_a_banner():
    client_check.check_hello(0, ANSWER, "Authorised users only\n", "h", "0123456789abcdef")


@pytest.mark.parametrize(
    "text",
    [
        "Ciphers aes256-gcm@openssh.com,aes256-ctr\nMACs hmac-sha2-256\nGSSAPIKeyExchange no\n",
        "CRYPTO_POLICY='-oCiphers=aes256-gcm@openssh.com,aes256-ctr -oMACs=hmac-sha2-256 -oGSSAPIKexAlgorithms=x'\n",
    ],
)
def test_a_crypto_policy_is_read_in_both_of_its_forms(text):
    assert sshd.policy_lines(text) == ["Ciphers aes256-gcm@openssh.com,aes256-ctr", "MACs hmac-sha2-256"]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("OpenSSH_9.2p1 Debian-2+deb12u10, OpenSSL 3.0.19", (9, 2)),
        ("unknown option -- V\nOpenSSH_7.6p1 Ubuntu-4ubuntu0.7, OpenSSL 1.0.2n\nusage: sshd", (7, 6)),
        ("OpenSSH_10.0p2 Debian-7", (10, 0)),
        ("dropbear", (0, 0)),
    ],
)
def test_versions_are_read_from_what_is_said(text, version):
    assert sshd.parse_version(text) == version
