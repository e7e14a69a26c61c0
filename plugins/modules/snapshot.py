#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: snapshot
short_description: Make, list, prune and check the dated snapshots of a backup
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Keeps the snapshots of a job in C(<repository>/<host>/<job>/<UTC time>/). Files that did not change since the snapshot before are
    hard links to it, so each snapshot is a whole tree and takes the room of what changed.
  - A snapshot is filled under a temporary name by M(longhaul.fleet.transfer), and gets its own name in one step when it is complete and
    on the disk. A run that is killed at any moment leaves the complete snapshots as they were, and the next one goes on where it stopped.
  - Each snapshot has a manifest with the path, type, size, time, owner, mode, extended attributes and hash of every entry. Checks find
    what is not as it was, and say where it is still intact.
  - Runs on the host that has the repository. One run at a time changes the snapshots of a job.
extends_documentation_fragment:
  - longhaul.fleet._attributes
attributes:
  check_mode:
    support: full
    details:
      - With O(action=finish) there is nothing to look at where the snapshot was not begun, because O(action=begin) ran in check mode,
        too. Then RV(name) is empty.
      - With O(action=check) nothing is written down, so the next run reads the same share.
  diff_mode:
    support: full
    details:
      - Shows the names in the folder of the job and what they are.
  idempotent:
    support: full
    details:
      - O(action=begin) and O(action=finish) with the same O(run) change nothing the second time.
