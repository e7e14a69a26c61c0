# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare two trees on two hosts by what each host reads itself: what the module verify does."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ansible_collections.longhaul.fleet.plugins.module_utils._tree.content_hash import common_algorithm

from ..common.host_text import harmless_data
from ..common.memory import Memory
from ..common.refusal import Refusal
from ..hosts.host_runner import HostRunner
from ..hosts.pair import run_parallel
from .comparison import Comparison
from .options import check_options
from .owner_census import CensusSettings, take_census
from .owners import names_to_look_up, owner_table
from .plan import transfer_id
from .probe import parse_described
from .remembered import recall_size, recall_time_units, remember_size
from .report import coarse_times
from .roots import child_name, resolve_roots
from .rules import filter_rules, refuse_misread_rules

if TYPE_CHECKING:
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.probe import EndDescription

FIELDS = ("size", "mtime", "mode", "owner", "target", "acls", "xattrs", "links")
_PATIENCE = 300.0  # seconds that a host may be out of reach


def compare_trees(
    source: HostRunner,
    dest: HostRunner,
    options: Mapping[str, Any],
    say: Callable[[str], None],
    memory: Memory | None = None,
    reads_rounded: bool = False,
    expects: tuple[int, int] = (0, 0),
) -> dict[str, Any]:
    """Return what the module verify returns, also for trees that differ; ``options`` are its own.

    Nothing is written to find out how coarsely the destination keeps times: ``memory`` has what a transfer found, else
    what is seen there counts. ``reads_rounded``: where times are coarse, contents are compared in any case.
    ``expects`` are the entries and bytes of the tree as far as they are known, for the progress; else ``memory`` has
    those that the last transfer or comparison of the pair found.
    Raises Refusal, HostFailed and ComparisonFailed.
    """
    started = time.monotonic()
    check_options(options)
    child = child_name(options["src"])
    owner_map = options["owner_map"]
    rules = filter_rules(options)
    described = run_parallel(
        {
            "source": lambda: _describe(source, options["src"], "", names_to_look_up(owner_map, "source"), rules),
            "dest": lambda: _describe(dest, options["dest"], child, names_to_look_up(owner_map, "dest"), rules),
        }
    )
    at_source, at_dest = described["source"], described["dest"]
    names = (source.name, dest.name)
    roots = resolve_roots(options["src"], options["dest"], at_source["path"], at_dest["path"], names)
    refuse_misread_rules(options["src"], options["dest"], roots, rules)
    if roots.target["type"] == "missing":
        raise Refusal(f"there is nothing at {roots.dest} on {dest.name}: check dest and its trailing slash")
    algorithm = common_algorithm(at_source["hash_speeds"], at_dest["hash_speeds"])
    identity = transfer_id(source.name, options["src"], dest.name, options["dest"])
    known = {"source": at_source["owners"], "dest": at_dest["owners"]}
    numbers, warnings = owner_table(owner_map, known, {"source": source.name, "dest": dest.name})
    fields = list(options["fields"] if options["fields"] is not None else FIELDS)
    if not options["numeric_ids"] and {"owner", "acls"} & set(fields):
        settings: CensusSettings = {
            "rules": rules,
            "only": roots.only,
            "one_file_system": options["one_file_system"],
            "exclude_if_present": options["exclude_if_present"] or [],
            "exclude_caches": options["exclude_caches"],
            "preserve": ["owner", "group", "acls"],
            "numeric_ids": False,
            "owner_map": numbers,
        }
        label = f"{source.name} -> {dest.name}"
        runners = {"source": source, "dest": dest}
        numbers = take_census(runners, identity, roots.source, settings, say, label, _PATIENCE).table
    units = recall_time_units(memory, identity) or roots.target.get("time_units", {})
    units = units if "mtime" in fields else {}
    reads_rounded = reads_rounded and bool(units) and not options["checksum"]
    expects = expects if any(expects) else recall_size(memory, identity)
    compared = Comparison(
        runners={"source": source, "dest": dest},
        roots={"source": roots.source, "dest": roots.dest},
        identity=identity,
        fields=fields + (["content"] if options["checksum"] or reads_rounded else []),
        content_of_rounded=reads_rounded,
        time_units=units,
        rules=rules,
        only=roots.only,
        one_file_system=options["one_file_system"],
        exclude_if_present=options["exclude_if_present"] or (),
        exclude_caches=options["exclude_caches"],
        owner_map=numbers,
        algorithm=algorithm,
        extra=options["extra"] and roots.only is None,
        limit=options["limit"],
        changed_after_ns=at_source["now_ns"],
        expects_entries=expects[0],
        expects_bytes=expects[1],
        label=f"{source.name} -> {dest.name}",
    ).run(say)
    remember_size(memory, identity, compared.counts["source"]["entries"], compared.counts["source"]["bytes"])
    total = compared.differences_total
    result: dict[str, Any] = {
        "changed": False,
        "identical": not total,
        "differences": list(compared.differences),
        "differences_total": total,
        "differences_truncated": total > len(compared.differences),
        "unstable": compared.unstable,
        "algorithm": algorithm if options["checksum"] or reads_rounded else "",
        "duration": round(time.monotonic() - started, 3),
        **compared.counts,
    }
    if units:
        warnings = [*warnings, coarse_times(units, roots.dest, dest.name)]
    if warnings:
        result["warnings"] = warnings
    return harmless_data(result)


def _describe(
    runner: HostRunner, path: str, child: str, owners: dict[str, list[str]], rules: list[str]
) -> EndDescription:
    """Ask a host what stands at a path, how fast it hashes, and for the numbers of owners."""
    (said,) = runner.run({"do": "describe", "path": path, "child": child, "owners": owners, "rules": rules})
    return parse_described(said)
