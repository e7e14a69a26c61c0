# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a unit closes, and what a drop-in opens."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._rsyncd import sandbox

DEBIAN = """\
# /lib/systemd/system/rsync.service
[Unit]
Description=fast remote file copy program daemon

[Service]
ExecStart=/usr/bin/rsync --daemon --no-detach
ProtectSystem=full
#ProtectHome=on|off|read-only
PrivateDevices=on
NoNewPrivileges=on
"""
OURS = "/etc/systemd/system/rsync.service.d/zz-longhaul-fleet.conf"


def module(path="/srv/data", **changes) -> dict:
    return {"name": "data", "path": path, "read_only": False, "uid": "nobody", **changes}


def lines(unit: str, *modules: dict, **daemon) -> list[str]:
    return sandbox.plan_drop_in(unit, modules, daemon, OURS).settings


def unit(*settings: str) -> str:
    return "\n".join(["# /lib/systemd/system/rsync.service", "[Service]", *settings, ""])


@pytest.mark.parametrize(
    "settings, module_, wanted",
    [
        ([], module("/"), []),
        (["ProtectSystem=full"], module("/srv/data"), []),
        (["ProtectSystem=full"], module("/usr/data"), ["ReadWritePaths=-/usr/data"]),
        (["ProtectSystem=full"], module("/usr/data", read_only=True), []),
        (
            ["ProtectSystem=full"],
            module("/usr/data", read_only=True, auth_users=["a:rw"]),
            ["ReadWritePaths=-/usr/data"],
        ),
        (["ProtectSystem=full"], module("/etc"), ["ReadWritePaths=-/etc"]),
        (["ProtectSystem=yes"], module("/etc"), []),
        (["ProtectSystem=strict"], module("/srv/data"), ["ReadWritePaths=-/srv/data"]),
        (["ProtectSystem=strict"], module("/dev/shm"), []),
        (["ProtectSystem=strict", "ReadWritePaths=/srv"], module("/srv/data"), []),
        (
            ["ProtectSystem=strict", "ReadWritePaths=/srv", "ReadWritePaths="],
            module("/srv/data"),
            ["ReadWritePaths=-/srv/data"],
        ),
        (["ProtectSystem=full"], module("/"), ["ProtectSystem=no"]),
        (["ProtectHome=yes"], module("/srv"), []),
        (["ProtectHome=yes"], module("/home/a", read_only=True), ["ProtectHome=read-only"]),
        (["ProtectHome=yes"], module("/home/a"), ["ProtectHome=read-only", "ReadWritePaths=-/home/a"]),
        (["ProtectHome=tmpfs"], module("/root"), ["ProtectHome=read-only", "ReadWritePaths=-/root"]),
        (["ProtectHome=read-only"], module("/home/a"), ["ReadWritePaths=-/home/a"]),
        (["ProtectHome=yes"], module("/"), ["ProtectHome=no"]),
        (["PrivateDevices=yes"], module(), []),
        (["PrivateDevices=yes"], module(uid="root"), ["PrivateDevices=no"]),
        (["PrivateDevices=yes"], module(uid="root", fake_super=True), []),
        (["PrivateDevices=yes"], module(uid="root", refuse_options=["devices"]), []),
        (["PrivateDevices=yes"], module(uid="root", read_only=True), []),
        (["PrivateDevices=yes"], module("/dev/shm", read_only=True), ["PrivateDevices=no"]),
        (["PrivateTmp=yes"], module("/tmp/x"), ["PrivateTmp=no"]),
        (["PrivateTmp=yes"], module("/srv"), []),
        (["ReadOnlyPaths=/srv"], module("/srv/data"), ["ReadWritePaths=-/srv/data"]),
        (["ProtectSystem=strict"], module("/srv/a b%"), ['ReadWritePaths="-/srv/a b%%"']),
        (["ProtectSystem=strict"], module("/srv/./in"), ["ReadWritePaths=-/srv/in"]),
        (["ProtectSystem=strict"], module("/home/%RSYNC_USER_NAME%"), []),
        (["ProtectSystem=strict"], module(lock_file="/srv/locks/l"), ["ReadWritePaths=-/srv/data -/srv/locks"]),
    ],
)
def test_what_is_opened(settings, module_, wanted):
    assert lines(unit(*settings), module_) == wanted


def test_debian():
    assert lines(DEBIAN, module()) == []
    assert lines(DEBIAN, module("/usr/local/x", uid="root")) == ["PrivateDevices=no", "ReadWritePaths=-/usr/local/x"]


def test_paths_inside_of_others_are_not_named_again():
    assert lines(unit("ProtectSystem=strict"), module("/srv"), module("/srv/data")) == ["ReadWritePaths=-/srv"]


def test_the_log_is_written_too():
    assert lines(unit("ProtectSystem=strict"), log_file="/var/log/rsyncd.log") == ["ReadWritePaths=-/var/log"]


def test_the_own_drop_in_does_not_count_and_those_of_others_do():
    text = unit("ProtectSystem=full") + f"\n# {OURS}\n[Service]\nProtectSystem=no\n"
    assert lines(text, module("/usr/x")) == ["ReadWritePaths=-/usr/x"]
    text += "\n# /etc/systemd/system/rsync.service.d/admin.conf\n[Service]\nProtectSystem=no\n"
    assert lines(text, module("/usr/x")) == []


def test_what_no_drop_in_opens_is_named():
    found = sandbox.plan_drop_in(unit("InaccessiblePaths=-/srv"), [module()], {})
    assert found.shut == ["/srv/data"]


def test_a_setting_over_several_lines():
    settings = sandbox.unit_settings("[Service]\nReadOnlyPaths=/a \\\n  -/b\n[Install]\nProtectSystem=full\n")
    assert settings == {"ReadOnlyPaths": ["/a", "/b"]}
