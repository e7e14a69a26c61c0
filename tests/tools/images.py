# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The images that tests run in: ``longhaul-test:debian12`` and ``debian13`` for the Molecule scenarios, and those that
bring a Python which the machine lacks.

``images.py`` makes those of the scenarios that are missing or that were made by another recipe: from Debian's packages
with mmdebstrap and the mirror that apt is configured with, or, where there is no mmdebstrap, from Debian's image in a
registry.
"""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

import collection
import engine

sys.path.append(str(collection.REPOSITORY / "tests/support"))
import compiled

REPOSITORY = "longhaul-test"
# What any server has, and what the tests look with; not what the roles install.
PACKAGES = (
    "acl",
    "attr",
    "ca-certificates",
    "dbus",
    "iproute2",
    "iputils-ping",
    "openssh-client",
    "openssh-server",
    "procps",
    "python3",
    "sudo",
    "systemd-sysv",
)
# What the unit tests of the engine run and look with, besides; see system-packages.
FOR_UNIT_TESTS = (
    "e2fsprogs",
    "libarchive-tools",
    "libcap2-bin",
    "mount",
    "ncat",
    "netcat-openbsd",
    "netcat-traditional",
    "nftables",
    "passwd",
    "python3-cryptography",
    "python3-hypothesis",
    "python3-pytest",
    "python3-pytest-timeout",
    "python3-pytest-xdist",
    "rsync",
)
PYTHON_PACKAGES = "/usr/lib/python3/dist-packages"
LABEL = "longhaul.recipe"
MIRROR, SECURITY = "http://deb.debian.org/debian", "http://deb.debian.org/debian-security"
FORMAT = "$(ORIGIN)|$(SUITE)|$(REPO_URI)"


class Image(NamedTuple):
    """How an image is made."""

    suite: str
    packages: tuple
    compiled_once: bool  # Python there keeps what it compiles of modules that Ansible sends
    released: bool = True  # a mirror may be older than what is not released lets it be


SCENARIOS = {"debian12": Image("bookworm", PACKAGES, True), "debian13": Image("trixie", PACKAGES, True)}
PYTHONS = {(3, 14): "debian14"}
IMAGES = {**SCENARIOS, "debian14": Image("forky", (*PACKAGES, *FOR_UNIT_TESTS), False, released=False)}


class CannotBuild(Exception):
    """An image cannot be made here."""


def recipe(name: str) -> str:
    """Return a digest of how the image is built; if it differs, the image must be built again."""
    return hashlib.sha256(json.dumps([*IMAGES[name], finish(name)]).encode()).hexdigest()[:16]


def finish(name: str) -> str:
    """Return the last shell commands of the image: let its Python write compiled files where configured."""
    if not IMAGES[name].compiled_once:
        return "true"
    commands = [f"install -d -m 1777 {compiled.KEPT}"]
    for suffix, content in (("py", Path(compiled.__file__).read_bytes()), ("pth", compiled.AT_START.encode())):
        coded = base64.b64encode(content).decode()
        commands.append(f"echo {coded} | base64 -d > {PYTHON_PACKAGES}/{compiled.NAME}.{suffix}")
    return " && ".join(commands)


def pick_mirrors(listed: str) -> tuple[str, str | None]:
    """Return the mirror and the security mirror from what ``apt-get indextargets`` lists in FORMAT.

    Where apt has no Debian (another distribution), they are Debian's own.
    """
    rows = [line.split("|") for line in listed.splitlines() if line.count("|") == 2]
    debian = [(suite, uri.rstrip("/")) for origin, suite, uri in rows if origin == "Debian"]
    if not debian:
        return MIRROR, SECURITY
    plain = [uri for suite, uri in debian if not suite.endswith(("-security", "-backports"))]
    security = [uri for suite, uri in debian if suite.endswith("-security")]
    return (plain or [MIRROR])[0], security[0] if security else None


def sources(suite: str, mirror: str, security: str | None) -> list[str]:
    """Return the lines of sources.list."""
    lines = [f"deb {mirror} {suite} main", f"deb {mirror} {suite}-updates main"]
    return [*lines, *([f"deb {security} {suite}-security main"] if security else [])]


def exists(name: str) -> bool:
    """Whether the image is there and made by the present recipe."""
    argv = ["docker", "image", "inspect", "--format", f'{{{{index .Config.Labels "{LABEL}"}}}}', f"{REPOSITORY}:{name}"]
    asked = subprocess.run(argv, capture_output=True, text=True, check=False)
    return asked.returncode == 0 and asked.stdout.strip() == recipe(name)


_INSTALLING = threading.Lock()  # images may be made side by side, but packages are not installed so


def bootstrap(name: str) -> None:
    """Make the image from packages. Raises CannotBuild."""
    with _INSTALLING:
        why = None if engine.find("mmdebstrap") else engine.install(["mmdebstrap", "debian-archive-keyring"])
    if why:
        raise CannotBuild(f"there is no mmdebstrap. {why}")
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", FORMAT, "Created-By: Packages"],
        capture_output=True,
        text=True,
        check=False,
    )
    proxy = subprocess.run(
        ["apt-config", "shell", "proxy", "Acquire::http::Proxy"], capture_output=True, text=True, check=False
    )
    proxy_url = proxy.stdout.strip().partition("=")[2].strip("'")
    image = IMAGES[name]
    make = [
        "mmdebstrap",
        "--quiet",
        "--variant=apt",
        f"--include={','.join(image.packages)}",
        f"--customize-hook=chroot \"$1\" sh -c '{finish(name)}'",
        *([f'--aptopt=Acquire::http::Proxy "{proxy_url}";'] if proxy_url else []),
        *([] if image.released else ['--aptopt=Acquire::Check-Valid-Until "false";']),
        image.suite,
        "-",
        *sources(image.suite, *pick_mirrors(listed.stdout)),
    ]
    take = ["docker", "import", "--change", f"LABEL {LABEL}={recipe(name)}", "-", f"{REPOSITORY}:{name}"]
    making = subprocess.Popen(make, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    taking = subprocess.Popen(take, stdin=making.stdout, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert making.stdout and making.stderr
    making.stdout.close()  # so that mmdebstrap ends where docker does
    said = making.stderr.read().decode(errors="replace")
    answer = taking.communicate()[0].decode(errors="replace")
    if making.wait():
        subprocess.run(["docker", "image", "rm", f"{REPOSITORY}:{name}"], capture_output=True, check=False)
        raise CannotBuild(f"mmdebstrap ended with {making.returncode}: {_end(said)}")
    if taking.returncode:
        raise CannotBuild(f"docker import ended with {taking.returncode}: {_end(answer)}")


def build(name: str) -> None:
    """Make the image from Debian's own in a registry. Raises CannotBuild."""
    dockerfile = (
        f"FROM debian:{IMAGES[name].suite}\n"
        "RUN apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends "
        f"{' '.join(IMAGES[name].packages)} && apt-get clean && rm -rf /var/lib/apt/lists/*\n"
        f"RUN {finish(name)}\n"
        f"LABEL {LABEL}={recipe(name)}\n"
    )
    argv = ["docker", "build", "--quiet", "--tag", f"{REPOSITORY}:{name}", "-"]
    ended = subprocess.run(argv, input=dockerfile, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise CannotBuild(f"docker build ended with {ended.returncode}: {_end(ended.stdout + ended.stderr)}")


def make(name: str) -> None:
    """Make the image where it is missing or out of date. Raises CannotBuild with every reason."""
    if exists(name):
        return
    reasons = []
    for way in (bootstrap, build):
        begun = time.monotonic()
        try:
            way(name)
        except CannotBuild as error:
            reasons.append(str(error))
            continue
        print(f"made {REPOSITORY}:{name} in {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
        return
    raise CannotBuild(f"the image {REPOSITORY}:{name} cannot be made: {'; '.join(reasons)}")


def _end(said: str) -> str:
    return " / ".join(line.strip() for line in said.strip().splitlines()[-3:]) or "it said nothing"


def main() -> int:
    """Make the images of the scenarios."""
    try:
        engine.make_ready()
        for name in SCENARIOS:
            make(name)
    except (engine.Unavailable, CannotBuild) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
