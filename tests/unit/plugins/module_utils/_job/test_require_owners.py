# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A file system that keeps no owners is found out before anything is sent.

NFS and CIFS are not in every kernel, so a FUSE file system refuses chown as their servers do.
"""

from __future__ import annotations

import contextlib
import errno
import os

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Context
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._job.transfer_job import require_owners
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.staging import open_staging
from ansible_collections.longhaul.fleet.tests.support import faulty
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import ALL, settings

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="cannot run here: only root can give files away"),
    pytest.mark.skipif(bool(faulty.why_not()), reason=f"cannot run here: {faulty.why_not()}"),
]


@pytest.fixture(name="served")
def a_folder_behind(tmp_path):
    """A folder, and where it is to be mounted."""
    behind, shown = tmp_path / "behind", tmp_path / "shown"
    behind.mkdir()
    shown.mkdir()
    return behind, shown


@contextlib.contextmanager
def context_for(root, tmp_path, preserve=tuple(ALL)):
    context = Context("dest", "drive", os.fsencode(root), settings("stream", preserve=list(preserve)), str(tmp_path))
    with contextlib.closing(open_staging(context)):
        yield context


def test_root_squash_is_refused_before_anything_is_written(served, tmp_path):
    behind, shown = served
    refusing = faulty.fault("chown", number=errno.EPERM)
    with faulty.mounted(behind, shown, refusing), context_for(shown, tmp_path) as context:
        with pytest.raises(TransferFailed, match=r"does not keep owners \(chown: Operation not permitted\).*preserve"):
            require_owners(context)
        assert os.listdir(os.path.join(context.staging, b"tmp")) == []


def test_without_owners_in_preserve_it_is_of_no_interest(served, tmp_path):
    behind, shown = served
    refusing, kept = faulty.fault("chown", number=errno.EPERM), ["permissions", "times"]
    with faulty.mounted(behind, shown, refusing), context_for(shown, tmp_path, kept) as context:
        require_owners(context)


def test_a_file_system_that_keeps_owners_passes_and_nothing_stays(served, tmp_path):
    behind, shown = served
    with faulty.mounted(behind, shown), context_for(shown, tmp_path) as context:
        require_owners(context)
        assert os.listdir(os.path.join(context.staging, b"tmp")) == []


def test_a_chown_without_effect_counts_as_refused(served, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fchown", lambda _fd, _uid, _gid: None)
    with context_for(served[0], tmp_path) as context, pytest.raises(TransferFailed, match="has no effect"):
        require_owners(context)
