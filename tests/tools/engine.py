# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The docker engine that the Molecule scenarios run in: installed where root may, started where it does not run.

``engine.py`` makes it ready; the exit code is 2 where that is not possible, and a line says what to type.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import collection

LOG = collection.REPOSITORY / ".build/dockerd.log"
PATIENCE = 40  # seconds, for the engine to answer after it was started
SYSTEM_PROGRAMS = "/usr/local/sbin:/usr/sbin:/sbin"


class Unavailable(Exception):
    """There is no docker engine, and none can be started here."""


def find(program: str) -> str | None:
    """Return the path of a program; the folders of root's programs are searched too."""
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:{SYSTEM_PROGRAMS}")


def answers() -> bool:
    """Whether an engine answers, here or where DOCKER_HOST says."""
    docker = find("docker")
    if not docker:
        return False
    asked = subprocess.run(
        [docker, "version", "--format", "{{.Server.Version}}"], capture_output=True, check=False, timeout=30
    )
    return asked.returncode == 0


def install(packages: list[str]) -> str | None:
    """Install Debian packages as root, without starting what they bring; say why where that did not work."""
    if os.geteuid() != 0 or not find("apt-get"):
        return f"On Debian and Ubuntu, as root: apt-get install {' '.join(packages)}"
    print(f"installing {' '.join(packages)}", file=sys.stderr, flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["-y", "install", "--no-install-recommends", *packages]):
        ended = subprocess.run(
            ["apt-get", "-qq", *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if ended.returncode:
            said = (ended.stdout.strip().splitlines() or ["it said nothing"])[-1]
            return f"apt-get {' '.join(arguments)} ended with {ended.returncode}: {said}"
    return None


def _client_package() -> list[str]:
    """Name the client's package where it has one of its own, as from Debian 13 on."""
    if not find("apt-cache"):
        return []
    shown = subprocess.run(["apt-cache", "show", "docker-cli"], capture_output=True, check=False)
    return [] if shown.returncode else ["docker-cli"]


def start() -> str:
    """Start the engine that is installed; give how that was tried."""
    if Path("/run/systemd/system").is_dir() and find("systemctl"):
        tried = ["systemctl", "start", "docker"]
        subprocess.run(tried, capture_output=True, check=False)
        return " ".join(tried)
    daemon = find("dockerd")
    if not daemon:
        return "there is no dockerd"
    LOG.parent.mkdir(parents=True, exist_ok=True)
    with LOG.open("wb") as log:
        # It outlives the tests, as an engine that a service manager has started does.
        subprocess.Popen(
            [daemon],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "PATH": f"{os.environ.get('PATH', '')}:{SYSTEM_PROGRAMS}"},
        )
    return f"{daemon}, whose log is {LOG.relative_to(collection.REPOSITORY)}"


def wait(seconds: float) -> bool:
    """Wait until the engine answers; say whether it does."""
    end = time.monotonic() + seconds
    while not answers():
        if time.monotonic() > end:
            return False
        time.sleep(0.5)
    return True


def make_ready() -> None:
    """Make sure that an engine answers. Raise Unavailable with the command to run."""
    if answers():
        return
    if os.environ.get("DOCKER_HOST"):
        raise Unavailable(f"no docker engine answers at DOCKER_HOST={os.environ['DOCKER_HOST']}")
    if not find("docker") or not find("dockerd"):
        why = install(["docker.io", *_client_package()])
        if why:
            raise Unavailable(f"there is no docker engine. {why}")
    if answers():
        return
    if os.geteuid() != 0:
        raise Unavailable(
            "no docker engine answers. As root: systemctl start docker; or add yourself to the group docker"
        )
    tried = start()
    if not wait(PATIENCE):
        last = LOG.read_text(errors="replace").strip().splitlines()[-1:] if LOG.exists() else []
        raise Unavailable(f"the docker engine does not answer after it was started ({tried}). {' '.join(last)}")


def cgroup_mount() -> str:
    """Return what systemd in a container needs at /sys/fs/cgroup: the unified tree, wherever the machine has it."""
    hybrid = Path("/sys/fs/cgroup/unified/cgroup.procs")
    return "/sys/fs/cgroup/unified" if hybrid.exists() else "/sys/fs/cgroup"


def main() -> int:
    """Do what the command line says."""
    try:
        make_ready()
    except Unavailable as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
