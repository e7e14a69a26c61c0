# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Errors that end a transfer or a session with the peer, or refuse its command."""

from __future__ import annotations


class TransferFailed(Exception):
    """The transfer cannot go on. The text says what was found, why it matters and what to do."""


class PeerUnreachable(TransferFailed):
    """The peer does not answer. Nothing was transferred; the other direction may be open."""


class PeerLost(TransferFailed):
    """The connection to the peer broke for good. A transfer at another time may succeed."""


class TransferPaused(TransferFailed):
    """The transfer was paused for so long that it ended. A rerun resumes it."""


class TransferCancelled(TransferFailed):
    """The transfer ended because transfer_control cancelled it. A rerun resumes it."""


class StagingLeft(TransferFailed):
    """All of the source is in place, but the transfer's own folder at the destination cannot be removed."""


class ProtocolError(Exception):
    """The peer sent what no scp or sftp sends, so the session with it ends. The text says what it was."""


class CommandRefusal(Exception):
    """The peer requested a command that is not part of this transfer. The text is sent to it."""


def staging_left(why: str) -> StagingLeft:
    """Return the failure for a folder that stays; ``why`` says which one, and the reason."""
    return StagingLeft(f"all of the source is in place, but {why}")
