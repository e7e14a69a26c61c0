# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The engine runs from its archive alone, on a Python that has nothing else, and talks to that of another Python."""

from __future__ import annotations

import ast
import base64
import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.memory import Memory
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts import engine as made_here
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts import engine_digest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.engine import pack_engine, packed_engine
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.tools.pythons import find_pythons
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import Pair, settings
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.small_tree import make_tree

REPOSITORY = Path(__file__).resolve().parents[5]


def test_it_holds_what_its_steps_need_and_nothing_else():
    with zipfile.ZipFile(io.BytesIO(pack_engine())) as packed:
        names = set(packed.namelist())
    assert {
        "__main__.py",
        "longhaul/__init__.py",
        "longhaul/_job/main.py",
        "longhaul/_methods/ssh/forced_command.py",
        "longhaul/_snapshot/actions.py",
        "longhaul/_migrate/preflight.py",
    } <= names
    for_modules = ("longhaul/_network", "longhaul/_ssh")
    assert not [name for name in names if name.startswith(for_modules)]
    assert not [name for name in names if not name.endswith(".py")]


def test_it_is_packed_again_only_when_a_file_has_changed(tmp_path, monkeypatch):
    file, packed = tmp_path / "utils/_core/one.py", []
    file.parent.mkdir(parents=True)
    monkeypatch.setattr(made_here, "MODULE_UTILS", tmp_path / "utils")
    monkeypatch.setattr(made_here, "_PARTS", ["_core"])
    monkeypatch.setattr(engine_digest, "Memory", lambda: Memory(str(tmp_path / "memory")))
    monkeypatch.setattr(made_here, "pack_engine", lambda: packed.append(1) or file.read_bytes())

    def digest():
        engine_digest.engine_digest.cache_clear()  # as in another process
        made_here.packed_engine.cache_clear()
        return engine_digest.engine_digest()

    try:
        found = []
        for content in ("one = 1", "one = 2"):  # of the same size, and with the same time
            file.write_text(content)
            os.utime(file, ns=(1, 1))
            found += [digest(), digest(), made_here.packed_engine().digest]
        assert found[:3] == [found[0]] * 3 and found[3:] == [found[3]] * 3 and found[0] != found[3]
        assert len(packed) == 4, "once for each content, and once where the engine itself was wanted"
        (record,) = (tmp_path / "memory").glob("engine-*.json")
        record.write_text("{")
        assert digest() == found[3] and len(packed) == 5
        engine_digest.forget_digest()
        assert digest() == found[3] and len(packed) == 6
    finally:
        engine_digest.engine_digest.cache_clear()
        made_here.packed_engine.cache_clear()


