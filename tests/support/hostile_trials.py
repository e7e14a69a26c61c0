# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The trials of ``hostile_answers.py``: every playbook, every role, and modules in a play of the user's own."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

from .hostile_answers import HOSTILE, HOSTS, Stage, Trial, ended_at_facts
from .playbooks import Running
from .snapshots import backup_tasks

REPOSITORY = "/data/backup"
_TASKS = "hook.yml"


def _touch(host: str, path: str) -> dict[str, Any]:
    return {"name": "touch", "host": host, "command": ["/usr/bin/touch", path], "timeout": 60}


def _hooks(of: str, tasks: bool) -> dict[str, Any]:
    """Return hooks at both hosts of a migration: they make marks named after the job. ``tasks`` adds files of tasks."""
    return {
        "before_cutover": [
            _touch("source", f"/data/stopped-{of}"),
            *([{"host": "source", "tasks": _TASKS, "timeout": 60}] * tasks),
        ],
        "after_cutover": [
            _touch("dest", f"/data/started-{of}"),
            *([{"host": "dest", "tasks": _TASKS, "timeout": 60}] * tasks),
        ],
        "cutover_failed": [_touch("source", f"/data/back-{of}")],
    }


def _pair(name: str, src_host: str, dest_host: str, **more: Any) -> dict[str, Any]:
    ends = {"src_host": src_host, "src": "/data/src/", "dest_host": dest_host, "dest": f"/data/from-{name}"}
    return {"name": name, **ends, "encryption": "none", **more}


def _pairs(source: str, dest: str, tasks: bool = False) -> list[dict[str, Any]]:
    """Return a job with the hostile host and an honest one, both with hooks; that one has files of tasks always."""
    evil = _pair("evil", source, dest, **_hooks("evil", tasks))
    return [evil, _pair("honest", "gamma", "beta", **_hooks("honest", tasks=True))]


def _migrated(stage: Stage, _output: str) -> list[str]:
    marks = stage.data("gamma") / "stopped-honest", stage.data("beta") / "started-honest"
    return stage.missing(stage.data("beta") / "from-honest", *marks)


def _migrate(source: str, dest: str, tasks: bool = False) -> Trial:
    def start(stage: Stage) -> Running:
        jobs = _pairs(source, dest, tasks)
        return stage.start("longhaul.fleet.migrate", migrate_phase="cutover", migrate_jobs=jobs)

    name = f"migrate {'from' if source == HOSTILE else 'to'} the hostile host{', hooks of tasks' * tasks}"
    return Trial(name, start, _migrated, is_plain=tasks)


def _migrate_own_play(stage: Stage) -> Running:
    """The role in a play of the user's own, which gathers facts, on both destinations."""
    role = {"ansible.builtin.import_role": {"name": "longhaul.fleet.migrate"}}
    play = {"hosts": "alpha,beta", "tasks": [role]}
    return stage.start([play], migrate_phase="cutover", migrate_jobs=_pairs("beta", HOSTILE))


def _refused(stage: Stage, output: str) -> list[str]:
    """The hostile host is the play's own: its facts are refused, unless no task of the role ran there; beta goes on."""
    found = _migrated(stage, output)
    if not any(mode.startswith("facts_") or mode == "tags" for mode in stage.modes) or ended_at_facts(output):
        return found
    # A variable of another type than the role's is refused by Ansible, ahead of the role.
    is_refused = re.search(
        rf"among the facts of ({HOSTILE}|this host)|fatal: \[{HOSTILE}\]: FAILED! => .*argument_errors", output
    )
    return found if is_refused else ["the play was not refused", *found]


def _compared(_stage: Stage, output: str) -> list[str]:
    return [] if "honest: the trees are the same" in output else ["the honest trees were not compared"]


def _copy_trees(stage: Stage) -> None:
    for source, dest, name in ((HOSTILE, "beta", "evil"), ("gamma", "beta", "honest")):
        shutil.copytree(stage.data(source) / "src", stage.data(dest) / f"from-{name}")


def _verify(stage: Stage) -> Running:
    return stage.start("longhaul.fleet.verify", migrate_jobs=_pairs(HOSTILE, "beta"))


def _backup_jobs(evil: tuple[str, str], tasks: bool) -> list[dict[str, Any]]:
    jobs = []
    for name, (client, vault) in (("evil", evil), ("honest", ("gamma", "beta"))):
        repository = {"host": vault, "path": REPOSITORY}
        hooks = {
            "before": [
                _touch("client", f"/data/before-{name}"),
                *([{"host": "client", "tasks": _TASKS, "timeout": 60}] * (tasks or name == "honest")),
            ],
            "after": [_touch("repository", f"/data/after-{name}"), _touch("client", f"/data/after-{name}")],
        }
        job = {"name": name, "host": client, "src": "/data/src", "repository": repository, "keep": {"last": 3}}
        jobs += [{**job, **hooks, "encryption": "none", "check_subset": "1/1"}]
    return [*jobs, {**jobs[1], "name": "plain", "before": [], "after": []}]


