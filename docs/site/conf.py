# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sphinx's configuration of the HTML site; ``make docs`` runs it in a copy of the repository."""

from __future__ import annotations

import zlib
from pathlib import Path

import yaml

_galaxy = yaml.safe_load((Path(__file__).parents[2] / "galaxy.yml").read_text(encoding="utf-8"))

project = f"{_galaxy['namespace']}.{_galaxy['name']}"
author = _galaxy["authors"][0]
copyright = f"2026, {author}"
version = release = str(_galaxy["version"])

extensions = ["myst_parser", "sphinx.ext.intersphinx", "sphinx_antsibull_ext"]
root_doc = "index"
include_patterns = [
    "index.md",
    "README.md",
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/*.md",
    "examples/README.md",
    "reference/**",
    "roles/*/README.md",
]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4  # as on the repository's pages: [a link](page.md#a-heading)
pygments_style = "ansible"
highlight_language = "none"

# What the reference refers to in Ansible's own documentation. This inventory of labels takes the place of Ansible's,
# so that nothing is fetched.
_labels = {
    "action_plugins": "plugins/action.html",
    "callback_plugins": "plugins/callback.html",
    "ansible_configuration_settings": "reference_appendices/config.html",
    "common_return_values": "reference_appendices/common_return_values.html",
}
_inventory = Path(__file__).with_name("ansible.inv")
_inventory.write_bytes(
    b"# Sphinx inventory version 2\n# Project: Ansible\n# Version: \n# zlib-compressed\n"
    + zlib.compress("".join(f"{name} std:label -1 {page} {name}\n" for name, page in _labels.items()).encode())
)
intersphinx_mapping = {"ansible": ("https://docs.ansible.com/ansible/latest/", str(_inventory))}

html_theme = "sphinx_ansible_theme"
html_title = f"{project} {version}"
html_show_sphinx = False
html_theme_options = {"documentation_home_url": _galaxy["documentation"], "vcs_pageview_mode": "", "topbar_links": {}}
html_copy_source = False
html_use_index = False