def test_what_only_people_and_type_checkers_read_stays_here_and_no_line_moves():
    """A module in the archive has lost its docstrings and the bodies of type-only blocks, and nothing else."""
    folder = REPOSITORY / "plugins/module_utils"
    lost = comments = 0
    with zipfile.ZipFile(io.BytesIO(pack_engine())) as packed:
        for name in packed.namelist():
            text, original = packed.read(name).decode(), folder / name[len("longhaul/") :]
            if not original.is_file() or original.name == "__init__.py":
                continue
            ours, theirs = ast.parse(original.read_text()), ast.parse(text)
            for one in ours.body:
                if isinstance(one, ast.If) and isinstance(one.test, ast.Name) and one.test.id == "TYPE_CHECKING":
                    lost += 1
                    one.body = [
                        ast.Pass(lineno=one.lineno + 1, end_lineno=one.lineno + 1, col_offset=4, end_col_offset=8)
                    ]
            for one in ast.walk(ours):
                documented = isinstance(one, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(one)
                if documented and isinstance(one.body[0], ast.Expr) and isinstance(one.body[0].value, ast.Constant):
                    one.body[0].value.value = ""
            for one in (*ast.walk(ours), *ast.walk(theirs)):
                one.end_lineno = one.end_col_offset = None  # those of such a block are others
            assert ast.dump(theirs, include_attributes=True) == ast.dump(ours, include_attributes=True), name
            comments += text.count("#")
    assert lost > 10 and comments < 200


def test_its_modules_are_found_without_the_collection(tmp_path):
    engine = tmp_path / "engine.pyz"
    engine.write_bytes(base64.b64decode(packed_engine().argument))
    load = "import longhaul._job.main, longhaul._job.transfer_job, longhaul._job.commands, longhaul._methods.stream"
    code = f"import sys; sys.path.insert(0, {str(engine)!r}); {load}; print(longhaul._job.commands.__file__)"
    said = subprocess.run([sys.executable, "-I", "-c", code], check=True, stdout=subprocess.PIPE, text=True).stdout
    assert said.startswith(str(engine))


def test_a_stream_imports_nothing_that_only_programs_need(tmp_path):
    """What starts programs takes 8 ms of processor time at each end to import, and OpenSSL, for TLS alone, as much."""
    engine = tmp_path / "engine.pyz"
    engine.write_bytes(pack_engine())
    needed = "_job.main _job.transfer_job _methods.stream _engine.sender.stream_sender _engine.receiver.stream_receiver"
    code = (
        f"import sys; sys.path.insert(0, {str(engine)!r})\n"
        f"for name in {needed.split()!r}: __import__('longhaul.' + name)\n"
        "import socket; from longhaul._core.host_name import plain; socket.getaddrinfo(plain('127.0.0.1'), 0)\n"
        "print(*sorted({'subprocess', 'shutil', 'bz2', 'lzma', 'shlex', 'ssl', 'encodings.idna'} & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    assert said.stdout == "\n"


@pytest.fixture(name="two_pythons", scope="module")
def _two_pythons() -> tuple[str, str]:
    """Return the oldest and the newest Python of this machine."""
    found = find_pythons()
    if len(found) < 2:
        pytest.skip(f"cannot run here: there is no other Python than {sorted(found)}")
    return found[min(found)], found[max(found)]


@pytest.mark.often(3)
@pytest.mark.parametrize("source_is", ["older", "newer"])
@pytest.mark.parametrize(
    ("method", "serving", "changes"),
    [
        ("stream", "dest", {"encrypt": True}),
        ("stream", "source", {"encrypt": True, "compress": {"algorithm": "zstd", "level": None}}),
        ("stream", "dest", {"encrypt": False, "checksum": True, "compress": {"algorithm": "zlib", "level": 1}}),
        ("tar_nc", "source", {}),
    ],
    ids=["tls", "packed", "plain", "tar"],
)
def test_two_pythons_talk(tmp_path: Path, two_pythons, method, serving, changes, source_is):
    source, dest, engine = tmp_path / "source", tmp_path / "dest", tmp_path / "engine.pyz"
    engine.write_bytes(pack_engine())
    for folder in (source, dest):
        folder.mkdir()
    make_tree(source)
    for number in range(1200 if method == "stream" else 0):  # other processes at the destination write some of these
        (source / f"small{number}").write_bytes(b"%d" % number)
    large = source / "large"
    large.write_bytes(b"text " * (1 << 20))
    pythons = two_pythons if source_is == "older" else two_pythons[::-1]

    def transfer(**more):
        pair = Pair(tmp_path / "work", source, dest, settings(method, streams=2, **changes, **more), serving)
        pair.engine, pair.pythons = str(engine), dict(zip(("source", "dest"), pythons))
        if method == "stream":
            pair.use_tls()
        outcome = pair.run()
        assert outcome.get("errors") == [] and not outcome["failure"], outcome
        assert differences(source, dest) == []
        assert ("write small files beside" in pair.stderr("dest")) == (method == "stream" and not more)
        return outcome

    assert transfer()["changed"]
    # Changed within, so that the destination tells what it has of it.
    with large.open("r+b") as file:
        file.seek(1 << 20)
        file.write(b"other")
    (source / "none").unlink()
    outcome = transfer(delete=True, max_delete=10)
    assert (outcome["files_created"], outcome["files_updated"], outcome["files_deleted"]) == (0, 1, 1)
