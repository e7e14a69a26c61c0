# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The internal filter of a role knows each question that roles and playbooks ask, and says so where it does not."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import pytest
import yaml
from ansible.errors import AnsibleFilterError
from ansible_collections.longhaul.fleet.plugins.plugin_utils.role_logic import find_answer
from jinja2 import nodes

ROOT = Path(__file__).resolve().parents[4]
ROOT_PACKAGE = "ansible_collections.longhaul.fleet"
PLUGINS = f"{ROOT_PACKAGE}.plugins.filter"
OURS = "longhaul.fleet."
FILTERS = {path.stem: importlib.import_module(f"{PLUGINS}.{path.stem}") for path in ROOT.glob("plugins/filter/*.py")}
LOGIC = sorted(name for name in FILTERS if name.endswith("_logic"))
OF_FILES = ("roles/*/*/*.yml", "roles/*/templates/*", "playbooks/*.yml", "extensions/molecule/*/*.yml")


class Use(NamedTuple):
    """A filter of this collection in a template: where, which, the question, and the options, None if not named."""

    path: str
    name: str
    question: str | None
    options: tuple[str, ...] | None


def texts_of(data: Any) -> Iterator[str]:
    """Yield every text in the data of a YAML file."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, (list, dict)):
        for one in data if isinstance(data, list) else [*data, *data.values()]:
            yield from texts_of(one)


def uses_in(path: str, text: str) -> Iterator[Use]:
    """Yield the filters of this collection in a template, as jinja2 itself reads it."""
    if "|" not in text or OURS not in text:
        return
    # A condition (when, that) is an expression without braces.
    tree = jinja2.Environment().parse(text if "{{" in text else f"{{{{ {text} }}}}")
    for node in tree.find_all(nodes.Filter):
        if node.name == "map" and node.args and isinstance(node.args[0], nodes.Const):
            name, arguments = str(node.args[0].value), node.args[1:]
        else:
            name, arguments = node.name, node.args
        if name.startswith(OURS):
            first = arguments[0].value if arguments and isinstance(arguments[0], nodes.Const) else None
            options = None if len(arguments) > 1 or node.dyn_kwargs else tuple(one.key for one in node.kwargs)
            yield Use(path, name[len(OURS) :], first, options)


def find_uses() -> list[Use]:
    """Return the uses of this collection's filters in roles, playbooks and scenarios."""
    found = []
    for pattern in OF_FILES:
        for path in sorted(ROOT.glob(pattern)):
            text, name = path.read_text(), str(path.relative_to(ROOT))
            data = [text] if path.parent.name == "templates" else texts_of(list(yaml.safe_load_all(text)))
            found += [use for one in data for use in uses_in(name, one)]
    return found


USES = find_uses()


def test_each_use_is_found():
    """Nothing that names a filter of ours is overlooked: the parser finds what a plain search finds."""
    for pattern in OF_FILES:
        for path in ROOT.glob(pattern):
            named = {name for name in FILTERS if f"{OURS}{name}" in path.read_text()}
            assert named == {use.name for use in USES if use.path == str(path.relative_to(ROOT))}, path


def test_each_filter_is_there():
    assert {use.name for use in USES} <= set(FILTERS)


@pytest.mark.parametrize(
    "use", [use for use in USES if use.name in LOGIC], ids=lambda use: f"{use.path}-{use.question}"
)
def test_a_question_that_is_asked_is_known(use):
    questions = FILTERS[use.name].QUESTIONS
    assert use.question in questions, f"{use.path} asks {use.name} {use.question}"
    assert use.options is not None, f"{use.path}: options of {use.name} are named"
    known = options_of(questions[use.question])
    assert set(use.options) <= set(known), use
    needed = {name for name, parameter in known.items() if parameter.default is inspect.Parameter.empty}
    assert needed <= set(use.options), use


@pytest.mark.parametrize("name", LOGIC)
def test_no_question_is_left_that_nobody_asks(name):
    assert set(FILTERS[name].QUESTIONS) == {use.question for use in USES if use.name == name}


def options_of(where: str) -> dict[str, inspect.Parameter]:
    """Return what a question, answered by the function at a place, takes beside what it is about."""
    return dict(list(inspect.signature(find_answer(where)).parameters.items())[1:])


@pytest.mark.parametrize("name", LOGIC)
def test_the_documentation_names_each_question_and_option(name):
    plugin = FILTERS[name]
    options = yaml.safe_load(plugin.DOCUMENTATION)["options"]
    assert options["question"]["choices"] == sorted(plugin.QUESTIONS)
    assert set(options) - {"_input", "question"} == {
        one for answer in plugin.QUESTIONS.values() for one in options_of(answer)
    }
    for question, answer in plugin.QUESTIONS.items():
        for one in options_of(answer):
            assert f"V({question})" in str(options[one]["description"]), f"{one} is an option of {question}"


@pytest.mark.parametrize("name", LOGIC)
def test_an_unknown_question_is_refused_with_those_that_are_known(name):
    ask = FILTERS[name].FilterModule().filters()[name]
    with pytest.raises(AnsibleFilterError) as refused:
        ask({}, "weather")
    assert f"longhaul.fleet.{name} does not know the question 'weather'" in str(refused.value)
    assert ", ".join(sorted(FILTERS[name].QUESTIONS)) in str(refused.value)


def test_a_template_without_questions_imports_none_of_what_answers_them():
    """Each task's process loads all these files for the first filter in a template, whichever it is."""
    imports = "; ".join(f"import {PLUGINS}.{name}" for name in FILTERS)
    count = f"{imports}; import sys; print(*(name for name in sys.modules if {ROOT_PACKAGE!r} in name))"
    said = subprocess.run([sys.executable, "-c", count], capture_output=True, text=True, check=True)
    loaded = {name.removeprefix(f"{ROOT_PACKAGE}.") for name in said.stdout.split()}
    known = {f"plugins.filter.{name}" for name in FILTERS} | {"plugins.plugin_utils.role_logic"}
    assert {name for name in loaded if name.startswith("plugins.") and name.count(".") > 1} == known
