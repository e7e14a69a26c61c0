# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Printable paths and back."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._model.paths import (
    check_path,
    components,
    escape,
    unescape,
)
from hypothesis import given
from hypothesis import strategies as st

TABLE = {
    b"plain name": "plain name",
    b"new\nline": "new\\#012line",
    b"tab\tcr\r": "tab\\#011cr\\#015",
    b"\xff\x80": "\\#377\\#200",
    "é漢".encode(): "é漢",
    b"back\\slash \\n": "back\\slash \\n",
    b"like\\#012an escape": "like\\#134#012an escape",
    b"\\#12": "\\#12",
    b"": "",
    b"\x1b[31mred": "\\#033[31mred",
}


@pytest.mark.parametrize(("path", "text"), TABLE.items(), ids=repr)
def test_paths_are_printed_as_rsync_prints_them(path, text):
    assert escape(path) == text
    assert unescape(text) == path


@pytest.mark.skipif(not shutil.which("rsync"), reason="compares with the real rsync")
@pytest.mark.parametrize("path", [path for path in TABLE if path], ids=repr)
def test_rsync_prints_them_so(tmp_path, path):
    (tmp_path / "s").mkdir()
    open(os.path.join(os.fsencode(tmp_path), b"s", path), "w").close()
    argv = ["rsync", "-rn", "--out-format=%n", f"{tmp_path}/s/", f"{tmp_path}/d/"]
    run = subprocess.run(argv, stdout=subprocess.PIPE, check=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
    printed = run.stdout.rstrip(b"\n").decode().split("\n")[-1]
    assert printed.replace("\t", "\\#011") == escape(path)  # rsync leaves a tab as it is
    assert unescape(printed) == path


@given(st.one_of(st.binary(max_size=40), st.text(alphabet="\\#0123789\n", max_size=20).map(str.encode)))
def test_nothing_is_lost_on_the_way_back(path):
    assert escape(path).isprintable()
    assert unescape(escape(path)) == path


PARTS = st.sampled_from([b"", b".", b"..", b"...", b".a", b"a", b"a.", b"a\0", b"x" * 255, b"x" * 256])


@given(st.lists(PARTS, max_size=4).map(b"/".join))
def test_the_quick_check_refuses_what_the_splitting_refuses(path):
    def refusal(function):
        try:
            function(path)
        except ValueError as error:
            return str(error)
        return None

    assert refusal(check_path) == refusal(components)
