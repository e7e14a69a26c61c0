# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Derive an argument spec from a module's documentation, so that the two can never differ."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import yaml

_FRAGMENTS = "ansible_collections.longhaul.fleet.plugins.doc_fragments"
_COPIED = ("type", "elements", "default", "choices", "required", "no_log", "aliases")


def spec_from_documentation(documentation: str) -> dict[str, dict[str, Any]]:
    """Give the argument spec that the YAML of a DOCUMENTATION string describes.

    ``no_log`` is not part of the documentation's format: an option whose name ends in ``password`` has it.
    """
    return _spec(documented_options(documentation))


def documented_options(documentation: str) -> dict[str, dict[str, Any]]:
    """Return the options of a DOCUMENTATION string, those of the fragments that it names included."""
    parsed = yaml.safe_load(documentation)
    options = {}
    for fragment in parsed.get("extends_documentation_fragment", ()):
        file, _dot, part = fragment.partition("longhaul.fleet.")[2].partition(".")
        found = import_module(f"{_FRAGMENTS}.{file}").ModuleDocFragment
        options.update(yaml.safe_load(getattr(found, (part or "documentation").upper())).get("options", {}))
    return {**options, **parsed["options"]}


def _spec(options: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    spec = {}
    for name, option in options.items():
        spec[name] = {key: option[key] for key in _COPIED if key in option}
        if name.endswith("password"):
            spec[name]["no_log"] = True
        if "suboptions" in option:
            spec[name]["options"] = _spec(option["suboptions"])
    return spec
