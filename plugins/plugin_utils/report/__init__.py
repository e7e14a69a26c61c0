# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reports for people: one self-contained HTML page, which needs no server, no network and no script.

* ``model``: a page as typed data: facts, sections, tables and charts; whoever reports on jobs makes one;
* ``charts``: charts of a page as inline SVG, each with its figures as a table;
* ``page``: a page as HTML; ``template``: its markup and style;
* ``archive``: the file of a report, and those of earlier runs.

Imports ``common``.
"""
