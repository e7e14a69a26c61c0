# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which checks a change concerns."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[3]
ALWAYS = {"ruff check", "ruff format", "yamllint", "codespell", "prose"}


@pytest.mark.parametrize(
    "changed, wanted, unwanted",
    [
        (["tests/unit/test_x.py"], set(), {"ansible-lint", "changelog", "documentation", "galaxy", "mypy", "site"}),
        (["docs/restore.md"], {"site"}, {"ansible-lint", "changelog", "documentation", "galaxy"}),
        (["roles/nic/tasks/main.yml"], {"ansible-lint"}, {"changelog", "galaxy"}),
        (["plugins/modules/transfer.py"], {"documentation", "ansible-lint", "mypy", "site"}, {"galaxy"}),
        (["plugins/module_utils/_engine/wire/frames.py"], {"mypy"}, {"ansible-lint", "galaxy"}),
        (["plugins/plugin_utils/plan.py"], {"mypy"}, {"ansible-lint", "galaxy"}),
        (["mypy.ini"], {"mypy"}, {"ansible-lint", "documentation", "galaxy", "site"}),
        (["galaxy.yml"], {"ansible-lint", "changelog", "documentation", "galaxy"}, set()),
        (["docs/restore.md", "changelogs/fragments/x.yml"], {"changelog"}, {"galaxy"}),
    ],
)
def test_a_check_runs_where_its_files_changed(import_tool, changed, wanted, unwanted):
    found = import_tool("lint").concerned(changed)
    assert wanted | ALWAYS <= found
    assert not found & unwanted


def test_pre_commit_has_the_versions_that_lint_has():
    config = yaml.safe_load((REPOSITORY / ".pre-commit-config.yaml").read_text())
    wanted = [line for repo in config["repos"] for hook in repo["hooks"] for line in hook["additional_dependencies"]]
    known = (REPOSITORY / "tests/requirements.txt").read_text().splitlines()
    assert sorted({line for line in wanted if line not in known}) == ["PyYAML>=6"]  # ansible-core brings it