options:
  action:
    description:
      - V(begin) makes an unfinished snapshot, or takes the one over that an interrupted run left, and says where the tree belongs and
        what its files can be linked to. What an interrupted run had linked to an older snapshot is unlinked, so that the transfer cannot
        change that one; it is linked again at no cost.
      - V(finish) reads the new files, writes the manifest, waits until all is on the disk, gives the snapshot its name, and lets C(latest)
        lead to it. A snapshot that lost more than O(shrink_limit) is set aside instead.
      - V(list) tells what snapshots there are.
      - V(prune) removes the complete snapshots that O(keep) does not keep, and what an earlier run left of others. It fails while a
        snapshot is set aside. What a restore reads at this moment is left to the next one.
      - V(check) compares snapshots with their manifests, and fails where one is damaged.
      - V(accept) makes the snapshot O(name), which was set aside, a complete one.
      - V(discard) removes the snapshot O(name), which was set aside, or the unfinished one. Complete ones go by V(prune) alone.
      - V(adopt_rsnapshot) makes snapshots of what rsnapshot has, as hard links, so that the job goes on from there.
    type: str
    choices: [begin, finish, list, prune, check, accept, discard, adopt_rsnapshot]
    required: true
  repository:
    description:
      - The folder of all backups. It must be there, so that a disk that is not mounted is not taken for an empty one, and no symbolic link.
    type: path
    required: true
  host:
    description:
      - The host that is backed up, as a name for its folder.
    type: str
    required: true
  job:
    description:
      - What of it is backed up, as a name for its folder.
    type: str
    required: true
  run:
    description:
      - A text that this run has alone, for O(action=begin) and O(action=finish). Only the run that began a snapshot last can finish it.
    type: str
  ended_run:
    description:
      - With O(action=begin), the O(run) of a run of which you know that its control node has ended it before its time. Where its
        transfer is still at work, this run goes on with it. Without this option that is refused, since the other run may live.
    type: str
  shrink_limit:
    description:
      - With O(action=finish), how many per cent of the files of the snapshot before may be gone. Where more are, the snapshot is set aside,
        C(latest) stays, and nothing is pruned until the snapshot is accepted or discarded. V(100) allows everything.
      - The next run is again compared with the last complete snapshot.
    type: float
    default: 50
  expected_entries:
    description:
      - With O(action=finish), how many entries the tree must have, as RV(longhaul.fleet.transfer#module:files_total) of a transfer says.
    type: int
  expected_bytes:
    description:
      - With O(action=finish), how many bytes its files must have, as RV(longhaul.fleet.transfer#module:bytes_total) of a transfer says.
        The text of symbolic links may be among them, as it is with the methods of rsync.
    type: int
  keep:
    description:
      - With O(action=prune), which snapshots stay. One stays if any rule keeps it. An empty policy is refused.
      - The newest complete snapshot always stays, and so do those that are later than now, since they come from a clock that was wrong.
        No other rule takes them into account.
    type: dict
    suboptions:
      last:
        description: This many of the newest.
        type: int
        default: 0
      hourly:
        description: The newest of each of this many most recent hours that have a snapshot.
        type: int
        default: 0
      daily:
        description: The same for days.
        type: int
        default: 0
      weekly:
        description: The same for weeks, which begin on Monday.
        type: int
        default: 0
      monthly:
        description: The same for months.
        type: int
        default: 0
      yearly:
        description: The same for years.
        type: int
        default: 0
      within:
        description:
          - All that are not older than this, counted back from the newest snapshot, so a job that stopped keeps what it has.
          - Hours, days (of 24 hours) and weeks, such as V(36h), V(14d) or V(1w2d).
        type: str
        default: ""
  timezone:
    description:
      - The time zone in whose calendar the hours, days, weeks, months and years of O(keep) are, such as V(Europe/Berlin). The names of
        snapshots are always in UTC.
    type: str
    default: UTC
  lazy:
    description:
      - With O(action=prune), only give the snapshots names that are no snapshots' any more, which takes a moment. The next prune that is not
        lazy removes them.
    type: bool
    default: false
  check_level:
    description:
      - How deep O(action=check) looks, each level with those before it.
      - V(structure) reads facts and manifests, and takes seconds. V(files) looks at every name, its type, size, time, owner, mode and
        attributes. V(contents) reads files.
    type: str
    choices: [structure, files, contents]
    default: contents
  check_share:
    description:
      - Which share of the contents one run of O(action=check) reads. With V(1/7), seven runs one after the other read everything, each file
        once. A file that snapshots share is read once for all of them.
    type: str
    default: 1/1
  snapshots:
    description:
      - The names of the snapshots that O(action=check) looks at. Without them, all that are complete or set aside.
    type: list
    elements: str
  name:
    description:
      - The snapshot for O(action=accept) and O(action=discard), as RV(snapshots[].name) says, or V(unfinished).
    type: str
  rsnapshot_root:
    description:
      - rsnapshot's C(snapshot_root), for O(action=adopt_rsnapshot). It must be on the file system of the repository. Nothing in it is changed.
        Let rsnapshot not run on it any more, because without its C(link_dest) it sets modes and owners of files that are now shared.
    type: path
  rsnapshot_path:
    description:
      - The path below each of rsnapshot's folders that is this job's tree, such as V(localhost/srv/data). Empty for the whole folder.
    type: str
    default: ""
  rsnapshot_levels:
    description:
      - The names of rsnapshot's levels (its C(retain) lines).
    type: list
    elements: str
    default: [hourly, daily, weekly, monthly, yearly, alpha, beta, gamma, delta, epsilon]
seealso:
  - module: longhaul.fleet.transfer
  - name: The format of snapshots
    description: What each name in a repository means, and in which order things are done.
    link: https://github.com/longhaul-fleet/longhaul.fleet/blob/main/docs/snapshot-format.md
"""

EXAMPLES = r"""
- name: Begin a snapshot on the backup host
  longhaul.fleet.snapshot:
    action: begin
    repository: /srv/backup
    host: web1
    job: data
    run: "{{ backup_run }}"
  delegate_to: vault
  register: begun

- name: Fill it
  longhaul.fleet.transfer:
    src_host: web1
    src: /srv/data/
    dest_host: vault
    dest: "{{ begun.path }}"
    link_dest: "{{ begun.link_dest }}"
    delete: true
  register: transferred

- name: Make it complete
  longhaul.fleet.snapshot:
    action: finish
    repository: /srv/backup
    host: web1
    job: data
    run: "{{ backup_run }}"
    expected_entries: "{{ transferred.files_total }}"
    expected_bytes: "{{ transferred.bytes_total }}"
  delegate_to: vault

- name: Keep a week, five weeks and a year
  longhaul.fleet.snapshot:
    action: prune
    repository: /srv/backup
    host: web1
    job: data
    keep:
      daily: 7
      weekly: 5
      monthly: 12
    timezone: Europe/Berlin

- name: Read a seventh of everything each night
  longhaul.fleet.snapshot:
    action: check
    repository: /srv/backup
    host: web1
    job: data
    check_share: 1/7

- name: Go on from what rsnapshot made
  longhaul.fleet.snapshot:
    action: adopt_rsnapshot
    repository: /srv/backup
    host: web1
    job: data
    rsnapshot_root: /srv/rsnapshot
    rsnapshot_path: web1/srv/data
"""

RETURN = r"""
name:
  description: The name that the snapshot will have, or that it got.
  returned: with O(action=begin) and O(action=finish)
  type: str
  sample: 2026-11-21T173009Z
path:
  description: Where the tree of the snapshot belongs. It stays the same from run to run, so an interrupted transfer is found again.
  returned: with O(action=begin)
  type: str
  sample: /srv/backup/web1/data/.unfinished/data
link_dest:
  description: The trees whose unchanged files can be linked to. Empty for the first snapshot.
  returned: with O(action=begin)
  type: list
  elements: str
  sample: [/srv/backup/web1/data/2026-11-20T173002Z/data]
base:
  description: The name of the snapshot before. Empty for the first.
  returned: with O(action=begin)
  type: str
  sample: 2026-11-20T173002Z
finished:
  description:
    - Whether this O(run) finished its snapshot already. Then there is nothing to transfer, RV(name) is that snapshot, RV(path) its tree,
      and O(action=finish) changes nothing.
  returned: with O(action=begin)
  type: bool
  sample: false
resumed:
  description: Whether there was an unfinished snapshot.
  returned: with O(action=begin)
  type: bool
  sample: false
aside:
  description: Why the snapshot was set aside. Empty where it is complete.
  returned: with O(action=finish)
  type: str
  sample: ""
figures:
  description: What the snapshot holds. Empty in check mode where nothing was begun.
  returned: with O(action=finish)
  type: dict
  contains:
    entries:
      description: The entries of the tree, with its root.
      type: int
      sample: 54344
    files:
      description: The regular files among them.
      type: int
      sample: 50000
    bytes:
      description: The bytes in these.
      type: int
      sample: 2684354560
    new_files:
      description: The regular files that are not shared with the snapshot before.
      type: int
      sample: 12
    new_bytes:
      description: The bytes in these.
      type: int
      sample: 1048576
    before:
      description: The names in the snapshot before that are no folders.
      type: int
      sample: 49991
    gone:
      description: Those of them that are not in this one.
      type: int
      sample: 3
    unreadable:
      description: The files that have no hash because this user may not read them.
      type: int
      sample: 0
snapshots:
  description: The snapshots, the oldest first, then the unfinished one.
  returned: with O(action=list)
  type: list
  elements: dict
  contains:
    name:
      description: The name in the folder of the job.
      type: str
      sample: 2026-11-21T173009Z
    path:
      description: The tree.
      type: str
      sample: /srv/backup/web1/data/2026-11-21T173009Z/data
    state:
      description:
        - V(complete); V(aside), when it lost suspiciously much; V(unfinished); or V(removing), when its removal was interrupted or put off.
      type: str
      sample: complete
    complete:
      description: Whether it is complete.
      type: bool
      sample: true
    latest:
      description: Whether C(latest) leads to it.
      type: bool
      sample: true
    time:
      description: When it was begun.
      type: str
      sample: "2026-11-21T17:30:09Z"
    age:
      description: Seconds since then.
      type: int
      sample: 3600
    entries:
      description: How many entries it has. V(null) where it is not finished.
      type: int
      sample: 54344
    size:
      description: The bytes of its files.
      type: int
      sample: 2684354560
    new_data:
      description: The bytes of the files that it does not share with the snapshot before.
      type: int
      sample: 1048576
    origin:
      description: Where its tree came from, V(transfer) or V(rsnapshot).
      type: str
      sample: transfer
    reason:
      description: Why it was set aside.
      type: str
      sample: ""
    verified:
      description: Since when all its contents are known to be as they were. With shares, the time of the oldest of them. V(null) for never.
      type: str
      sample: "2026-11-21T18:00:00Z"
    checked:
      description: When it was last checked, at any level. V(null) for never.
      type: str
      sample: "2026-11-21T18:00:00Z"
    damaged:
      description: Up to 20 paths that the last check found not to be as they were.
      type: list
      elements: str
      sample: []
    problem:
      description: Why nothing is known of it. Empty mostly.
      type: str
      sample: ""
kept:
  description:
    - The snapshots that stay, each with the rules that keep it. V(being read) is one that only stays since a restore reads it at
      this moment; a warning says which.
  returned: with O(action=prune)
  type: dict
  sample: {2026-11-21T173009Z: [latest, daily, weekly, monthly]}
removed:
  description: The snapshots that were removed.
  returned: with O(action=prune)
  type: list
  elements: str
  sample: [2026-11-10T173001Z]
leftovers:
  description: What an earlier run had not removed to the end, and this one did, unless it was O(lazy).
  returned: with O(action=prune)
  type: list
  elements: str
  sample: []
sound:
  description: Whether no problem was found.
  returned: with O(action=check)
  type: bool
  sample: true
checked:
  description: What was looked at.
  returned: with O(action=check)
  type: dict
  contains:
    snapshots:
      description: The names of the snapshots.
      type: list
      elements: str
      sample: [2026-11-20T173002Z, 2026-11-21T173009Z]
    entries:
      description: The entries that were looked at, in all snapshots together.
      type: int
      sample: 108688
    files_read:
      description: The files whose contents were read.
      type: int
      sample: 7160
    bytes_read:
      description: The bytes in them.
      type: int
      sample: 383479222
    not_permitted:
      description: The files and folders that this user may not read, and that were left out.
      type: int
      sample: 0
    parts:
      description: Which parts of the contents were read, of RV(checked.of), from 0 on.
      type: list
      elements: int
      sample: [3]
    of:
      description: How many parts there are.
      type: int
      sample: 7
problems:
  description: What is not as it was. At most 200 are listed.
  returned: with O(action=check)
  type: list
  elements: dict
  contains:
    kind:
      description:
        - V(structure), V(missing), V(extra), V(differs) (type, size, time, owner, mode, attributes), V(damaged) (contents) or V(unreadable).
      type: str
      sample: damaged
    path:
      description: The path in the tree. V(null) where it is the snapshot itself.
      type: str
      sample: photos/2026/0001.jpg
    detail:
      description: What was found.
      type: str
      sample: its contents are 5f3c0d2a9b17e846… and were 0d2a9b17e8465f3c… (sha256)
    snapshots:
      description: The snapshots in which it is so.
      type: list
      elements: str
      sample: [2026-11-20T173002Z, 2026-11-21T173009Z]
    intact_in:
      description: The snapshots that have the same contents in another file, which was read just now and is intact.
      type: list
      elements: str
      sample: [2026-11-10T173001Z]
problems_total:
  description: How many there are, counted for each snapshot.
  returned: with O(action=check)
  type: int
  sample: 2
adopted:
  description: The snapshots that were made, and which of rsnapshot's folders each is.
  returned: with O(action=adopt_rsnapshot)
  type: dict
  sample: {2026-11-20T040001Z: daily.0}
present:
  description: The same for those that were there already.
  returned: with O(action=adopt_rsnapshot)
  type: dict
  sample: {}
skipped:
  description: The folders of rsnapshot's that do not have O(rsnapshot_path).
  returned: with O(action=adopt_rsnapshot)
  type: list
  elements: str
  sample: []
"""

import os
import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.longhaul.fleet.plugins.module_utils._job.state import destination_holder, source_reader
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import policy, rsnapshot, subset, time_zones
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.adopt import adopt
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.begin import begin
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.check_run import check
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.errors import Refused, unexpected
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.finish import finish
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.listing import listing
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.predicted_states import States
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.prune import prune
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.quarantine import accept, discard
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.repository import Series

MAX_LISTED = 200
_COUNT = {"type": "int", "default": 0}


def _writer(path: str) -> str | None:
    """Say which transfer writes to a path, which transfers know by its real name."""
    return destination_holder(os.fsencode(os.path.realpath(path)))


def _reader(path: str) -> str | None:
    """Say which transfer reads below a path."""
    return source_reader(os.fsencode(os.path.realpath(path)))


def _iso(seconds: int | None) -> str | None:
    return None if seconds is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


class Actions:
    """One method for each action; each gives the module's result, and keeps ``after`` as a diff shows it."""

    def __init__(self, module: AnsibleModule, series: Series, now: int) -> None:
        self.module = module
        self.params = module.params
        self.series = series
        self.now = now
        self.dry = module.check_mode
        self.before = States.of(series)
        self.after = self.before

    def begin(self) -> dict[str, Any]:
        """Make the unfinished snapshot."""
        begun = begin(
            self.series, self.params["run"], self.now, _writer, ended=self.params["ended_run"], check=self.dry
        )
        self.after = (self.before if begun.finished else self.before.begun(begun.name)).settled(self.now)
        return begun._asdict()

    def finish(self) -> dict[str, Any]:
        """Make it complete."""
        done = finish(
            self.series,
            self.params["run"],
            self.now,
            shrink_limit=self.params["shrink_limit"],
            expected_entries=self.params["expected_entries"],
            expected_bytes=self.params["expected_bytes"],
            check=self.dry,
        )
        for text in done.warnings:
            self.module.warn(text)
        if done.aside:
            self.module.warn(
                f"{done.name} was set aside: {done.aside}. Nothing is pruned until it was compared with the one before, and accepted or discarded"
            )
        self.after = self.before.finished(done.name).settled(self.now)
        wanted = ("entries", "files", "bytes", "new_files", "new_bytes", "gone", "before", "unreadable")
        figures = {key: done.facts[key] for key in wanted if key in done.facts}
        return {"changed": done.changed, "name": done.name, "aside": done.aside, "figures": figures}

    def list(self) -> dict[str, Any]:
        """Tell what there is."""
        found = listing(self.series, self.now)
        for item in found:
            item.update({key: _iso(item[key]) for key in ("time", "verified", "checked")})
        return {"changed": False, "snapshots": found}

    def prune(self) -> dict[str, Any]:
        """Remove what the policy does not keep."""
        wanted = policy.parse(self.params["keep"] or {})
        calendar = time_zones.calendar_of(self.params["timezone"])
        done = prune(self.series, wanted, self.now, calendar, _reader, lazy=self.params["lazy"], check=self.dry)
        for name, holder in done.held.items():
            self.module.warn(
                f"{name} is being read by {holder}, so it stays for now. The next prune removes it once nobody does"
            )
        self.after = self.before.pruned(done.removed, self.params["lazy"]).settled(self.now)
        return {key: value for key, value in done._asdict().items() if key != "held"}

    def check(self) -> dict[str, Any]:
        """Compare with the manifests."""
        level, only = self.params["check_level"], self.params["snapshots"]
        wanted = subset.parse(self.params["check_share"])
        report, part = check(self.series, level, self.now, wanted, only, record=not self.dry)
        for text in report.warnings:
            self.module.warn(text)
        if not report.snapshots and not report.problems:
            raise Refused(f"there is no snapshot in {self.series.path}, so there is nothing that a check could prove")
        problems = [problem.as_dict() for problem in report.problems.values()]
        looked = ("snapshots", "entries", "files_read", "bytes_read", "not_permitted")
        return {
            "changed": False,
            "sound": not report.problems_total,
            "checked": {**{key: getattr(report, key) for key in looked}, "parts": sorted(part.parts), "of": part.of},
            "problems": problems[:MAX_LISTED],
            "problems_total": report.problems_total,
        }

    def accept(self) -> dict[str, Any]:
        """Take what was set aside."""
        changed = accept(self.series, self.params["name"], self.now, check=self.dry)
        self.after = self.before.accepted(self.params["name"]).settled(self.now)
        return {"changed": changed}

    def discard(self) -> dict[str, Any]:
        """Drop what was set aside or not finished."""
        changed = discard(self.series, self.params["name"], _writer, check=self.dry)
        self.after = self.before.discarded(self.params["name"])
        return {"changed": changed}

    def adopt_rsnapshot(self) -> dict[str, Any]:
        """Make snapshots of what rsnapshot has."""
        root, path, levels = (self.params[f"rsnapshot_{key}"] for key in ("root", "path", "levels"))
        done = adopt(self.series, root, path, self.now, levels, check=self.dry)
        for text in done.warnings:
            self.module.warn(text)
        self.after = self.before.adopted(list(done.adopted)).settled(self.now)
        return {key: value for key, value in done._asdict().items() if key != "warnings"}


def summary(problems: list[dict[str, Any]], total: int) -> str:
    """Say in a few sentences what a check found: the first problems, and where the contents are intact."""
    texts = []
    for problem in problems[:3]:
        where = ", ".join(problem["snapshots"])
        what = (
            f"{where}: {problem['detail']}"
            if problem["path"] is None
            else f"'{problem['path']}' in {where}: {problem['detail']}"
        )
        if problem["intact_in"]:
            what += f" (intact in {', '.join(problem['intact_in'])})"
        texts.append(what)
    more = f"; and {total - len(texts)} more" if total > len(texts) else ""
    return (
        f"the snapshots are not as they were, {total} problems: {'; '.join(texts)}{more}. Save what is intact elsewhere first, then look "
        "into the system's log for errors of the disk"
    )


def main() -> None:
    """Do the one thing that was asked for, under the lock where it changes something."""
    module = AnsibleModule(
        argument_spec={
            "action": {
                "type": "str",
                "choices": ["begin", "finish", "list", "prune", "check", "accept", "discard", "adopt_rsnapshot"],
                "required": True,
            },
            "repository": {"type": "path", "required": True},
            "host": {"type": "str", "required": True},
            "job": {"type": "str", "required": True},
            "run": {"type": "str"},
            "ended_run": {"type": "str"},
            "shrink_limit": {"type": "float", "default": 50},
            "expected_entries": {"type": "int"},
            "expected_bytes": {"type": "int"},
            "keep": {
                "type": "dict",
                "options": {**dict.fromkeys(policy.COUNTS, _COUNT), "within": {"type": "str", "default": ""}},
            },
            "timezone": {"type": "str", "default": "UTC"},
            "lazy": {"type": "bool", "default": False},
            "check_level": {"type": "str", "choices": ["structure", "files", "contents"], "default": "contents"},
            "check_share": {"type": "str", "default": "1/1"},
            "snapshots": {"type": "list", "elements": "str"},
            "name": {"type": "str"},
            "rsnapshot_root": {"type": "path"},
            "rsnapshot_path": {"type": "str", "default": ""},
            "rsnapshot_levels": {"type": "list", "elements": "str", "default": list(rsnapshot.LEVELS)},
        },
        required_if=[
            ("action", "begin", ("run",)),
            ("action", "finish", ("run",)),
            ("action", "prune", ("keep",)),
            ("action", "accept", ("name",)),
            ("action", "discard", ("name",)),
            ("action", "adopt_rsnapshot", ("rsnapshot_root",)),
        ],
        supports_check_mode=True,
    )
    params = module.params
    action = params["action"]
    changes = action not in ("list", "check") and not module.check_mode
    try:
        create = changes and action in ("begin", "adopt_rsnapshot")
        with Series(params["repository"], params["host"], params["job"], create=create) as series:
            now = int(time.time())
            if changes:
                with series.lock(action):
                    actions = Actions(module, series, now)
                    result = getattr(actions, action)()
                    actions.after = States.of(series)
            else:
                actions = Actions(module, series, now)
                result = getattr(actions, action)()
    except Refused as refused:
        module.fail_json(msg=str(refused))
    except OSError as error:
        where = os.path.join(params["repository"], params["host"], params["job"])
        module.fail_json(msg=str(unexpected(error, where)))
    if action not in ("list", "check"):
        result["diff"] = {"before": actions.before.text(), "after": actions.after.text()}
    if not result.get("sound", True):
        module.fail_json(msg=summary(result["problems"], result["problems_total"]), **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
