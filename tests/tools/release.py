# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Release the collection: ``release.py VERSION`` prepares it, ``release.py`` builds and checks what was prepared.

To prepare sets the version in galaxy.yml and turns the changelog's fragments into an entry; a person reads and commits
that. To build takes what is committed, and nothing else: it makes the tarball and a file with its checksum in
``.build/release``, installs the tarball as a user would, and looks at what is there then. Nothing is published.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv as environments
from pathlib import Path
from typing import Any, Collection, NamedTuple

import collection
import lint
import yaml

REPOSITORY = collection.REPOSITORY
FOLDER = REPOSITORY / ".build/release"
VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
# What the tarball has at its top; anything else was added without a word about whether users need it.
TOP = {
    *("CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md"),
    *("FILES.json", "MANIFEST.json", "changelogs", "docs", "meta", "playbooks", "plugins", "roles"),
}
CHECKS = ("changelog", "documentation", "galaxy")  # of lint: those that look at what is published


class Stop(Exception):
    """The release cannot be made; the text says why, and what to do."""


class State(NamedTuple):
    """What a repository says of its next release."""

    version: str  # of galaxy.yml
    released: Collection[str]  # the versions of the changelog
    written: str  # the text of CHANGELOG.md
    fragments: Collection[str]
    uncommitted: Collection[str]
    tagged: str = ""  # the commit that the version's tag names
    head: str = ""


def problems(state: State) -> list[str]:
    """Return what stands in the way of building a release. Pure."""
    version, found = state.version, []
    if not VERSION.fullmatch(version):
        found.append(f"galaxy.yml has the version {version!r}, which is not like 1.2.3")
        return found
    if version not in state.released:
        found.append(f"the changelog has no release {version}: prepare it with make release ARGS={version}")
    else:
        newest = max(state.released, key=number)
        if newest != version:
            found.append(f"galaxy.yml has {version}, and the changelog {newest}: prepare a version above both")
        if f"## v{version}\n" not in state.written.replace("\\.", "."):  # Markdown's escapes
            found.append(f"CHANGELOG.md has no heading v{version}: run antsibull-changelog generate")
    if state.fragments:
        several = ", ".join(sorted(state.fragments))
        found.append(f"fragments are in no release yet ({several}): prepare one with make release ARGS=VERSION")
    if state.uncommitted:
        found.append(f"{len(state.uncommitted)} files are not committed: a release is made of what is")
    if state.tagged and state.tagged != state.head:
        found.append(f"the tag v{version} names another commit: that version was released already")
    return found


def number(version: str) -> tuple[int, ...]:
    """Return a version to compare it by."""
    return tuple(int(part) for part in version.split("."))


