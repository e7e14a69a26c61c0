# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The specification of every role holds: for its defaults, for its files, and for Ansible's own validator."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

ROLES = Path(__file__).resolve().parents[3] / "roles"
SHARED = {"longhaul_output", "longhaul_progress_file"}  # of several roles, whose defaults lack them
NAMES = sorted(path.parents[1].name for path in ROLES.glob("*/meta/argument_specs.yml"))
PYTHON_TYPES = {
    "str": str,
    "path": str,
    "int": int,
    "bool": bool,
    "list": list,
    "dict": dict,
    "float": (float, int),
    "raw": object,
}
# What an option may say, as in ansible-core's documentation of role argument specifications.
KEYS = {"type", "elements", "default", "required", "choices", "description", "options", "no_log", "version_added"}
RELATIONS = {
    "mutually_exclusive",
    "required_together",
    "required_one_of",
    "required_if",
    "required_by",
    "apply_defaults",
}


def load(role: str, path: str):
    file = ROLES / role / path
    return (yaml.safe_load(file.read_text()) if file.exists() else None) or {}


def entry_points(role: str) -> dict:
    return load(role, "meta/argument_specs.yml")["argument_specs"]


def options_of(role: str, entry: str | None = None) -> dict:
    """Return the options of an entry point, or of all."""
    points = entry_points(role)
    chosen = points.values() if entry is None else [points[entry]]
    return {name: option for point in chosen for name, option in point.get("options", {}).items()}


def every_option(options: dict, prefix: str = ""):
    for name, option in options.items():
        yield prefix + name, option
        yield from every_option(option.get("options", {}), f"{prefix}{name}.")


def every_option_of(role: str):
    for entry in entry_points(role):
        yield from every_option(options_of(role, entry))


def cases() -> list:
    return [(role, entry) for role in NAMES for entry in entry_points(role)]


def test_every_role_has_a_specification():
    assert sorted(path.name for path in ROLES.iterdir() if (path / "tasks").is_dir()) == NAMES


@pytest.mark.parametrize("role", NAMES)
def test_every_default_is_documented_and_every_documented_default_is_one(role):
    defaults = load(role, "defaults/main.yml")
    documented = set(options_of(role))
    assert set(defaults) - documented == set(), "in defaults, and in no specification"
    optional = {name for name, option in options_of(role).items() if not option.get("required")}
    assert optional - set(defaults) == optional & SHARED, "in the specification, and not in defaults"


@pytest.mark.parametrize("role", NAMES)
def test_variables_of_several_roles_belong_to_the_main_entry_point(role):
    assert options_of(role).keys() & SHARED <= options_of(role, "main").keys()


@pytest.mark.parametrize("role, entry", cases())
def test_the_defaults_are_the_same_in_both_places(role, entry):
    defaults = load(role, "defaults/main.yml")
    for name, option in options_of(role, entry).items():
        if name not in defaults:
            continue
        documented = option.get("default")
        assert (type(documented), documented) == (type(defaults[name]), defaults[name]), name


@pytest.mark.parametrize("role", NAMES)
def test_the_type_of_every_default_is_the_one_that_is_documented(role):
    for name, option in every_option_of(role):
        default = option.get("default")
        if default is None:
            continue
        if isinstance(default, str) and "{{" in default:
            continue  # decided when it is used
        assert isinstance(default, PYTHON_TYPES[option["type"]]), name
        assert option["type"] == "bool" or not isinstance(default, bool), name
        for entry in default if option["type"] == "list" else []:
            assert isinstance(entry, PYTHON_TYPES[option["elements"]]), name


@pytest.mark.parametrize("role", NAMES)
def test_every_option_is_complete_and_says_nothing_that_ansible_does_not_know(role):
    for name, option in every_option_of(role):
        assert option.get("description"), name
        assert option.get("type") in PYTHON_TYPES, name
        assert ("elements" in option) == (option["type"] == "list"), name
        assert set(option) <= KEYS | RELATIONS, name
        assert not (option.get("required") and "default" in option), name
        if "options" in option:
            is_checked_by_role = name.endswith("_jobs") and option.get("elements") == "raw"
            assert option["type"] == "dict" or option.get("elements") == "dict" or is_checked_by_role, name
        if "choices" in option and "default" in option:
            chosen = option["default"] if option["type"] == "list" else [option["default"]]
            assert set(chosen) <= set(option["choices"]), name


@pytest.mark.parametrize("role", NAMES)
def test_what_may_hold_a_secret_is_never_logged(role):
    for name, option in every_option_of(role):
        # A list of dicts holds it in one of its own options, which is looked at by itself.
        if re.search(r"(password|secret|passphrase)s?$", name) and option["type"] != "bool" and "options" not in option:
            assert option.get("no_log") is True, name


@pytest.mark.parametrize("role", NAMES)
def test_ansible_itself_accepts_the_defaults(role):
    defaults = load(role, "defaults/main.yml")
    given = {name: value for name, value in defaults.items() if value is not None and "{{" not in str(value)}
    options = {name: option for name, option in options_of(role).items() if not option.get("required")}
    validator = ArgumentSpecValidator(options)
    assert validator.validate({name: value for name, value in given.items() if name in options}).error_messages == []


def texts(role: str):
    """Yield all that a role runs, its specification left out."""
    for folder in ("tasks", "handlers", "templates", "vars"):
        for path in sorted((ROLES / role / folder).rglob("*")):
            if path.is_file():
                yield path.relative_to(ROLES / role), path.read_text()


@pytest.mark.parametrize("role", NAMES)
def test_every_documented_variable_is_used(role):
    code = "".join(text for _path, text in texts(role))
    unused = [name for name in options_of(role) if not re.search(rf"\b{name}\b", code)]
    # Migrate takes some of its variables by a name that it puts together.
    assert [name for name in unused if not _composed(name, code)] == []


def _composed(name: str, code: str) -> bool:
    role, _underscore, rest = name.partition("_")
    return f"'{role}_' ~" in code and rest in code


@pytest.mark.parametrize("role", NAMES)
def test_private_variables_begin_with_the_role_and_public_ones_do_too(role):
    assert all(name.startswith(f"{role}_") or name in SHARED for name in load(role, "defaults/main.yml"))
    for path in sorted((ROLES / role / "vars").glob("*.yml")):
        assert all(name.startswith(f"__{role}_") for name in load(role, f"vars/{path.name}")), path.name


@pytest.mark.parametrize("role", NAMES)
def test_a_switch_for_what_the_role_manages_is_named_after_it(role):
    for name in load(role, "defaults/main.yml"):
        thing = name.rpartition("_")[2]
        assert "_install_" not in name, name
        assert thing not in ("packages", "service", "firewall", "selinux") or name == f"{role}_manage_{thing}"


@pytest.mark.parametrize("role", NAMES)
def test_every_entry_point_has_its_tasks(role):
    for entry, specification in entry_points(role).items():
        assert (ROLES / role / "tasks" / f"{entry}.yml").exists(), entry
        assert specification.get("short_description"), entry


@pytest.mark.parametrize("role", NAMES)
def test_the_readme_names_every_variable(role):
    text = (ROLES / role / "README.md").read_text()
    assert [name for name in options_of(role) if f"`{name}`" not in text] == []
