# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A rsync daemon that was there before, for the cases with rsyncd_module."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from typing import Any

from .case import Place

_CONF = """\
use chroot = yes
numeric ids = yes
[soak]
path = {folder}
read only = no
uid = 0
gid = 0
auth users = {user}
secrets file = {folder}/rsyncd.secrets
"""


@contextlib.contextmanager
def running(place: Place) -> Iterator[dict[str, Any]]:
    """Yield the options of the case's task; where they name a daemon's module, the daemon runs meanwhile."""
    options = place.options()
    if not (options["rsyncd_module"] and options["port"] and options["rsyncd_user"]):  # it is to be refused, or without
        yield options
        return
    secrets, conf = place.folder / "rsyncd.secrets", place.folder / "rsyncd.conf"
    secrets.write_text(f"{options['rsyncd_user']}:{options['rsyncd_password']}\n")
    os.chmod(secrets, 0o600)
    conf.write_text(_CONF.format(folder=place.folder, user=options["rsyncd_user"]))
    daemon = subprocess.Popen(
        ["rsync", "--daemon", "--no-detach", f"--config={conf}", "--address=127.0.0.1", f"--port={options['port']}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait(options["port"])
        yield options
    finally:
        daemon.terminate()
        daemon.wait()


def _wait(port: int) -> None:
    for _attempt in range(2000):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.01)
    raise AssertionError("the rsync daemon did not come up")
