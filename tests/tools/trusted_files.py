# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reject tasks of roles and playbooks that let a host set what it must not: variables of others, and names of files.

A role names its own task files by their whole path, or Ansible may take a file of that name from the folder ``tasks``
of the working directory.

A task that asks another host than its own (``delegate_to``) takes facts out of the answer. The actions of the
collection ask hosts instead, and read named values. A fact, or the registered answer of a host, must not be part of the
name of a file that is read on the control node. A fact may choose between names that the role has (``'a' if FACT else
'b'``).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import yaml
from jinja2 import nodes

REPOSITORY = Path(__file__).resolve().parents[2]
# Files whose tasks may ask another host, and why.
EXCEPTIONS: Mapping[str, str] = {
    "playbooks/migrate.yml": "a marker of the control node",
    "playbooks/verify.yml": "a marker of the control node",
    "roles/backup/tasks/hook.yml": "tasks of the user's own, whose facts go to their host",
    "roles/migrate/tasks/hook.yml": "tasks of the user's own, whose facts go to their host",
}
_READ_HERE = {  # modules that read files of the control node, with the options that name them
    "include_vars": ("file", "dir"),
    "include_tasks": ("file",),
    "import_tasks": ("file",),
    "include_role": ("name", "tasks_from", "vars_from", "defaults_from", "handlers_from"),
    "import_role": ("name", "tasks_from", "vars_from", "defaults_from", "handlers_from"),
    "import_playbook": (),
    "template": ("src",),
    "copy": ("src",),
    "script": ("cmd",),
    "unarchive": ("src",),
    "assemble": ("src",),
}
_READ_BY_KEYWORD = ("vars_files", "with_first_found", "with_file", "with_fileglob", "with_template")
# Task files that the user names, by their whole path.
_OF_USER = ("{{ __migrate_hook.file }}", "{{ __backup_hook.file }}")
_LOOKUPS = ("lookup", "query", "q")
_IGNORED_LOOKUPS = ("env", "ansible.builtin.env")
# Variables of Ansible itself; any other one with the prefix may be a fact.
_MAGIC = {
    *("ansible_check_mode", "ansible_diff_mode", "ansible_failed_result", "ansible_failed_task", "ansible_forks"),
    *("ansible_inventory_sources", "ansible_limit", "ansible_loop", "ansible_parent_role_names", "ansible_play_batch"),
    *(
        "ansible_play_hosts",
        "ansible_play_hosts_all",
        "ansible_playbook_python",
        "ansible_role_name",
        "ansible_run_tags",
    ),
    *("ansible_skip_tags", "ansible_version", "ansible_managed"),
}


class Fault(NamedTuple):
    """A task that is rejected."""

    file: str
    text: str


def find_faults(repository: Path) -> list[Fault]:
    """Return the faults of all roles and playbooks, and of exceptions that nothing needs."""
    found: list[Fault] = []
    delegating: set[str] = set()
    paths = [*repository.glob("roles/*/*/*.yml"), *repository.glob("playbooks/**/*.yml")]
    tainted = _tainted(paths)
    for path in sorted(paths):
        file = str(path.relative_to(repository))
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        if any(_asks_another(task) for task in _tasks(data)):
            delegating.add(file)
            if file not in EXCEPTIONS:
                found.append(Fault(file, "delegate_to: ask the host through an action that reads named values"))
        found += [Fault(file, text) for text in sorted(set(_named_by_hosts(data, tainted)))]
        if file.startswith("roles/"):
            found += [Fault(file, text) for text in _named_by_folders(data)]
    found += [Fault(file, "is an exception, and needs none") for file in sorted(EXCEPTIONS.keys() - delegating)]
    return found


def _asks_another(task: Mapping[str, Any]) -> bool:
    """Return whether a task asks another host than its own, or has the tasks of a file do so."""
    applied = [value.get("apply") for value in task.values() if isinstance(value, dict)]
    return any(key in one for one in [task, *filter(None, applied)] for key in ("delegate_to", "local_action"))


def _tasks(data: Any) -> Iterator[Mapping[str, Any]]:
    """Yield all mappings in the data of a YAML file that may be plays, blocks or tasks."""
    if isinstance(data, list):
        for one in data:
            yield from _tasks(one)
    elif isinstance(data, dict):
        yield data
        for part in ("tasks", "pre_tasks", "post_tasks", "handlers", "block", "rescue", "always"):
            yield from _tasks(data.get(part))


