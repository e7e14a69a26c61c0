# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is known of a backup after a run that did not get through."""

from __future__ import annotations

from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup.record import make_record

RUN = {"id": "web/data", "host": "web", "name": "data", "repository": {"host": "vault", "path": "/b"}}


def record(said, before=None, failures=()):
    times = {"at": "2026-01-01T00:00:00Z", "ended": "2026-01-01T00:01:00Z"}
    return make_record(RUN, **times, failures=failures, notes=[], said=said, transfers=[], before=before)


def test_a_run_that_failed_keeps_the_size_of_the_snapshot_before():
    good = record({"finish": {"name": "2026", "figures": {"bytes": 5, "new_bytes": 1}}})
    failed = record({}, before=good, failures=[{"step": "transfer", "reason": "no space"}])
    assert (good["size"], failed["size"], failed["figures"]) == (5, 5, {})
    assert record({}, before=failed)["size"] == 5
    assert record({}, before={"figures": {"bytes": 7}})["size"] == 7  # as an older version wrote it
    assert record({})["size"] is None
