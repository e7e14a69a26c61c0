# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The HTML site in ``.build/docs``: the guides, the READMEs of the roles, and the reference, which antsibull-docs makes
from the documentation in plugins and roles. Nothing is fetched, and a warning is a failure.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv as environments
from pathlib import Path

import collection

SITE = collection.REPOSITORY / ".build/docs"


def write_reference(programs: Path, base: Path, place: Path) -> None:
    """Have antsibull-docs write the pages of the plugins and roles, as reStructuredText."""
    place.mkdir()
    argv = [str(programs / "antsibull-docs"), "collection", "--use-current", "--squash-hierarchy", "--no-breadcrumbs"]
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "ANSIBLE_COLLECTIONS_PATH": str(base),
        "ANSIBLE_HOME": str(base / "home"),
    }
    subprocess.run([*argv, "--dest-dir", str(place), "longhaul.fleet"], env=environment, check=True)


def build(programs: Path, source: Path) -> None:
    """Have Sphinx make the site from a copy of the repository."""
    shutil.copy(source / "docs/site/index.md", source / "index.md")
    shutil.rmtree(SITE, ignore_errors=True)
    argv = [str(programs / "sphinx-build"), "-W", "--keep-going", "-q", "-b", "html", "-c", str(source / "docs/site")]
    subprocess.run([*argv, "-d", str(source.parents[2] / "doctrees"), str(source), str(SITE)], check=True)


def main() -> int:
    """Make the site; the exit code is 1 where anything was amiss."""
    try:
        programs = environments.make("docs") / "bin"
        base = collection.copy("docs-source")
        source = base / collection.NAME
        write_reference(programs, base, source / "reference")
        build(programs, source)
    except environments.Unavailable as error:
        print(error, file=sys.stderr)
        return 2
    except subprocess.CalledProcessError as error:
        print(f"{' '.join(error.cmd)} ended with {error.returncode}", file=sys.stderr)
        return 1
    print(f"{len(list(SITE.rglob('*.html')))} pages: {SITE.relative_to(collection.REPOSITORY)}/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
