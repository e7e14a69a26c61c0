# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What stands in the way of a release is said before anything is built."""

from __future__ import annotations

import io
import json
import tarfile

import pytest


@pytest.fixture(name="release", scope="module")
def _release(import_tool):
    return import_tool("release")


def state(release, **changes):
    made = release.State("0.10.0", ["0.9.0", "0.10.0"], "# Notes\n\n## v0\\.10\\.0\n", [], [], "", "c0ffee")
    return made._replace(**changes)


def test_what_was_prepared_can_be_built(release):
    assert release.problems(state(release)) == []
    assert release.problems(state(release, tagged="c0ffee")) == []


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"version": "0.10"}, "not like 1.2.3"),
        ({"version": "0.11.0"}, "no release 0.11.0"),
        ({"version": "0.9.0", "written": "## v0.9.0\n"}, "galaxy.yml has 0.9.0, and the changelog 0.10.0"),
        ({"written": "## v0.1.0\n"}, "no heading v0.10.0"),
        ({"fragments": ["new.yml"]}, "new.yml"),
        ({"uncommitted": [" M README.md"]}, "1 files are not committed"),
        ({"tagged": "decade"}, "names another commit"),
    ],
)
def test_each_problem_is_named(release, changes, words):
    (found,) = release.problems(state(release, **changes))
    assert words in found


@pytest.mark.parametrize(
    "extra, version, words",
    [
        ([], "0.10.0", ""),
        (["tests/test_x.py"], "0.10.0", "too many (['tests'])"),
        (["plugins/x.pyc"], "0.10.0", "x.pyc"),
        ([], "0.9.0", "version 0.10.0"),
    ],
)
def test_the_tarball_has_what_users_need_and_no_more(release, tmp_path, extra, version, words):
    tarball = tmp_path / "made.tar.gz"
    manifest = json.dumps({"collection_info": {"version": "0.10.0"}}).encode()
    files = sorted(name if "." in name or name == "LICENSE" else f"{name}/file" for name in release.TOP)
    with tarfile.open(tarball, "w:gz") as archive:
        for name in [*files, *extra]:
            member = tarfile.TarInfo(name)
            data = manifest if name == "MANIFEST.json" else b""
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    if words:
        with pytest.raises(release.Stop) as stopped:
            release.check_contents(tarball, version)
        assert words in str(stopped.value)
    else:
        release.check_contents(tarball, version)
