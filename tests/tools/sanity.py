# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""ansible-test's sanity tests, all of them, without ignore files: ``sanity.py [--all]``.

They read what a release holds, which is what users and distributors test. ``--all`` has them read the other files of
the repository, too, its tests above all: that takes twice as long, and the linters read them in any case.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv as environments
from pathlib import Path

import collection
import pythons
import results


def run(argv: list[str], copied: Path, environment: dict[str, str]) -> tuple[int, str]:
    """Run ansible-test, showing what it says; give its exit code and all of that."""
    running = subprocess.Popen(
        argv, cwd=copied, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert running.stdout
    said = []
    for line in running.stdout:
        print(line, end="", flush=True)
        said.append(line)
    return running.wait(), "".join(said)


def unpack_release(copied: Path, programs: Path) -> Path:
    """Build the collection from a copy, and return the folder with what the tarball holds."""
    base = copied.parents[2]
    built = base.with_name(f"{base.name}-tarball")
    shutil.rmtree(built, ignore_errors=True)
    place = built / collection.NAME
    subprocess.run(["git", "init", "--quiet", str(place)], check=True)  # ansible-test asks git, as in collection.copy
    build = [str(programs / "ansible-galaxy"), "collection", "build", str(copied), "--output-path", str(built)]
    subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
    (tarball,) = built.glob("*.tar.gz")
    subprocess.run(["tar", "-xzf", str(tarball), "-C", str(place)], check=True)
    return place


def main() -> int:
    """Run the tests; the exit code is that of ansible-test."""
    ignores = sorted((collection.REPOSITORY / "tests/sanity").glob("ignore*"))
    if ignores:
        print(f"no finding is to be ignored, but there is {', '.join(str(path) for path in ignores)}")
        return 1
    programs = environments.make("dev") / "bin"
    kind = environments.kind_of("dev")
    found = pythons.newest(kind.least, kind.most)
    assert found
    (major, minor), python = found
    copied = collection.copy("sanity") / collection.NAME
    if "--all" not in sys.argv[1:]:
        copied = unpack_release(copied, programs)
    path = f"{programs}:{Path(python).resolve().parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONWARNINGS": ""}
    argv = ["ansible-test", "sanity", "--venv", "--python", f"{major}.{minor}", "--junit", "--color", "no"]
    code, said = run([str(programs / argv[0]), *argv[1:]], copied, environment)
    missing = re.search(r"Download failed:[\s\S]*saved to: (\S*/\.ansible/test/cache/get_pip_\w+\.py)", said)
    if code and missing and not Path(missing[1]).exists():
        print(f"ansible-test's own bootstrap of pip is out of reach: putting get_pip.py in its place, {missing[1]}")
        shutil.copy(Path(__file__).with_name("get_pip.py"), missing[1])
        code, said = run([str(programs / argv[0]), *argv[1:]], copied, environment)
    results.FOLDER.mkdir(parents=True, exist_ok=True)
    for old in results.FOLDER.glob("sanity-*.xml"):
        old.unlink()
    written = sorted((copied / "tests/output/junit").glob("*.xml"))
    for number, report in enumerate(written):
        if b">No tests applicable.<" in report.read_bytes():
            continue  # a test of a kind of file that the collection does not have
        shutil.copy(report, results.FOLDER / f"sanity-{number:02}.xml")
    if code and not written:
        results.write("sanity-00", [results.Case("sanity", "ansible-test", 0, said[-1000:] or "it said nothing")])
    return code


if __name__ == "__main__":
    sys.exit(main())
