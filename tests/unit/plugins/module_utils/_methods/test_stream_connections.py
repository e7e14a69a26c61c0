# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Connections that arrive at a stream's port in another order than they were made."""

from __future__ import annotations

import select
from typing import Any

from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Context
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.connect import ConnectionParameters, connect
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import Pair
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.stream_pairs import Trees, make_pair


def parameters(pair: Pair) -> ConnectionParameters:
    """Return what the driving end would connect with."""
    plan: Any = {**pair.plan, "encrypt": False}
    context = Context(
        side=pair.driving, part="drive", root=b"/", settings=plan, folder="", secrets=pair.secrets["drive"]
    )
    return ConnectionParameters(context)


def test_a_data_connection_may_be_there_before_the_conversation(trees: Trees) -> None:
    pair = make_pair(trees, "dest")
    pair.start(pair.serving)
    try:
        early = connect(parameters(pair), "127.0.0.1", int(pair.peer["port"]), 1)
        assert not select.select([early.socket], [], [], 1)[0], "it was closed"
        late = connect(parameters(pair), "127.0.0.1", int(pair.peer["port"]), 0)  # the conversation, which takes it
        assert select.select([late.socket], [], [], 10)[0]  # it is greeted
        assert not select.select([early.socket], [], [], 1)[0], "it was closed"
        early.socket.close()
        late.socket.close()
    finally:
        pair.stop()
