# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The error that ends a session with a peer's scp or sftp."""


class ProtocolError(Exception):
    """The peer sent what no such program sends. The text says what it was."""
