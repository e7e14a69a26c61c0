# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of a role, and of a job: all of longhaul.fleet.transfer that the role does not set itself, and its own. Pure.

The documentation of the module declares its options, the argument specs of a role only the role's own. No list of
options of the module is needed anywhere else: a role names those that it sets itself.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from typing import Any, cast

from ansible_collections.longhaul.fleet.plugins.modules.transfer import DOCUMENTATION

from ..common.argument_spec import Option, Spec, spec_from_documentation, spec_of_role, validate_options
from ..common.refusal import Refusal
from ..transfer.options import find_problems

_OF_A_VALUE = ("type", "elements", "default", "choices")  # of an option: what concerns its value as a whole
_OF_ALL_ROLES = "longhaul_"  # how the names of variables begin that are the same for several roles
_OF_EVERY_TASK = ("default", "required")  # of an option: what it does not have in a job


@functools.lru_cache(maxsize=1)
def _options_of_transfer() -> Spec:
    return spec_from_documentation(DOCUMENTATION)


def spec_of_transfer(set_by_role: Mapping[str, str]) -> Spec:
    """Return the options of the module transfer as those of a job, which may leave out any.

    ``set_by_role`` are those that a user cannot set, and what a message says of each.
    """
    spec: Spec = {}
    for name, option in _options_of_transfer().items():
        spec[name] = cast(Option, {key: value for key, value in option.items() if key not in _OF_EVERY_TASK})
        if name in set_by_role:
            spec[name]["set_by_role"] = set_by_role[name]
    return spec


def spec_with_jobs(role: str, set_by_role: Mapping[str, str], of_one_job: Collection[str]) -> Spec:
    """Return the argument spec of a role, with all options of its jobs and of the defaults for them.

    An option of the role takes the place of one of transfer. ``of_one_job`` cannot be set for all jobs. For
    ``set_by_role`` see spec_of_transfer.
    """
    spec = spec_of_role(role)
    options: Spec = {**spec_of_transfer(set_by_role), **spec[f"{role}_jobs"]["options"]}
    for_all = {name: option for name, option in options.items() if name not in of_one_job}
    return {
        **spec,
        f"{role}_jobs": {"type": "list", "elements": "dict", "default": [], "options": options},
        f"{role}_defaults": {"type": "dict", "default": {}, "options": for_all},
    }


def role_options(role: str, variables: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options of a role: its variables checked and converted to their types, defaults for those not set.

    Both are named without the prefix ``ROLE_`` or ``longhaul_``, and other variables are left out. Of a dictionary only
    the type is checked, not its keys and values. Raises Refusal.
    """
    spec: Spec = {}
    for name, option in spec_of_role(role).items():
        own = name.removeprefix(f"{role}_").removeprefix(_OF_ALL_ROLES)
        spec[own] = cast(Option, {key: value for key, value in option.items() if key in _OF_A_VALUE})
    given = {name: value for name, value in variables.items() if name in spec}
    return validate_options(given, spec, (), f"variables of the role {role}")


def passed_on(job: Mapping[str, Any], set_by_role: Collection[str] = ()) -> dict[str, object]:
    """Return what a job says of its transfer."""
    names = _options_of_transfer().keys() - set_by_role
    return {name: value for name, value in job.items() if name in names and value is not None}


def transfer_options(job: Mapping[str, Any], what: str, **own: Any) -> Mapping[str, Any]:
    """Return the options that a task with the transfer of a job would have; ``what`` it is, for messages.

    ``own`` are those that the role sets, as far as they are not None. Raises Refusal.
    """
    given = {**passed_on(job), **{name: value for name, value in own.items() if value is not None}}
    return validate_options(given, _options_of_transfer(), (("port", "port_range"),), what)


def find_transfer_problems(job: Mapping[str, Any], **own: Any) -> list[str]:
    """Return why no pair of hosts could do the transfer of a job, in which no option has a wrong type.

    For ``own`` see transfer_options.
    """
    try:
        return find_problems(transfer_options(job, "options of its transfer", **own))
    except Refusal as refusal:
        return [str(refusal)]