def _make_repositories(stage: Stage) -> None:
    for host in HOSTS:
        (stage.data(host) / "backup").mkdir(mode=0o700)


def _newest(folder: Path) -> Path:
    """Return the tree of the newest complete snapshot in a job's folder; one that does not exist if there is none."""
    names = sorted(path.name for path in folder.glob("2*"))
    return folder / (names[-1] if names else "no-snapshot") / "data"


def _backed_up(stage: Stage, _output: str) -> list[str]:
    folder = stage.data("beta") / "backup/gamma"
    marks = stage.data("gamma") / "before-honest", stage.data("beta") / "after-honest"
    return [*stage.missing(_newest(folder / "honest"), *marks), *stage.missing(_newest(folder / "plain"))]


def _backup(client: str, vault: str, tasks: bool = False) -> Trial:
    def start(stage: Stage) -> Running:
        return stage.start("longhaul.fleet.backup", backup_jobs=_backup_jobs((client, vault), tasks))

    name = f"backup {'of' if client == HOSTILE else 'on'} the hostile host{', hooks of tasks' * tasks}"
    return Trial(name, start, _backed_up, _make_repositories, is_plain=tasks)


def _snapshots_on(vault: str, client: str) -> Any:
    def make(stage: Stage) -> None:
        _make_repositories(stage)
        tasks = backup_tasks("one", client=client, vault=vault, repository=REPOSITORY, encryption="none")
        stage.playbooks.run(tasks, hosts=vault).expect_success()

    return make


def _restore(vault: str, client: str) -> Trial:
    job = {"name": "data", "host": client, "src": "/data/src", "repository": {"host": vault, "path": REPOSITORY}}

    def start(stage: Stage) -> Running:
        wanted = {"restore_from": client, "restore_job": "data", "restore_dest": "/data/back"}
        return stage.start("longhaul.fleet.restore", backup_jobs=[job], **wanted)

    name = f"restore {'from' if vault == HOSTILE else 'to'} the hostile host"
    return Trial(name, start, lambda _stage, _output: [], _snapshots_on(vault, client))


def _status(stage: Stage) -> Running:
    return stage.start("longhaul.fleet.status")


def _tune(stage: Stage) -> Running:
    pairs = [{"src_host": HOSTILE, "dest_host": "beta"}, {"src_host": "gamma", "dest_host": "beta"}]
    small = {"tune_measure_mib": 32, "tune_measure_seconds": 5, "nic_mode": "report"}
    return stage.start("longhaul.fleet.tune", tune_pairs=pairs, **small)


def _role(name: str, **variables: Any) -> Any:
    """Return what starts a role on all hosts, in a play that gathers facts."""

    def start(stage: Stage) -> Running:
        play = {"hosts": "all", "strategy": "ansible.builtin.free", "roles": [f"longhaul.fleet.{name}"]}
        return stage.start([play], **variables)

    return start


def _exists(host: str, path: str) -> Any:
    def find(stage: Stage, _output: str) -> list[str]:
        return [] if (stage.bed.root(host) / path).exists() else [f"{path} was not made on {host}"]

    return find


def _remove(*paths: str) -> Any:
    def remove(stage: Stage) -> None:
        for host in HOSTS:
            for path in paths:
                (stage.bed.root(host) / path).unlink(missing_ok=True)

    return remove


_RSYNCD = {
    "rsyncd_modules": [{"name": "data", "path": "/data/src"}],
    "rsyncd_secrets": [{"name": "mover", "password": "correct horse"}],
    **dict.fromkeys(("rsyncd_manage_service", "rsyncd_manage_packages", "rsyncd_manage_logrotate"), False),
}
_SSH = {"ssh_client_peers": [{"name": "beta"}], "ssh_client_manage_packages": False, "ssh_client_measure": "never"}


def _nic(stage: Stage) -> Running:
    """gamma asks only beta for the way back, and beta asks the hostile host."""
    peers = {"alpha": "beta", "beta": "alpha", "gamma": "beta"}
    address = "{{ hostvars[peers[inventory_hostname]].longhaul_address }}"
    variables = {
        "nic_mode": "report",
        "nic_tcp_tuning": True,
        "nic_manage_packages": False,
        "nic_path_peers": [{"host": "{{ peers[inventory_hostname] }}", "address": address}],
        "peers": peers,
    }
    done = {"name": "Done", "ansible.builtin.raw": "touch /data/nic-done"}
    play = {"hosts": "all", "strategy": "ansible.builtin.free", "roles": ["longhaul.fleet.nic"], "post_tasks": [done]}
    return stage.start([play], **variables)


