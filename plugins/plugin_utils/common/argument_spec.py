# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Derive an argument spec from a module's documentation, so that the two can never differ."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, TypedDict, cast

import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from .refusal import Refusal

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where PyYAML was built with it
_FRAGMENTS = "ansible_collections.longhaul.fleet.plugins.doc_fragments"
_ROLES = Path(__file__).resolve().parents[3] / "roles"
_COPIED = ("type", "elements", "default", "choices", "required", "no_log", "aliases")


class Option(TypedDict, total=False):
    """An option in an argument spec."""

    type: str
    elements: str
    default: Any
    choices: list[Any]
    required: bool
    no_log: bool
    aliases: list[str]
    options: Spec
    set_by_role: str  # in an option of a job: that a user cannot set it, and why


Spec = dict[str, Option]


class Documented(Option, total=False):
    """An option in the documentation, as far as anybody reads it."""

    description: str | list[str]
    suboptions: dict[str, Documented]
    version_added: str


def spec_from_documentation(documentation: str) -> Spec:
    """Return the argument spec that the YAML of a DOCUMENTATION string describes.

    ``no_log`` is not part of the documentation's format: an option whose name ends in ``password`` has it.
    """
    return _spec(documented_options(documentation))


def validate_options(
    options: Mapping[str, Any], spec: Spec, mutually_exclusive: tuple[tuple[str, ...], ...], what: str
) -> Mapping[str, Any]:
    """Return options with their types and defaults, as Ansible makes those of a task; ``what`` they are, for messages.

    Raises Refusal.
    """
    result = ArgumentSpecValidator(dict(spec), mutually_exclusive=mutually_exclusive).validate(dict(options))
    if result.error_messages:
        raise Refusal(f"{what}: {'; '.join(result.error_messages)}")
    return dict(result.validated_parameters)


@functools.lru_cache(maxsize=None)
def documented_options(documentation: str) -> Mapping[str, Documented]:
    """Return the options of a DOCUMENTATION string, those of the fragments that it names included."""
    parsed = _load(documentation)
    options = {}
    for fragment in parsed.get("extends_documentation_fragment", ()):
        file, _dot, part = fragment.partition("longhaul.fleet.")[2].partition(".")
        found = import_module(f"{_FRAGMENTS}.{file}").ModuleDocFragment
        options.update(_load(getattr(found, (part or "documentation").upper())).get("options", {}))
    return {**options, **parsed["options"]}


@functools.lru_cache(maxsize=None)
def spec_of_role(role: str) -> Spec:
    """Return the argument spec of a role: the variables of all its entry points."""
    parsed = _load((_ROLES / role / "meta/argument_specs.yml").read_text(encoding="utf-8"))["argument_specs"]
    return {name: option for entry in parsed.values() for name, option in entry.get("options", {}).items()}


def returned_names(returned: str) -> list[str]:
    """Return the names of the values that a RETURN string describes."""
    return list(_load(returned))


def _load(text: str) -> Any:
    return yaml.load(text, Loader=_LOADER)  # either is a safe one


def _spec(options: Mapping[str, Documented]) -> Spec:
    spec: Spec = {}
    for name, option in options.items():
        spec[name] = cast(Option, {key: value for key, value in option.items() if key in _COPIED})
        if name.endswith("password"):
            spec[name]["no_log"] = True
        if "suboptions" in option:
            spec[name]["options"] = _spec(option["suboptions"])
    return spec
