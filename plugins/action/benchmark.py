# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action behind longhaul.fleet.benchmark: options in, result out. The work is in plugin_utils/benchmark."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.longhaul.fleet.plugins.module_utils._model.rate import parse_rate
from ansible_collections.longhaul.fleet.plugins.modules import transfer
from ansible_collections.longhaul.fleet.plugins.modules.benchmark import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.actions.pair_action import PairAction
from ansible_collections.longhaul.fleet.plugins.plugin_utils.actions.state_folder import find_benchmark_folder
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.kept import keep_result, newest_results
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.measure import MeasureRequest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.report_page import make_benchmark_page
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.result_text import result_lines
from ansible_collections.longhaul.fleet.plugins.plugin_utils.benchmark.run import BenchmarkRequest, benchmark_pair
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.files import Folder
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.memory import Memory
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.refusal import Refusal
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.typed_json import dump_dataclass
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.controller import started_by
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import HostRunner
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.preload import prepare
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.trust import decide_trust
from ansible_collections.longhaul.fleet.plugins.plugin_utils.report.archive import save_page
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.link_memory import keep_measured_line
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.options import check_options, wanted_ports
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.rules import filter_rules

prepare(transfer.DOCUMENTATION)

_PAGE = "report"  # on all pairs


class ActionModule(PairAction):
    """Measure how fast one inventory host can send to another."""

    documentation = DOCUMENTATION
    mutually_exclusive = (("port", "port_range"),)

    def work(self, options: Mapping[str, Any], variables: Mapping[str, Any]) -> Mapping[str, object]:
        """Work on both hosts, with the folder of results on the control node."""
        folder = find_benchmark_folder(options["folder"], variables, self._templar.template)
        return super().work({**options, "folder": folder, "started_by": started_by(variables)}, variables)

    def run_pair(
        self, source: HostRunner, dest: HostRunner, options: Mapping[str, Any], say: Callable[[str], None]
    ) -> Mapping[str, object]:
        if self._task.check_mode:
            return {"skipped": True, "msg": "nothing is measured in check mode"}
        trust = decide_trust(options["trust"], {one.name: one.variables for one in (source, dest)})
        request = parse_request(options, trust)
        show = (lambda _line: None) if self._task.no_log else say
        result = benchmark_pair(source, dest, request, show, self.interruption)
        found = result.recommendation
        if found is not None and found.method == "stream":  # transfers begin with as many, and go on looking
            hosts, trip = (source.name, dest.name), result.measurement.link.round_trip
            keep_measured_line(Memory(), hosts, found.streams, trip)
        for line in result_lines(result):
            show(line)
        returned: dict[str, object] = {"changed": False, **dump_dataclass(result), "kept": ""}
        if options["keep"]:
            try:
                returned["kept"] = keep_result(options["folder"], result)
                returned.update(write_page(options["folder"], options.get("started_by", ""), show))
            except OSError as error:
                returned["warnings"] = [
                    f"The result is not kept, since {error.filename or options['folder']} cannot be written here: "
                    f"{error.strerror}. Set folder, or the variable longhaul_state_dir"
                ]
        return returned


def write_page(folder: str, by: str, show: Callable[[str], None]) -> Mapping[str, object]:
    """Write the page on the newest results of all pairs; return a warning if it cannot be written. Raises OSError."""
    kept, results = Folder(folder, writes=True), newest_results(folder)
    unwritten = save_page(kept, _PAGE, lambda _earlier: make_benchmark_page(results, time.time(), by))
    if unwritten:
        return {"warnings": [unwritten]}
    show(f"Report: {kept.path_of(f'{_PAGE}.html')}")
    return {}


def parse_request(options: Mapping[str, Any], trust: str) -> BenchmarkRequest:
    """Return the options as a request. Raises Refusal for what cannot be met."""
    src, dest = options["src"] or "", options["dest"] or ""
    if bool(src) != bool(dest):
        raise Refusal(
            f"{'src' if src else 'dest'} is set and {'dest' if src else 'src'} is not: give both, or neither to "
            "measure the line and the processors only"
        )
    check_options({**options, "src": src or "/", "dest": dest or "/"})
    try:
        most = parse_rate(options["bytes"])
    except ValueError:
        raise Refusal(f"bytes is {options['bytes']!r}: write a number of bytes, such as 1G or 500M") from None
    return BenchmarkRequest(
        measure=MeasureRequest(
            src=src,
            dest=dest,
            seconds=options["seconds"],
            bytes=most,
            rules=filter_rules(options),
            one_file_system=options["one_file_system"],
            connect=options["connect"],
            ports=wanted_ports(options),
        ),
        encryption=options["encryption"],
        trust=trust,
        tries=options["methods"] == "measured",
        rsync_floor=options["rsync_floor"],
        port=options["port"],
        port_range=options["port_range"],
    )
