# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter rules of a task, and rules that mean something else to rsync than they would here. Pure."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ansible_collections.longhaul.fleet.plugins.module_utils._model.filters import Filters, anchored_pattern

from ..common.refusal import Refusal
from .roots import Roots, child_name


def filter_rules(options: Mapping[str, Any]) -> list[str]:
    """Return the rules in the order in which they count: ``filter``, then ``include``, then ``exclude``."""
    rules = list(options["filter"] or [])
    rules += [f"+ {pattern}" for pattern in options["include"] or []]
    rules += [f"- {pattern}" for pattern in options["exclude"] or []]
    return rules


def refuse_old_prefixes(options: Mapping[str, Any]) -> None:
    """Refuse patterns that are rules of their own in a list of patterns for rsync. Raises Refusal."""
    for option, sign in (("include", "+"), ("exclude", "-")):
        for pattern in options[option] or ():
            if pattern == "!" or pattern.startswith(("+ ", "- ")):
                raise Refusal(
                    f"{option} has {pattern!r}: in rsync's lists that is a rule, and not a pattern. Write the rules in "
                    f"their order into filter. Where it is meant as a pattern, write '{sign} {pattern}' into filter"
                )


def refuse_misread_rules(src: str, dest: str, roots: Roots, rules: list[str]) -> None:
    """Refuse rules that would match nothing, or leave nothing to transfer. Raises Refusal."""
    if roots.only is not None:
        if not Filters.parse(rules).allows(os.fsencode(roots.only), False):
            raise Refusal(
                f"the rules (filter, include, exclude) leave out src {src}, so there is nothing to transfer: change "
                "them, or name another src"
            )
        return
    name = child_name(src)
    for rule in rules:
        pattern = anchored_pattern(rule)
        if name and (pattern == f"/{name}" or pattern.startswith(f"/{name}/")):
            # It would match nothing: what it was to protect would be sent, and deleted at the destination.
            below = pattern[len(name) + 1 :]
            instead = f"write {below} instead of {pattern}" if below.strip("/*") else "leave it out"
            raise Refusal(
                f"the rule {rule!r} begins with the name of src, as rsync wants it where src has no slash at its end. "
                f"Here rules are relative to src itself: {instead}. Where {pattern} inside of src is meant, set src: "
                f"{src}/ and dest: {dest.rstrip('/')}/{name}, which brings the same to the same place"
            )
