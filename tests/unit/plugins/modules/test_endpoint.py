# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which kept engine is run (one of this user, whole, that no other user can have written), and by which Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._job import bytecode_cache
from ansible_collections.longhaul.fleet.plugins.modules import endpoint
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.engine import pack_engine


@pytest.fixture(name="kept")
def _kept(tmp_path: Path) -> Path:
    archive, kept = tmp_path / "engine.pyz", tmp_path / "longhaul/engine-x.pyz"
    archive.write_bytes(pack_engine())
    bytecode_cache.keep(str(archive), str(kept))
    return kept


def test_what_was_kept_is_used_and_marked_as_in_use(kept: Path) -> None:
    os.utime(kept, (1, 1))
    assert endpoint.is_kept(str(kept))
    assert kept.stat().st_mtime > 1
    assert not endpoint.is_kept(str(kept.with_name("engine-y.pyz")))


@pytest.mark.parametrize("at", [0, 100, -65, -1], ids=["start", "code", "archive", "digest"])
def test_a_damaged_one_is_not_used(kept: Path, at: int) -> None:
    content = bytearray(kept.read_bytes())
    content[at] ^= 1
    kept.write_bytes(content)
    assert not endpoint.is_kept(str(kept))


@pytest.mark.parametrize("left", [0, 10, 64, 1000])
def test_a_piece_of_it_is_not_used(kept: Path, left: int) -> None:
    kept.write_bytes(kept.read_bytes()[:left])
    assert not endpoint.is_kept(str(kept))


@pytest.mark.parametrize(
    "harm",
    ["file for the group", "file for all", "folder for the group", "folder for all", "link", "linked folder", "fifo"],
)
def test_what_another_user_can_have_written_is_not_used(kept: Path, tmp_path: Path, harm: str) -> None:
    folder = kept.parent
    if harm.startswith("file"):
        kept.chmod(0o620 if "group" in harm else 0o602)
    elif harm.startswith("folder"):
        folder.chmod(0o720 if "group" in harm else 0o702)
    elif harm == "link":
        kept.rename(tmp_path / "planted")
        kept.symlink_to(tmp_path / "planted")
    elif harm == "linked folder":
        folder.rename(tmp_path / "elsewhere")
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        kept.unlink()
        os.mkfifo(kept)
    assert not endpoint.is_kept(str(kept))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("of", ["file", "folder"])
def test_what_belongs_to_another_user_is_not_used(kept: Path, of: str) -> None:
    os.chown(kept if of == "file" else kept.parent, 12345, -1)
    assert not endpoint.is_kept(str(kept))


COMMANDS = """
import os
from collections import namedtuple
class StateError(Exception): pass
StepContext = namedtuple("StepContext", "secrets archive")
def run_steps(steps, given):
    if steps[0].get("fails"):
        raise StateError("no " + steps[0]["path"])
    return [os.fsencode(step["path"]).hex() + given.secrets["key"] for step in steps]
"""


class Module:
    """A module as far as main uses one."""

    tmpdir = ""

    def __init__(self, steps: list[dict[str, object]]) -> None:
        self.params = {"steps": steps, "secrets": {"key": "s"}, "digest": "0" * 56, "engine": None}
        self.said: list[Any] = []

    def _end(self, **told: object) -> None:
        self.said.append(told)
        raise SystemExit

    exit_json = fail_json = _end

    @staticmethod
    def run_command(argv: list[str], data: str, cwd: str) -> tuple[int, str, str]:
        """Run a program, and return its exit code and what it printed."""
        done = subprocess.run(argv, input=data, capture_output=True, text=True, check=False, cwd=cwd)
        return done.returncode, done.stdout, done.stderr


@pytest.fixture(name="no_engine")
def _no_engine():
    """Take the package of the engine out of this process, before the test and after it."""
    _forget_engine()
    yield
    _forget_engine()


def _forget_engine() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "longhaul"]:
        del sys.modules[name]


@pytest.mark.parametrize("encoding", ["utf-8", "iso8859-1"])
@pytest.mark.usefixtures("no_engine")
def test_names_are_utf8_whatever_the_locale_of_the_host_says(monkeypatch, tmp_path: Path, encoding: str) -> None:
    archive = tmp_path / "engine"
    (archive / "longhaul/_job").mkdir(parents=True)
    (archive / "longhaul/_job/commands.py").write_text(COMMANDS)
    for name, value in {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}.items():
        monkeypatch.setenv(name, value)  # in which a new Python takes names for ASCII
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(endpoint, "kept_name", lambda digest: str(archive))
    monkeypatch.setattr(endpoint, "is_kept", lambda path: True)
    monkeypatch.setattr(endpoint, "sys", SimpleNamespace(**vars(sys)))
    endpoint.sys.getfilesystemencoding = lambda: encoding
    for step in ({"path": "B\u00fccher"}, {"path": "B\u00fccher", "fails": True}):
        module = Module([step])
        monkeypatch.setattr(endpoint, "AnsibleModule", lambda module=module, **spec: module)
        with pytest.raises(SystemExit):
            endpoint.main()
        expected = {"msg": "no B\u00fccher"} if "fails" in step else {"results": ["42c3bc63686572s"]}
        assert json.loads(json.dumps(module.said[0])).items() >= expected.items()
