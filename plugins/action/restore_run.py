# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action behind longhaul.fleet.restore_run: one restore, on the host that receives the files."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from ansible.utils.display import Display
from ansible_collections.longhaul.fleet.plugins.modules import transfer
from ansible_collections.longhaul.fleet.plugins.modules.restore_run import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.actions.control_node_action import (
    cannot_write,
    refuse_unwritable,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.actions.pair_action import PairAction
from ansible_collections.longhaul.fleet.plugins.plugin_utils.actions.state_folder import find_folder
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.files import Folder
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.refusal import Refusal
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.console import Activity, Output, ProgressPrinter
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.controller import started_by
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.progress_file import ProgressLog, ProgressWriter
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_facts import find_set_by_facts, refuse_facts
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import ControllerGone, HostRunner
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.preload import prepare
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.failures import ReportedFailure
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.notify import RunEvent
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.notify_delivery import RunMessages
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.restore.request import (
    RestoreOptions,
    RestoreRequest,
    complete_request,
    refuse_variables_of_restore,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.restore.workflow import RestoreWorkflow
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.report import (
    TransferError,
    shorten_lists,
    show_changes,
)

prepare(transfer.DOCUMENTATION)

_FOLDER = "restore_report_dir"


class ActionModule(PairAction):
    """Restore from a snapshot."""

    documentation = DOCUMENTATION
    role = "restore"
    roles = ("restore", "backup")
    users_own = ("request",)
    summary: Mapping[str, object] = {}

    def refuse(self, given: Mapping[str, Any], variables: Mapping[str, Any]) -> str:
        """Return what is wrong with the variables of the role, unless they have made a request before."""
        if given.get("request") or not isinstance(given.get("variables"), Mapping):
            return super().refuse(given, variables)
        return refuse_variables_of_restore({**given, **given["variables"]}, variables["groups"], variables)

    def work(self, options: Mapping[str, Any], variables: Mapping[str, Any]) -> Mapping[str, object]:
        """Complete the request, and restore if this is the host that receives the files."""
        own = str(variables.get("inventory_hostname"))
        refused = refuse_facts(own, find_set_by_facts(variables, *self.roles))
        if refused:
            return {"failed": True, "msg": f"Nothing was done: {refused}"}
        folder = find_folder("longhaul-restore", options["report_dir"], variables, self._templar.template)
        try:
            request = RestoreRequest(**options["request"]) if options["request"] else _complete(options, variables)
        except Refusal as refusal:
            return {"failed": True, "msg": str(refusal)}
        if options["only_request"]:
            return {"changed": False, "request": asdict(request)}
        if request.to != own:
            return {"changed": False, "skipped": True, "skip_reason": f"{request.to} receives the files"}
        refused = "" if self._task.check_mode else refuse_unwritable(folder, _FOLDER)
        if refused:
            return {"failed": True, "msg": refused}
        ends = {"src_host": request.repository_host, "dest_host": request.to, "folder": folder}
        by = started_by(variables)
        own_options = {"request": request, "started_by": by}
        say = (lambda _line: None) if self._task.no_log else Display().display
        messages = RunMessages("restore", options["notify"], by, say, write=not self._task.check_mode)
        names = [request.name]
        messages.send(RunEvent.START, names)
        try:
            result: Mapping[str, Any] = super().work({**options, **ends, **own_options}, variables)
        except OSError as error:
            result = cannot_write(error, folder, _FOLDER)
        except ControllerGone:
            raise
        except Exception as error:  # else nobody would hear of the end of this run
            messages.send_end(names, [ReportedFailure(names[0], "failed", str(error))])
            raise
        failures = [ReportedFailure(names[0], "failed", str(result["msg"]))] if result.get("failed") else []
        lost = messages.send_end(names, failures, summary=self.summary)
        if lost:
            result = {**result, "warnings": [*result.get("warnings", ()), *lost]}
        return {**result, "summary": self.summary} if self.summary else result

    def run_pair(
        self, source: HostRunner, dest: HostRunner, options: Mapping[str, Any], say: Callable[[str], None]
    ) -> Mapping[str, object]:
        """Restore, and return the result of the transfer."""
        task = self._task
        say = (lambda _line: None) if task.no_log else say
        output = Output(options["output"])
        log = ProgressLog(options["progress_file"], say, write=not task.check_mode)
        teller = ProgressPrinter(say, time.monotonic, 1, _activity, ProgressWriter(), output, log)
        workflow = RestoreWorkflow(
            options["request"],
            RestoreOptions.parse(options),
            source,
            dest,
            Folder(options["folder"], writes=not task.check_mode),
            say,
            self.interruption,
            check=task.check_mode,
            diff=task.diff,
            by=options["started_by"],
            teller=teller,
        )
        name = options["request"].name
        try:
            result = workflow.run()
        except ControllerGone:  # the transfer goes on
            raise
        except Exception as error:
            teller.ended(True, name)
            if isinstance(error, TransferError) and error.details is not None and not task.diff:
                shorten_lists(error.details)
            raise
        else:
            teller.ended(False, name)
        finally:
            teller.close()
            self.summary = workflow.summary
        show_changes(result, task.diff)
        return result


def _activity(_name: str) -> Activity:
    return Activity("restore")


def _complete(options: Mapping[str, Any], variables: Mapping[str, Any]) -> RestoreRequest:
    jobs = [{**options["defaults"], **job} for job in options["jobs"]]
    return complete_request(RestoreOptions.parse(options), jobs, variables["groups"])