def _tasks(stage: Stage) -> Running:
    """Ask the hostile host by each task that asks two hosts, then do honest work."""
    both = {"dest_host": "beta", "src": "/data/src/"}
    evil, honest = ({**both, "src_host": host, "dest": f"/data/from-{host}"} for host in (HOSTILE, "gamma"))
    plain = {"encryption": "none"}
    back = {"src_host": "beta", "src": "/data/src/", "dest_host": HOSTILE, "dest": "/data/from-beta", **plain}
    tasks = [
        {"name": "Transfer from", "longhaul.fleet.transfer": {**evil, **plain}},
        {"name": "Transfer to", "longhaul.fleet.transfer": back},
        {"name": "Verify", "longhaul.fleet.verify": evil},
        {"name": "Status", "longhaul.fleet.fleet_status": {"hosts": list(HOSTS)}},
    ]
    last = {"name": "Honest", "longhaul.fleet.transfer": {**honest, **plain}}
    lenient = [{**task, "ignore_errors": True, "ignore_unreachable": True} for task in tasks]
    return stage.start([*lenient, last], hosts="beta")


def _own_host(stage: Stage) -> Running:
    """Run the modules of the collection on the hostile host itself, and on the others."""
    snapshot = {"action": "list", "repository": REPOSITORY, "host": "gamma", "job": "data"}
    control = {"id": ["0123456789abcdef"], "state": "cancelled"}
    tasks = [
        {"name": "Info", "longhaul.fleet.transfer_info": {}},
        {"name": "Control", "longhaul.fleet.transfer_control": control},
        {"name": "List", "longhaul.fleet.snapshot": snapshot},
        {"name": "Links", "longhaul.fleet.nic_info": {}},
        {"name": "Offer", "longhaul.fleet.ssh_local_offer": {"peers": [{"name": "beta"}], "measure": "never"}},
    ]
    lenient = [{**task, "ignore_errors": True, "ignore_unreachable": True} for task in tasks]
    done = {"name": "Done", "ansible.builtin.raw": "touch /data/info-done"}
    return stage.start([*lenient, done])


def _unprotected(stage: Stage) -> Running:
    """Delegate a module of ansible-core to the hostile host, in a play of the user's own."""
    program = {"ansible.builtin.command": "/bin/true"}
    asked = {"name": "Ask", **program, "delegate_to": HOSTILE, "ignore_errors": True}
    return stage.start([asked, {"name": "Work", **program}], hosts="beta")


UNPROTECTED = Trial("modules of ansible-core", _unprotected, _exists("gamma", "data/no-honest-job"))
TRIALS = (
    _migrate(HOSTILE, "beta"),
    _migrate("beta", HOSTILE),
    _migrate(HOSTILE, "beta", tasks=True),
    Trial("migrate in a play that gathers facts", _migrate_own_play, _refused, is_plain=True),
    Trial("verify", _verify, _compared, _copy_trees),
    _backup(HOSTILE, "beta"),
    _backup("beta", HOSTILE),
    _backup(HOSTILE, "beta", tasks=True),
    _restore(HOSTILE, "beta"),
    _restore("beta", HOSTILE),
    Trial("status", _status, lambda _stage, _output: []),
    Trial(
        "tune",
        _tune,
        _exists("gamma", "etc/ssh/ssh_config.d/10-longhaul.conf"),
        _remove("etc/ssh/ssh_config.d/10-longhaul.conf"),
        is_plain=True,
    ),
    Trial(
        "rsyncd",
        _role("rsyncd", **_RSYNCD),
        _exists("gamma", "etc/rsyncd.d/data.conf"),
        _remove("etc/rsyncd.d/data.conf"),
        is_plain=True,
    ),
    Trial("nic", _nic, _exists("gamma", "data/nic-done"), is_plain=True),
    Trial(
        "ssh_client",
        _role("ssh_client", **_SSH),
        _exists("gamma", "etc/ssh/ssh_config.d/10-longhaul.conf"),
        _remove("etc/ssh/ssh_config.d/10-longhaul.conf"),
        is_plain=True,
    ),
    Trial("tasks between hosts", _tasks, lambda stage, _output: stage.missing(stage.data("beta") / "from-gamma")),
    Trial("modules on the host itself", _own_host, _exists("gamma", "data/info-done"), is_plain=True),
)
