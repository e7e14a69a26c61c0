#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: endpoint
short_description: "Internal: do one host's part of a transfer or comparison"
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - The action plugins M(longhaul.fleet.transfer) and M(longhaul.fleet.verify) run this module on both of their hosts.
  - It is not meant to be used in tasks. Its options may change in any release.
  - It keeps the engine compiled in C(/var/cache/longhaul), or C(~/.cache/longhaul) of a user who is not root, so that
    it is sent once and jobs start at once. What is there may be removed at any time.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.change
attributes:
  check_mode:
    details:
      - What a step does is decided by the action plugin, which knows the check mode.
  diff_mode:
    support: none
options:
  steps:
    description:
      - What to do, one after the other. The first step that fails ends the module.
    type: list
    elements: dict
    required: true
  digest:
    description:
      - The SHA-224 of the engine that does the steps, by which the one that this host keeps is found.
    type: str
    required: true
  engine:
    description:
      - The code that does the steps, as a zip archive in base64. Jobs are started from it as well.
      - Where it is left out and this host does not keep it, or may not trust what it keeps, no step is done.
      - It is no module_utils of this module, since Ansible would parse all of its files in each playbook.
    type: str
  secrets:
    description:
      - What the steps need and nobody may see. It goes to the jobs through pipes.
    type: dict
    default: {}
seealso:
  - module: longhaul.fleet.transfer
  - module: longhaul.fleet.verify
"""

EXAMPLES = r"""
# Used by action plugins only.
- name: Ask what this host has
  longhaul.fleet.endpoint:
    digest: "{{ of_the_engine }}"
    engine: "{{ packed_by_the_action_plugin }}"
    steps:
      - do: probe
        id: "0123456789abcdef"
        side: source
        path: /srv/data
"""

RETURN = r"""
results:
  description: What each step gave.
  returned: when the steps were done
  type: list
  elements: dict
kept:
  description: Whether this host keeps the engine, so that its digest suffices the next time.
  returned: success
  type: bool
"""

import base64
import contextlib
import hashlib
import importlib
import json
import os
import pwd
import stat
import sys

from ansible.module_utils.basic import AnsibleModule

SEAL = 56  # characters of the digest with which what is kept ends


def kept_name(digest: str) -> str | None:
    """Return the path where this Python caches the compiled engine; None for a user without a home."""
    if os.geteuid() == 0:
        folder = "/var/cache/longhaul"
    else:
        try:  # not HOME, which a become may have left another user's
            folder = os.path.join(pwd.getpwuid(os.geteuid()).pw_dir, ".cache", "longhaul")
        except KeyError:
            return None
    return os.path.join(folder, f"engine-{digest[:32]}-{sys.implementation.cache_tag}.pyz")


def is_kept(path: str) -> bool:
    """Whether it is there as it was written, and no other user can have written it; marks it as in use."""
    try:
        folder = os.lstat(os.path.dirname(path))
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            file = os.fstat(stream.fileno())
            own = {folder.st_uid, file.st_uid} == {os.geteuid()} and not (folder.st_mode | file.st_mode) & 0o022
            if not own or not stat.S_ISDIR(folder.st_mode) or not stat.S_ISREG(file.st_mode):
                return False
            content = stream.read()
            os.utime(stream.fileno())
    except OSError:
        return False
    return hashlib.sha224(content[:-SEAL]).hexdigest().encode() == content[-SEAL:]


# Does the steps in a Python of its own: see in_utf8.
CHILD = """
import sys
sys.path[:] = [path for path in sys.path if path not in ("", ".")]  # not where anybody may have put a json.py
import importlib, json
sys.path.insert(0, sys.argv[1])
commands = importlib.import_module("longhaul._job.commands")
asked = json.load(sys.stdin)
try:
    told = {"results": commands.run_steps(asked["steps"], commands.StepContext(asked["secrets"], sys.argv[1]))}
except commands.StateError as error:
    told = {"msg": str(error)}
print(json.dumps(told))
"""


def in_utf8(module: AnsibleModule, archive: str) -> list[object]:
    """Return the results of the steps, done by a Python that takes names of files for UTF-8, as jobs do.

    With LANG=de_DE.ISO-8859-1 this one would look for other names than the user wrote, and cannot change that.
    """
    asked = json.dumps({"steps": module.params["steps"], "secrets": module.params["secrets"]})
    argv = [sys.executable, "-X", "utf8", "-c", CHILD, archive]
    code, printed, complaint = module.run_command(argv, data=asked, cwd="/")
    try:
        told = json.loads(printed)
    except ValueError:
        last = ([line for line in complaint.splitlines() if line.strip()] or ["it said nothing"])[-1]
        module.fail_json(msg=f"Python ended with {code} and no answer: {last}")
    if "msg" in told:
        module.fail_json(msg=told["msg"])
    results: list[object] = told["results"]
    return results


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "steps": {"type": "list", "elements": "dict", "required": True},
            "digest": {"type": "str", "required": True},
            "engine": {"type": "str", "no_log": True},  # no secret, but nothing to read either
            "secrets": {"type": "dict", "default": {}, "no_log": True},
        },
        supports_check_mode=True,
    )
    kept = kept_name(module.params["digest"])
    if kept is not None and is_kept(kept):
        archive = kept
    elif module.params["engine"] is None:
        module.exit_json(changed=False, kept=False)
    else:
        archive = os.path.join(module.tmpdir, "engine.pyz")
        packed = base64.b64decode(module.params["engine"])
        if hashlib.sha224(packed).hexdigest() != module.params["digest"]:
            module.fail_json(msg="the engine was damaged on its way to this host: run the task again")
        with open(archive, "wb") as file:
            file.write(packed)
    sys.path.insert(0, archive)
    commands = importlib.import_module("longhaul._job.commands")
    if sys.getfilesystemencoding() == "utf-8":
        try:
            results = commands.run_steps(
                module.params["steps"], commands.StepContext(module.params["secrets"], archive)
            )
        except commands.StateError as error:
            module.fail_json(msg=str(error))
    else:
        results = in_utf8(module, archive)
    if kept and archive != kept:
        with contextlib.suppress(OSError):  # it is quicker with it, and works without
            importlib.import_module("longhaul._job.bytecode_cache").keep(archive, kept)
            archive = kept
    module.exit_json(changed=False, results=results, kept=archive == kept)


if __name__ == "__main__":
    main()
