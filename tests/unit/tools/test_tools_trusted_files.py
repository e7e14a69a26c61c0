# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which tasks the check of roles and playbooks rejects."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture(name="check")
def _check(import_tool: Any, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    tool: ModuleType = import_tool("trusted_files")
    monkeypatch.setattr(tool, "EXCEPTIONS", {})
    return tool


REJECTED = {
    "a module on another host": "{ansible.builtin.ping: {}, delegate_to: other}",
    "inside of a block": "{block: [{ansible.builtin.ping: {}, delegate_to: other}]}",
    "in a file of tasks": (
        """{ansible.builtin.include_tasks: {file: "{{ role_path }}/tasks/a.yml", apply: {delegate_to: other}}}"""
    ),
    "a fact as a file of variables": """{ansible.builtin.include_vars: "{{ ansible_facts['distribution'] }}.yml"}""",
    "the first file that is there": (
        """{ansible.builtin.include_vars: "{{ item }}", with_first_found: [{files: ["{{ ansible_facts.x }}.yml"]}]}"""
    ),
    "an injected fact": "{ansible.builtin.include_tasks: '{{ role_path }}/tasks/{{ ansible_os_family }}.yml'}",
    "an option": "{ansible.builtin.include_tasks: {file: '{{ role_path }}/{{ ansible_facts.os_family }}.yml'}}",
    "a template": "{ansible.builtin.template: {src: '{{ ansible_facts.os_family }}.j2', dest: /x}}",
    "a lookup": """{ansible.builtin.debug: {msg: "{{ lookup('ansible.builtin.file', ansible_facts.os_family) }}"}}""",
    "by a variable": "{ansible.builtin.copy: {src: '{{ file }}', dest: /x}, vars: {file: '{{ ansible_facts.env.X }}'}}",
    "a name that the user's folder may have": "{ansible.builtin.import_tasks: stop.yml}",
    "the same as an option": "{ansible.builtin.include_tasks: {file: stop.yml}}",
    "by an answer": "{block: [{ansible.builtin.command: x, register: a}, {ansible.builtin.script: '{{ a.stdout }}'}]}",
}
ACCEPTED = {
    "a fact as a condition": """{ansible.builtin.include_vars: "{{ 'a' if ansible_facts.x == 1 else 'b' }}.yml"}""",
    "a task file of the role": "{ansible.builtin.import_tasks: '{{ role_path }}/tasks/stop.yml'}",
    "a file on the host": "{ansible.builtin.copy: {src: '{{ ansible_facts.x }}', dest: /x, remote_src: true}}",
    "content": "{ansible.builtin.copy: {content: '{{ ansible_facts.x }}', dest: /x}}",
    "a variable of the user": "{ansible.builtin.include_vars: '{{ item.file }}'}",
    "a variable of Ansible": """{ansible.builtin.debug: {msg: "{{ lookup('file', ansible_playbook_python) }}"}}""",
    "the answer of an action of the collection": (
        "{block: [{longhaul.fleet.transfer: {}, register: a}, {ansible.builtin.script: '{{ a.x }}'}]}"
    ),
}


def faults_of(check: ModuleType, task: str, folder: Path) -> list[str]:
    place = folder / "roles/one/tasks/main.yml"
    place.parent.mkdir(parents=True)
    place.write_text(f"- {task}\n")
    return [fault.text for fault in check.find_faults(folder)]


@pytest.mark.parametrize("name", REJECTED)
def test_what_lets_a_host_decide_is_rejected(name: str, check: ModuleType, tmp_path: Path) -> None:
    assert len(faults_of(check, REJECTED[name], tmp_path)) == 1


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_the_role_decides_is_accepted(name: str, check: ModuleType, tmp_path: Path) -> None:
    assert faults_of(check, ACCEPTED[name], tmp_path) == []


def test_an_exception_that_nothing_needs_is_rejected(
    check: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "EXCEPTIONS", {"roles/gone/tasks/main.yml": "it was there"})
    assert [fault.file for fault in check.find_faults(tmp_path)] == ["roles/gone/tasks/main.yml"]
