# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action behind longhaul.fleet.migrate_record: write files on the control node, each at once and as a whole."""

from __future__ import annotations

import json
import os
from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.longhaul.fleet.plugins.modules.migrate_record import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.argument_spec import spec_from_documentation


class ActionModule(ActionBase):
    """Write reports and what was done already. It is the control node's own: no connection, no become."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Write the files, and say that nothing changed: what changed is on the hosts."""
        result = super().run(tmp, task_vars)
        _validation, options = self.validate_argument_spec(argument_spec=spec_from_documentation(DOCUMENTATION))
        try:
            for file in options["files"] if not self._task.check_mode else []:
                as_json = json.dumps(file["data"], indent=4, sort_keys=True) + "\n"
                mode = int(file["mode"], 8) if file["mode"] else None
                write_whole(file["path"], as_json if file["text"] is None else file["text"], mode)
        except OSError as error:
            what = f"{error.filename or options['files'][0]['path']} cannot be written here: {error.strerror}"
            result.update(failed=True, msg=f"{what}. Name another place, with {options['option']}")
        result["changed"] = False
        return result


def write_whole(path: str, text: str, mode: int | None = None) -> None:
    """Put a file in place with a rename, on the disk before that. Raises OSError.

    Without a ``mode`` it is 0640, and that of new folders 0750, as far as the umask lets them.
    """
    os.makedirs(os.path.dirname(path), mode=0o750, exist_ok=True)
    partial = f"{path}.{os.getpid()}.part"
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640), "w", encoding="utf-8") as stream:
            if mode is not None:
                os.fchmod(stream.fileno(), mode)
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, path)
    except BaseException:
        if os.path.exists(partial):
            os.unlink(partial)
        raise
