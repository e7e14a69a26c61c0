# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of the role rsyncd for systems that no container has: FreeBSD's, and units for a socket."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import jinja2
import pytest
import yaml
from ansible.plugins.filter.core import comment

ROLE = Path(__file__).resolve().parents[3] / "roles/rsyncd"


def render(template: str, **variables) -> str:
    environment = jinja2.Environment(  # as Ansible sets it
        loader=jinja2.FileSystemLoader(ROLE / "templates"), trim_blocks=True
    )
    environment.filters["comment"] = comment
    return environment.get_template(template).render(ansible_managed="Ansible managed", **variables)


def values(system: str) -> dict:
    systems = yaml.safe_load((ROLE / "vars/main.yml").read_text())["__rsyncd_systems"]
    return {**systems["default"], **systems[system]}


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def shell_values(text: str, tmp_path: Path) -> dict[str, str]:
    """Return the variables that a shell has after it has read the file, as rc.subr(8) reads rc.conf.d."""
    file = tmp_path / "rsyncd"
    file.write_text(text)
    subprocess.run(["sh", "-n", str(file)], check=True)
    argv = ["sh", "-euc", f'. "{file}"; echo "$rsyncd_enable|$rsyncd_configfile"']
    enable, config = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip().split("|")
    return {"enable": enable, "configfile": config}


@pytest.mark.parametrize("manage, enable", [(True, "YES"), (False, "NO")])
def test_rc_conf_of_freebsd(tmp_path, manage, enable):
    path = values("FreeBSD")["default_config"]
    text = render("rc.conf.j2", rsyncd_manage_service=manage, __rsyncd_config_path=path)
    assert shell_values(text, tmp_path) == {"enable": enable, "configfile": "/usr/local/etc/rsync/rsyncd.conf"}


# newsyslog.conf(5): logfilename [owner:group] mode count size when flags
NEWSYSLOG = re.compile(r"^/\S+ \w+:\w+ [0-7]{3} \d+ \* (?:@T00|\$W0D0|\$M1D0) [BCDEGJNPRTUXYZ]+$")


@pytest.mark.parametrize("when", ["daily", "weekly", "monthly"])
def test_newsyslog_of_freebsd(when):
    text = render(
        "newsyslog.j2",
        __rsyncd_rotated=["/var/log/rsyncd.log", "/var/log/other.log"],
        rsyncd_logrotate_when=when,
        rsyncd_logrotate_keep=8,
    )
    assert len(lines(text)) == 2
    assert all(NEWSYSLOG.match(line) for line in lines(text)), text


def test_the_daemon_of_freebsd_has_a_pid_file():
    """Its script of rc.d cannot stop it without one."""
    assert values("FreeBSD")["system_options"] == {"pid_file": "/var/run/rsyncd.pid"}


@pytest.mark.parametrize(
    "daemon, port, listen",
    [
        ({}, 873, "ListenStream=873"),
        ({"address": "10.0.0.1"}, 8730, "ListenStream=10.0.0.1:8730"),
        ({"address": "fd00::1"}, 873, "ListenStream=[fd00::1]:873"),
    ],
)
def test_where_a_socket_listens(daemon, port, listen):
    variables = {"__rsyncd_config": {"daemon": daemon}, "__rsyncd_port": port, "__rsyncd_service": "rsyncd"}
    assert lines(render("socket.conf.j2", **variables)) == ["[Socket]", "ListenStream=", listen]
    assert listen in lines(render("socket.j2", **variables))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="cannot run here: no systemd")
def test_systemd_takes_the_units(tmp_path):
    variables = {
        "__rsyncd_config": {"daemon": {}},
        "__rsyncd_port": 873,
        "__rsyncd_service": "rsync",
        "rsyncd_config_file": "",
    }
    (tmp_path / "rsync.socket").write_text(render("socket.j2", **variables))
    (tmp_path / "rsync@.service").write_text(render("instance.service.j2", **variables))
    argv = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "rsync.socket")]
    said = subprocess.run(argv, capture_output=True, text=True, check=False).stderr
    assert "rsync.socket:" not in said and "rsync@.service:" not in said, said


def test_logrotate_has_one_rule_for_all_files():
    variables = {"rsyncd_logrotate_when": "weekly", "rsyncd_logrotate_keep": 8}
    text = render("logrotate.j2", __rsyncd_rotated=["/var/log/a b.log", "/var/log/c.log"], **variables)
    assert lines(text)[:3] == ['"/var/log/a b.log"', '"/var/log/c.log" {', "    weekly"]


@pytest.mark.parametrize("role", ["rsyncd", "ssh_client"])
def test_a_system_sets_what_the_default_sets(role):
    systems = yaml.safe_load((ROLE.parent / role / "vars/main.yml").read_text())[f"__{role}_systems"]
    assert len(systems) > 4 and all(set(one) <= set(systems["default"]) for one in systems.values())
