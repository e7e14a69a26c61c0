# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An environment is recreated when its own requirements change, and not when those of others do."""

from __future__ import annotations

import pytest


@pytest.fixture(name="environments")
def _environments(import_tool, tmp_path, monkeypatch):
    tool = import_tool("venv")
    monkeypatch.setattr(tool, "REPOSITORY", tmp_path)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/requirements.txt").write_text("# all\n-r requirements-run.txt\nruff\n")
    (tmp_path / "tests/requirements-run.txt").write_text("ansible-core\n")
    (tmp_path / "tests/requirements-docs.txt").write_text("sphinx\n")
    return tool


def test_requirements_include_those_of_the_files_that_they_name(environments):
    assert environments.requirements_text("requirements.txt") == "# all\nansible-core\n\nruff\n"


def test_every_environment_has_requirements(import_tool):
    environments = import_tool("venv")
    names = [*environments.KINDS, "py3.8"]
    assert all(environments.requirements_text(environments.kind_of(name).requirements) for name in names)
