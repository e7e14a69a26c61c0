# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What stream leaves to rsync is planned before anything runs, or stays with stream."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.refusal import Refusal
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.rsync_fallback import make_plan, plan_by_rsync
from ansible_collections.longhaul.fleet.tests.unit.plugins.plugin_utils.transfer.test_plan import (
    end,
    options,
    without,
)


def planned(from_end=None, to_end=None, **given):
    given = options(**{"delta": "rsync", **given})
    source, dest = from_end or end("source"), to_end or end("dest")
    return make_plan(given, source, dest, check=False), (given, source, dest)


def test_the_run_of_rsync_sees_these_files_and_deletes_nothing():
    made, known = planned(delete=True, max_delete=3, port=5000, compress="zlib", exclude=["*.tmp"], connect="pull")
    assert (made.choice.method, made.settings["delta"]) == ("stream", "rsync")
    assert not [text for text in made.warnings if "delta" in text]
    found = plan_by_rsync(made, *known, ["folder/image"])
    assert (found.choice.method, found.transfer_id, found.driver) == ("rsync", made.transfer_id, "dest")
    assert found.settings["rules"] == ["+ /folder", "+ /folder/image", "- *"]
    assert not found.settings["delete"] and found.settings["delta"] == "auto"
    assert found.serve["port"] == 22  # not stream's own
    assert found.settings["preserve"] == made.settings["preserve"]


@pytest.mark.parametrize("host", ["source", "dest"])
def test_without_rsync_stream_keeps_them_and_says_so(host):
    ends = {host: without("rsync", side=host)}
    made, _known = planned(ends.get("source"), ends.get("dest"))
    assert (made.choice.method, made.settings["delta"]) == ("stream", "blocks")
    (warning,) = [text for text in made.warnings if "delta" in text]
    assert f"{host} has no rsync" in warning


@pytest.mark.parametrize("delta", ["blocks", "rsync"])
@pytest.mark.parametrize("method", ["rsync", "tar_nc"])
def test_other_methods_do_not_know_them(delta, method):
    with pytest.raises(Refusal, match="delta is set.*name method stream"):
        planned(method=method, delta=delta)


@pytest.mark.parametrize("delta", ["auto", "none"])
@pytest.mark.parametrize("method", ["stream", "rsync", "sftp"])
def test_every_method_knows_these(delta, method):
    assert planned(method=method, delta=delta)[0].settings["delta"] == delta


def test_auto_takes_stream_for_them_or_nothing():
    assert planned()[0].choice.method == "stream"
    with pytest.raises(Refusal, match="no method fits"):
        planned(to_end=end("dest", tls13=False))
