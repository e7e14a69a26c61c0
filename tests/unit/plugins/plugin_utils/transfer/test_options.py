# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options that no pair of hosts could honour, and some that look as if."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.modules import transfer, verify
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.argument_spec import spec_from_documentation
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.refusal import Refusal
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.options import (
    check_options,
    find_problems,
    limiting_options,
    wanted_ports,
)


def options(module=transfer, **given):
    spec = spec_from_documentation(module.DOCUMENTATION)
    defaults = {name: option.get("default") for name, option in spec.items()}
    return dict(defaults, **{"src": "/srv/data/", "dest": "/srv/data", **given})


@pytest.mark.parametrize("module", [transfer, verify])
def test_defaults_are_accepted(module):
    check_options(options(module))


@pytest.mark.parametrize(
    "given",
    [
        {"max_delete": 0},
        {"port": 65535},
        {"port_range": "1-65535"},
        {"bwlimit": "1.5G"},
        {"rsync_opts": ["--fuzzy", "--block-size=4096", "-W"]},
        {"rsync_opts": ["-uL", "--chmod=D755"], "verify": "none"},
        {"filter": ["P /keep", "+ /a/***", "!"]},
        {"link_dest": ["/srv/old"]},
        {"rsyncd_module": "m", "rsyncd_user": "u", "rsyncd_password": "p"},
    ],
)
def test_accepted(given):
    check_options(options(**given))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"src": "srv"}, "src is 'srv', a relative path"),
        ({"dest": ""}, "dest is ''"),
        ({"src": "old:/srv"}, "src is 'old:/srv', which names a host, as rsync does. .* as src_host"),
        ({"dest": "root@new:"}, "dest is 'root@new:', which names a host, .* as dest_host"),
        ({"src": "rsync://old/m/x"}, "names a module of an rsync daemon.* rsyncd_module"),
        ({"src": "old::m/x"}, "names a module of an rsync daemon.* rsyncd_module"),
        ({"src": "~/x"}, "src is '~/x', and no shell is there"),
        ({"link_dest": ["~root/x"]}, "link_dest is '~root/x', and no shell"),
        ({"src": "a/b:c"}, "src is 'a/b:c', a relative path"),
        ({"src": "/srv/\udcff"}, r"src is '/srv/\\udcff', which is not UTF-8"),
        ({"exclude": ["a", "\udcff"]}, "exclude is .* not UTF-8"),
        ({"link_dest": ["/a", "/\udcff"]}, "link_dest is .* not UTF-8"),
        ({"dest": "/a\0b"}, "NUL"),
        ({"link_dest": ["/ok", "../old"]}, "link_dest is '../old'"),
        ({"streams": "0"}, "streams is 0: give auto or a number from 1 to 64"),
        ({"timeout": 0}, "timeout is 0: give 1 or more"),
        ({"max_delete": -1}, "max_delete is -1: give 0 or more"),
        ({"port": 70000}, "port is 70000: give a number from 1 to 65535"),
        ({"port_range": "50-40"}, "port_range is '50-40'"),
        ({"bwlimit": "fast"}, "bwlimit: 'fast' is no rate"),
        ({"congestion": "BBR; reboot"}, "congestion: 'BBR; reboot' is no name"),
        ({"filter": [". /etc/rules"]}, "merge files are not offered.*filter, include, exclude"),
        ({"exclude": [""]}, "has no pattern"),
        ({"exclude_if_present": ["a", "b/c"]}, "exclude_if_present: 'b/c' is not the name of a file"),
        ({"exclude_if_present": [".."]}, "exclude_if_present: '..' is not the name of a file"),
        ({"exclude": ["+ a", "*"]}, r"exclude has '\+ a': in rsync's lists that is a rule"),
        ({"rsync_opts": ["--daemon"]}, "rsync_opts: --daemon cannot be used"),
        ({"rsync_opts": ["--chmod=D755"]}, "rsync_opts: --chmod=D755 needs verify: none"),
        ({"rsync_opts": ["-L"], "verify": "checksum"}, "rsync_opts: -L needs verify: none"),
        ({"rsync_opts": ["--append"], "verify": "none"}, "rsync_opts: --append cannot be used"),
        ({"rsyncd_password": "p"}, "rsyncd_password is set, but no rsyncd_module"),
    ],
)
def test_refused(given, words):
    with pytest.raises(Refusal, match=words):
        check_options(options(**given))


def test_all_problems_are_found_where_a_transfer_is_refused_for_the_first():
    found = find_problems(options(timeout=0, streams="x", bwlimit="fast", port_range="2-1"))
    assert [one.split()[0] for one in found] == ["timeout", "streams", "bwlimit:", "port_range"]
    assert find_problems(options()) == []


def test_the_options_that_only_some_methods_know():
    assert list(limiting_options(options())) == []
    given = options(delta="none", congestion="none", inplace=True, sftp_requests=8, timeout=5)
    assert [name for name, _methods in limiting_options(given)] == ["inplace", "sftp_requests"]
    given = options(exclude_if_present=[], exclude_caches=True)
    assert list(limiting_options(given)) == [("exclude_caches", ("stream", "tar_nc", "sftp", "scp"))]
    given = options(delta="blocks", congestion="bbr", rsync_opts=[])
    assert list(limiting_options(given)) == [("delta", ("stream",)), ("congestion", ("stream",))]


def test_ports_are_tried_in_order():
    assert wanted_ports(options(port_range="50000-50002")) == [50000, 50001, 50002]
    assert wanted_ports(options(port=7)) == [7]
    assert wanted_ports(options()) == []
