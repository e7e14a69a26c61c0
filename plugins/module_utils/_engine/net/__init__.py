# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Connections of two hosts, and the session over them.

* ``connect``: how the two ends find each other. ``authenticate``: they prove who they are; ``tls`` encrypts.
* ``pending_connections``: connections before that proof. ``early_connections``: data connections that the driving end
  makes before the session begins.
* ``control_channel``: a connection that carries frames, in ``tls`` the same inside TLS. ``session``: messages over it,
  in threads, with signs of life. ``session_server``: a serving end that holds its session in a thread.
* ``carrier``: what carries contents, as each method implements it.
* ``data_connection``: a connection that carries records. ``pool``: all of those, a thread for each.
* ``pool_scaling``: how many of them pay.
* ``congestion``: which of them get another congestion control, as ``pool_tuner`` sets it.
* ``tcp_info``: what the kernel says of a connection, and is told. ``tcp_stats``: what that says about the line.
* ``ticket_file``: what this end and its peer were told from outside. ``rate_limit``: bytes a second of all threads
  together, as a ticket has it.

It may import ``_engine/wire``, ``_model`` and ``_core``.
"""
