# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Paths of files that may have been moved, as a manifest has them: when it is read, and what is left out."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry import LEAST_SOUGHT, Entry
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.manifest import About, ManifestWriter
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.moved_files import MovedFiles

FOLDER = Entry(b"", "d", 0o755, 0, 0, 0, 1, 0, 1, 2, 1, 0, 8)
COUNT = 20_000  # more than one block has


@pytest.fixture(name="manifest", scope="module")
def _manifest(tmp_path_factory):
    """Return a manifest with files of every size up to 20,000 bytes; the time of each is twice its size."""
    path = tmp_path_factory.mktemp("manifest") / "manifest"
    with path.open("wb") as file:
        writer = ManifestWriter(file, About("blake2b", "h", "j"))
        writer.add(FOLDER, b"")
        writer.add(FOLDER._replace(path=b"d"), b"")
        for size in range(COUNT):
            mtime_ns = -(10**19) if size == 300 else 2 * size  # one that needs a wider record
            entry = Entry(b"d/%06d" % size, "f", 0o644, 0, 0, size, mtime_ns, 0, 1, 3 + size, 1, 0, 8)
            writer.add(entry, bytes(32))
        writer.finish({"entries": COUNT + 2})
    return path


@pytest.fixture(name="file")
def _file(manifest):
    with manifest.open("rb") as file:
        yield file


def test_it_finds_by_time_and_by_name(file):
    moved = MovedFiles(file.fileno())
    for size in (LEAST_SOUGHT, 301, COUNT // 2, COUNT - 1, COUNT // 2):
        assert list(moved.find(size, 2 * size, b"x", True)) in ([], [b"d/%06d" % size])
    for size in (LEAST_SOUGHT, 301, COUNT - 1):
        assert list(moved.find(size, 2 * size, b"x", False)) == [b"d/%06d" % size]
        assert list(moved.find(size, 1, b"%06d" % size, False)) == [b"d/%06d" % size]
    assert list(moved.find(300, -(10**19), b"x", False)) == [b"d/000300"]
    assert list(moved.find(LEAST_SOUGHT - 1, 2 * (LEAST_SOUGHT - 1), b"x", True)) == []
    assert list(moved.find(COUNT, 2 * COUNT, b"x", True)) == []


def test_it_reads_the_manifest_when_that_costs_less_than_to_send(file, manifest):
    moved = MovedFiles(file.fileno())
    size = manifest.stat().st_size // 64
    assert list(moved.find(1000, 2000, b"x", False)) == []
    for _file_number in range(size // 1000):
        assert list(moved.find(1000, 2000, b"x", True)) == []
    assert list(moved.find(1000, 2000, b"x", True)) == [b"d/001000"]
    assert list(moved.find(1000, 2000, b"x", False)) == [b"d/001000"]


def test_paths_are_those_below_the_part(file):
    assert list(MovedFiles(file.fileno(), "d").find(COUNT - 1, 2 * COUNT - 2, b"x", True)) == [b"%06d" % (COUNT - 1)]
    assert list(MovedFiles(file.fileno(), "other").find(COUNT - 1, 2 * COUNT - 2, b"x", True)) == []


def test_of_a_large_tree_it_has_the_larger_files(file):
    moved = MovedFiles(file.fileno(), most_files=10_000)
    assert list(moved.find(COUNT - 1, 2 * COUNT - 2, b"x", True)) == [b"d/%06d" % (COUNT - 1)]
    assert list(moved.find(1000, 2000, b"x", True)) == []


@pytest.mark.parametrize("at", [3, 200, -300])
def test_a_damaged_manifest_has_no_files(manifest, tmp_path, at):
    data = bytearray(manifest.read_bytes())
    data[at] ^= 1
    (tmp_path / "damaged").write_bytes(data)
    with (tmp_path / "damaged").open("rb") as file:
        moved = MovedFiles(file.fileno())
        assert list(moved.find(COUNT - 1, 2 * COUNT - 2, b"x", True)) == []
        assert list(moved.find(1000, 2000, b"x", True)) == []


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/r/web1/data/2026-11-21T120000Z/data", (1, "")),
        ("/r/web1/data/aside-2026-11-21T120000Z/data", (1, "")),
        ("/r/web1/data/.removing-2026-11-21T120000Z/data", None),
        ("/r/web1/data/2026-11-21T120000Z/data/etc", (2, "etc")),
        ("/r/web1/data/2026-11-21T120000Z/data/etc/below", None),
        ("/srv/data", None),
    ],
)
def test_a_tree_of_a_snapshot_is_known_by_its_path(path, found):
    assert names.part_of(path) == found
    assert names.manifest_of(path) == (found and (found[0], "manifest"))
