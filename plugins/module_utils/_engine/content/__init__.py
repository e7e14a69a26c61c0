# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The contents of files on their way: packing, hashing, holes.

* ``bundles``: small files, many to a frame.
* ``compression``: whether it pays, and pieces of large files. ``zstd``: the binding of its library.
* ``delta``: what changed within a large file, and the quickest hash for that.
* ``sparse``: files with holes. ``clone``: files that share their space on the disk.

It may import ``_engine/wire``, ``_model`` and ``_core``.
"""