def look() -> State:
    """Read the state of the repository."""
    releases = yaml.safe_load((REPOSITORY / "changelogs/changelog.yaml").read_text(encoding="utf-8"))["releases"]
    version = str(yaml.safe_load((REPOSITORY / "galaxy.yml").read_text(encoding="utf-8"))["version"])
    return State(
        version=version,
        released=list(releases),
        written=(REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8"),
        fragments=[path.name for path in (REPOSITORY / "changelogs/fragments").glob("*.y*ml")],
        uncommitted=_git("status", "--porcelain").splitlines(),
        tagged=_git("rev-list", "-n", "1", f"v{version}", missing=""),
        head=_git("rev-parse", "HEAD"),
    )


def _git(*arguments: str, missing: str | None = None) -> str:
    asked = subprocess.run(["git", "-C", str(REPOSITORY), *arguments], capture_output=True, text=True, check=False)
    if asked.returncode and missing is None:
        raise Stop(f"git {arguments[0]} failed: {asked.stderr.strip()}")
    return missing or "" if asked.returncode else asked.stdout.strip()


def prepare(version: str, programs: Path) -> None:
    """Write the version into galaxy.yml and the changelog."""
    state = look()
    if not VERSION.fullmatch(version):
        raise Stop(f"{version!r} is not a version like 1.2.3")
    highest = max([state.version, *state.released], key=number)
    if number(version) <= number(highest):
        raise Stop(f"{version} is not above {highest}, which galaxy.yml or the changelog has already")
    if not state.fragments:
        raise Stop("changelogs/fragments has nothing that is new since the last release")
    if state.uncommitted:
        raise Stop("commit or remove what is not committed: the release's changes are to stand by themselves")
    path = REPOSITORY / "galaxy.yml"
    text = path.read_text(encoding="utf-8")
    path.write_text(re.sub(r"(?m)^version: .*$", f"version: {version}", text, count=1), encoding="utf-8")
    base = collection.copy("release-notes")
    _run([str(programs / "antsibull-changelog"), "release"], base, inside=True)
    copied = base / collection.NAME
    for name in ("CHANGELOG.md", "changelogs/changelog.yaml"):
        shutil.copy2(copied / name, REPOSITORY / name)
    for name in state.fragments:
        (REPOSITORY / "changelogs/fragments" / name).unlink()
    print(f"Read CHANGELOG.md and git diff, commit them as the release {version}, and run make release.")


def _run(argv: list[str], base: Path, inside: bool = False) -> str:
    """Run a program where Ansible finds the collections below a folder, maybe inside ours; return what it printed."""
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(base), "NO_COLOR": "1"}
    environment["PATH"] = f"{Path(argv[0]).parent}:{environment['PATH']}"
    folder = base / collection.NAME if inside else base
    ran = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise Stop(f"{Path(argv[0]).name} {' '.join(argv[1:])} ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def build(programs: Path) -> Path:
    """Build the tarball of what is committed, check it, and write its checksum; return its path."""
    state = look()
    found = problems(state)
    if found:
        raise Stop("\n".join(f"* {one}" for one in found))
    for case in lint.run_checks(CHECKS, user="release-checks"):
        if case.failure:
            raise Stop(f"lint found something: {case.failure}")
    shutil.rmtree(FOLDER, ignore_errors=True)
    _git("clone", "--quiet", "--no-local", str(REPOSITORY), str(FOLDER / "clone"))
    galaxy = str(programs / "ansible-galaxy")
    _run([galaxy, "collection", "build", str(FOLDER / "clone"), "--output-path", str(FOLDER)], FOLDER)
    shutil.rmtree(FOLDER / "clone")
    tarball = FOLDER / f"longhaul-fleet-{state.version}.tar.gz"
    check_contents(tarball, state.version)
    check_installed(tarball, programs)
    digest = hashlib.sha256(tarball.read_bytes()).hexdigest()
    (FOLDER / "SHA256SUMS").write_text(f"{digest}  {tarball.name}\n", encoding="ascii")
    return tarball


def check_contents(tarball: Path, version: str) -> None:
    """Raise Stop unless the tarball has what users need, all of it and no more."""
    with tarfile.open(tarball) as archive:
        names = [member.name for member in archive if not member.isdir()]
        manifest: dict[str, Any] = json.load(archive.extractfile("MANIFEST.json"))  # type: ignore[arg-type]
    top = {name.partition("/")[0] for name in names}
    if top != TOP:
        raise Stop(
            f"at the top of the tarball are too many ({sorted(top - TOP)}) or too few ({sorted(TOP - top)}) names"
        )
    if manifest["collection_info"]["version"] != version:
        raise Stop(f"the tarball says that it is version {manifest['collection_info']['version']}")
    strange = [name for name in names if name.endswith((".pyc", ".orig", ".rej", "~")) or "__pycache__" in name]
    if strange:
        raise Stop(f"the tarball has files that nobody wrote: {strange}")


def check_installed(tarball: Path, programs: Path) -> None:
    """Install the tarball without a network, compare its files with its checksums, and read what it brings."""
    place = FOLDER / "installed"
    galaxy = str(programs / "ansible-galaxy")
    place.mkdir()
    _run([galaxy, "collection", "install", "--offline", "--collections-path", str(place), str(tarball)], place)
    _run([galaxy, "collection", "verify", "--offline", "--collections-path", str(place), "longhaul.fleet"], place)
    listed = json.loads(_run([str(programs / "ansible-doc"), "--list", "--json", "longhaul.fleet"], place))
    if "longhaul.fleet.transfer" not in listed:
        raise Stop("the installed collection has no module transfer")
    playbooks = sorted(path.stem for path in (place / collection.NAME / "playbooks").glob("*.yml"))
    for name in playbooks:
        _run([str(programs / "ansible-playbook"), "--syntax-check", f"longhaul.fleet.{name}"], place)
    print(f"installed: {len(listed)} modules, {len(playbooks)} playbooks ({', '.join(playbooks)})")
    shutil.rmtree(place)


def main() -> int:
    """Do what the command line says."""
    try:
        programs = environments.make("dev") / "bin"
        if len(sys.argv) > 1:
            prepare(sys.argv[1], programs)
        else:
            tarball = build(programs)
            print(f"{tarball}\n{(FOLDER / 'SHA256SUMS').read_text()}To publish it, push the tag v{look().version}.")
    except (Stop, environments.Unavailable) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
