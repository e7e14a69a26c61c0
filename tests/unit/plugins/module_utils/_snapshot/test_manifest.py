# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The manifest as a file: what goes in comes out, damage is found, and memory does not grow with the tree."""

from __future__ import annotations

import io
import os
import tracemalloc

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry import Entry
from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry_codec import ManifestError
from ansible_collections.longhaul.fleet.plugins.module_utils._model.paths import order
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import manifest
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.manifest import (
    About,
    ManifestReader,
    ManifestWriter,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.walk import walk
from hypothesis import given, settings
from hypothesis import strategies as st

ROOT = Entry(b"", "d", 0o755, 0, 0, 0, 10**18, 0, 1, 2, 1, 0, 8)
FILE = Entry(b"x", "f", 0o644, 0, 0, 4, 10**18, 0, 1, 3, 1, 0, 8)
parts = st.binary(min_size=1, max_size=12).filter(lambda n: b"/" not in n and b"\0" not in n and n not in (b".", b".."))
paths = st.lists(parts, min_size=1, max_size=4).map(b"/".join)


def written(found, totals=None, algorithm="sha256"):
    file = io.BytesIO()
    writer = ManifestWriter(file, About(algorithm, "h", "j"))
    for entry, content in found:
        writer.add(entry, content)
    writer.finish(totals or {"entries": len(found)})
    return file.getvalue()


def read(data):
    reader = ManifestReader(io.BytesIO(data))
    records = [(record.entry, record.content) for record in reader.records()]
    assert ManifestReader(io.BytesIO(data)).verify() == reader.totals
    return reader, records


@given(st.dictionaries(paths, st.one_of(st.just(b""), st.binary(min_size=32, max_size=32)), max_size=20))
def test_what_goes_in_comes_out(found):
    wanted = [(ROOT, b"")] + [(FILE._replace(path=path), found[path]) for path in sorted(found, key=order)]
    reader, records = read(written(wanted, {"entries": 7}))
    assert records == wanted
    assert reader.totals == {"entries": 7}
    assert reader.about == About("sha256", "h", "j")


def test_the_order_is_that_of_a_walk(tmp_path):
    for path in ("a/x/y", "a!", "a.txt", "a0", "a/b", "b", "a/x.y"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    found = [entry.path for entry in walk(os.fsencode(tmp_path), on_error=lambda *what: pytest.fail(str(what)))]
    assert found == sorted(found, key=order)


SAMPLE = written([(ROOT, b"")] + [(FILE._replace(path=b"%03d" % number), bytes(range(32))) for number in range(50)])


@settings(max_examples=200)
@given(st.integers(0, len(SAMPLE) * 8 - 1))
def test_every_flipped_bit_is_found(bit):
    damaged = bytearray(SAMPLE)
    damaged[bit // 8] ^= 1 << bit % 8
    with pytest.raises(ManifestError):
        read(bytes(damaged))
    with pytest.raises(ManifestError):
        ManifestReader(io.BytesIO(damaged)).verify()


@given(st.integers(0, len(SAMPLE) - 1))
def test_a_manifest_that_is_cut_short_is_found(length):
    with pytest.raises(ManifestError):
        read(SAMPLE[:length])


def test_what_is_behind_the_end_and_frames_that_are_left_out_are_found():
    with pytest.raises(ManifestError, match="behind"):
        read(SAMPLE + b"\0")
    big = [(ROOT, b"")] + [(FILE._replace(path=b"%06d" % number), b"") for number in range(40000)]
    data = written(big)
    starts = [at for at in range(len(data)) if data[at : at + 1] == b"R"]
    # Of what looks like heads of frames, those that are: each leads to the next.
    frames = [at for at in starts if 0 < int.from_bytes(data[at + 1 : at + 5], "little") < 1 << 22]
    ends = [at + 25 + int.from_bytes(data[at + 5 : at + 9], "little") for at in frames]
    chain = [(at, end) for at, end in zip(frames, ends) if end in frames or data[end : end + 1] == b"E"]
    assert len(chain) >= 2
    at, end = chain[0]
    for broken in (data[:at] + data[end:], data[:end] + data[at:end] + data[end:]):
        with pytest.raises(ManifestError, match="check"):
            ManifestReader(io.BytesIO(broken)).verify()


@pytest.mark.parametrize(
    "found, problem",
    [
        ([(FILE, b"")], "order"),
        ([(ROOT, b""), (ROOT, b"")], "order"),
        ([(ROOT, b""), (FILE, b""), (FILE, b"")], "order"),
        ([(ROOT, b""), (FILE._replace(path=b"b"), b""), (FILE._replace(path=b"a"), b"")], "order"),
        ([(ROOT, b""), (FILE, b"short")], "hashes"),
        ([], "no records"),
    ],
)
def test_records_that_no_walk_gives_are_refused(found, problem):
    with pytest.raises(ManifestError, match=problem):
        list(ManifestReader(io.BytesIO(written(found))).records())


@pytest.mark.parametrize(
    "data", [b"", b"LHSNAP2\n", b"LHSNAP1\n", b"LHSNAP1\nR" + bytes(24), b"LHSNAP1\nH" + b"\xff" * 24]
)
def test_what_is_no_manifest_is_refused(data):
    with pytest.raises(ManifestError):
        ManifestReader(io.BytesIO(data))


def test_an_unknown_algorithm_is_refused():
    with pytest.raises(ManifestError, match="algorithm"):
        ManifestReader(io.BytesIO(written([(ROOT, b"")], algorithm="md5")))


@pytest.mark.newest
def test_memory_does_not_grow_with_the_number_of_entries(tmp_path, monkeypatch):
    monkeypatch.setattr(manifest, "_FULL", 1 << 14)  # small frames, so that a small tree has many

    def peak(count):
        tracemalloc.start()
        with open(tmp_path / "manifest", "wb", buffering=1 << 12) as file:
            writer = ManifestWriter(file, About("sha256", "", ""))
            writer.add(ROOT, b"")
            for number in range(count):
                writer.add(FILE._replace(path=b"some/folder/%09d" % number), bytes(32))
            writer.finish({})
        with open(tmp_path / "manifest", "rb", buffering=1 << 12) as file:
            assert sum(1 for _record in ManifestReader(file).records()) == count + 1
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    # What other threads of this process allocate meanwhile only adds.
    many, few = (min(peak(count) for _try in range(2)) for count in (4000, 1000))
    assert many < 1.3 * few
