# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files that ssh_client renders, read by ssh, sshd and sh themselves; also with what differs on other systems."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import jinja2
import pytest
import yaml
from ansible.plugins.filter.core import FilterModule

ROLE = Path(__file__).resolve().parents[3] / "roles/ssh_client"
VARIABLES = yaml.safe_load((ROLE / "vars/main.yml").read_text())
SYSTEMS = sorted(VARIABLES["__ssh_client_systems"])
CIPHERS = ["aes128-ctr", "aes256-ctr"]
PLAN = {
    "blocks": [
        {
            "patterns": ["new", "10.20.0.*"],
            "algorithms": {"Ciphers": CIPHERS},
            "options": {"Port": "2222", "User": "ops"},
        },
        {"patterns": ["old"], "algorithms": {"Ciphers": [*CIPHERS, "aes128-cbc"]}, "options": {}},
    ]
}


def variables(system: str, **changes) -> dict:
    found = {**yaml.safe_load((ROLE / "defaults/main.yml").read_text()), **VARIABLES}
    systems = VARIABLES["__ssh_client_systems"]
    of_system = {f"__ssh_client_{name}": value for name, value in {**systems["default"], **systems[system]}.items()}
    return {**found, **of_system, "ansible_managed": "Ansible managed", "__ssh_client_local": {"plan": PLAN}, **changes}


def render(template: str, values: dict) -> str:
    environment = jinja2.Environment(trim_blocks=True, keep_trailing_newline=True, undefined=jinja2.StrictUndefined)
    environment.filters.update(FilterModule().filters())
    return environment.from_string((ROLE / "templates" / template).read_text()).render(values)


def ssh_g(path: Path, peer: str) -> dict:
    argv = ["ssh", "-F", str(path), "-G", peer]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return dict(line.split(" ", 1) for line in ended.stdout.splitlines() if " " in line)


@pytest.fixture
def written(tmp_path):
    def write(template: str, values: dict) -> Path:
        path = tmp_path / "file"
        path.write_text(render(template, values))
        return path

    return write


@pytest.mark.parametrize("system", SYSTEMS)
def test_ssh_reads_the_drop_in_of_every_system(written, system):
    path = written("ssh_config.j2", variables(system))
    assert path.read_text().startswith("#\n# Ansible managed\n#\n")
    found = ssh_g(path, "new")
    assert found["ciphers"] == ",".join(CIPHERS)
    assert (found["port"], found["user"], found["compression"]) == ("2222", "ops", "no")
    assert ssh_g(path, "10.20.0.9")["ciphers"] == ",".join(CIPHERS)
    assert ssh_g(path, "old")["ciphers"].endswith(",aes128-cbc")


def test_another_host_sees_nothing_of_it(written, tmp_path):
    path = written("ssh_config.j2", variables("Debian"))
    empty = tmp_path / "empty"
    empty.write_text("")
    assert ssh_g(path, "stranger") == ssh_g(empty, "stranger")


@pytest.mark.parametrize(
    "changes, keyword, expected",
    [
        ({}, "requesttty", ("no", "false")),
        ({"ssh_client_terminal": True}, "requesttty", ("auto",)),
        ({"ssh_client_compression": True}, "compression", ("yes",)),
        ({"ssh_client_forward_x11": True}, "forwardx11", ("yes",)),
        ({"ssh_client_ipqos": "af21 cs1"}, "ipqos", ("af21 cs1",)),
        ({"ssh_client_alive_interval": 0}, "serveraliveinterval", ("0",)),
    ],
)
def test_a_variable_decides_about_a_line(written, changes, keyword, expected):
    assert ssh_g(written("ssh_config.j2", variables("Debian", **changes)), "old")[keyword] in expected


def test_an_empty_ipqos_leaves_it_to_ssh():
    assert "IPQoS" not in render("ssh_config.j2", variables("Debian", ssh_client_ipqos=""))


@pytest.mark.parametrize("value", ["ssh -T -x", "ssh -o 'A=b c'", 'ssh -o "$HOME"', "ssh `id`; $(id)"])
def test_rsync_rsh_arrives_as_it_was_given_in_interactive_shells_alone(written, value):
    path = written("rsync_rsh.sh.j2", variables("Debian", ssh_client_rsync_rsh=value))
    subprocess.run(["sh", "-n", str(path)], check=True)
    script = f'. {path}; printf "%s" "${{RSYNC_RSH-none}}"'
    for option, expected in (("-c", "none"), ("-ic", value)):
        argv = ["bash", "--norc", "--noprofile", option, script]
        ended = subprocess.run(argv, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL, env={})
        assert ended.stdout == expected


def server(known: str, addresses: list, **changes) -> dict:
    more = {"__ssh_client_server_known": {"stdout": known}, "__ssh_client_local": {"addresses": addresses}}
    return variables("Debian", **more, **changes)


PENALTIES = "persourcepenaltyexemptlist none"


@pytest.mark.parametrize(
    "values, lines",
    [
        (server("", []), []),
        (
            server("", ["10.0.0.1", "fd00::1"]),
            ["Match Address 10.0.0.1,fd00::1", "X11Forwarding no", "IPQoS none", "ClientAliveInterval 15"],
        ),
        (
            server(PENALTIES, ["10.0.0.1"], ssh_client_ipqos=""),
            [
                "PerSourcePenaltyExemptList 10.0.0.1",
                "Match Address 10.0.0.1",
                "X11Forwarding no",
                "ClientAliveInterval 15",
            ],
        ),
        (
            server(PENALTIES, [], ssh_client_server_max_startups="30:30:200"),
            ["MaxStartups 30:30:200"],
        ),
        (
            server(PENALTIES, ["10.0.0.1"], ssh_client_server_exempt_peers=False, ssh_client_forward_x11=True),
            ["Match Address 10.0.0.1", "X11Forwarding yes", "IPQoS none", "ClientAliveInterval 15"],
        ),
    ],
)
def test_the_drop_in_of_the_server(values, lines):
    text = render("sshd_config.j2", values)
    assert [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")] == lines


def test_sshd_reads_it(written, tmp_path):
    sshd = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/sbin")
    if not sshd:
        pytest.skip("cannot run here: there is no sshd")
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    path = written("sshd_config.j2", server("", ["10.0.0.1"], ssh_client_server_max_startups="30:30:200"))
    argv = [sshd, "-T", "-f", str(path), "-h", str(key), "-C", "addr=10.0.0.1,user=x,host=h"]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False)
    if "privilege separation" in ended.stderr:
        pytest.skip("cannot run here: sshd has no folder for its privilege separation, and only root can make one")
    assert ended.returncode == 0, ended.stderr
    assert "\nclientaliveinterval 15\n" in ended.stdout
    assert "\nmaxstartups 30:30:200\n" in ended.stdout