def _tainted(paths: list[Path]) -> set[str]:
    """Return the variables that hold what hosts say: registered answers, and what is made of those and of facts."""
    made: dict[str, list[str]] = {}
    tainted: set[str] = set()
    for path in paths:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        for task in _tasks(data):
            if isinstance(task.get("register"), str) and not _is_ours(task):
                tainted.add(task["register"])
            for variables in (task.get("vars"), task.get("ansible.builtin.set_fact")):
                for name, value in (variables or {}).items() if isinstance(variables, dict) else ():
                    made.setdefault(name, []).extend(_texts(value))
        if path.parent.name in ("vars", "defaults") and isinstance(data, dict):
            for name, value in data.items():
                made.setdefault(name, []).extend(_texts(value))
    while True:
        more = {name for name, texts in made.items() if any(_says(text, tainted) for text in texts)} - tainted
        if not more:
            return tainted
        tainted |= more


def _is_ours(task: Mapping[str, Any]) -> bool:
    """Return whether a task is an action of the collection, whose results are typed, or asks no host."""
    return any(str(name).startswith("longhaul.fleet.") or name == "ansible.builtin.set_fact" for name in task)


def _named_by_hosts(data: Any, tainted: set[str]) -> Iterator[str]:
    """Yield what is wrong with the names of files that are read on the control node."""
    for task in _tasks(data):
        for name, value in task.items():
            module = str(name).removeprefix("ansible.builtin.")
            named: list[str] = []
            if name in _READ_BY_KEYWORD:
                named = list(_texts(value))
            elif module in _READ_HERE and isinstance(value, dict) and not value.get("remote_src"):
                named = [text for option in _READ_HERE[module] for text in _texts(value.get(option))]
            elif module in _READ_HERE and isinstance(value, str):
                named = [value]
            for text in named:
                if _says(text, tainted):
                    yield f"{module}: a host decides the name of the file {text}"
    for text in _texts(data):
        for call in _lookups(text):
            if any(_says_node(argument, tainted) for argument in call.args):
                yield f"lookup: a host decides the name of the file in {text}"


def _named_by_folders(data: Any) -> Iterator[str]:
    """Yield task files of a role that Ansible may take from the folder ``tasks`` of the user's working directory."""
    for task in _tasks(data):
        for module in ("ansible.builtin.include_tasks", "ansible.builtin.import_tasks"):
            named = task.get(module)
            name = named.get("file") if isinstance(named, dict) else named
            if isinstance(name, str) and not name.startswith("{{ role_path }}/") and name not in _OF_USER:
                yield f'{name}: a file of the user may have this name; write "{{{{ role_path }}}}/tasks/{name}"'


def _texts(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, (list, dict)):
        for one in data if isinstance(data, list) else data.values():
            yield from _texts(one)


def _tree(text: str) -> nodes.Template | None:
    try:
        return jinja2.Environment(extensions=["jinja2.ext.do"]).parse(text)
    except jinja2.TemplateSyntaxError:
        return None


def _lookups(text: str) -> Iterator[nodes.Call]:
    tree = _tree(text) if "{{" in text or "{%" in text else None
    for call in tree.find_all(nodes.Call) if tree else ():
        plugin = call.args[0] if call.args else None
        is_ignored = isinstance(plugin, nodes.Const) and plugin.value in _IGNORED_LOOKUPS
        if isinstance(call.node, nodes.Name) and call.node.name in _LOOKUPS and not is_ignored:
            yield call


def _says(text: str, tainted: set[str]) -> bool:
    """Return whether the value of a template has something in it that a host said."""
    tree = _tree(text) if "{{" in text or "{%" in text else None
    return tree is not None and any(_says_node(node, tainted) for node in tree.iter_child_nodes())


def _says_node(node: nodes.Node, tainted: set[str]) -> bool:
    if isinstance(node, nodes.Name):
        is_fact = node.name.startswith("ansible_") and node.name not in _MAGIC
        return is_fact or node.name in tainted
    if isinstance(node, nodes.CondExpr):  # the condition only chooses
        return any(_says_node(one, tainted) for one in (node.expr1, node.expr2) if one is not None)
    if isinstance(node, (nodes.Compare, nodes.Test)):  # true or false
        return False
    return any(_says_node(one, tainted) for one in node.iter_child_nodes())


def main() -> int:
    """Print the faults; the exit code is 1 if there are some."""
    faults = find_faults(REPOSITORY)
    for fault in faults:
        print(f"{fault.file}: {fault.text}")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
