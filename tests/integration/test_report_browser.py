# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reports in a real browser: without errors, within the width of the screen, in light and dark, and on paper.

The pictures stay in ``tests/output/reports``, to be looked at.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.audit_page import make_audit_page
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.report_page import (
    make_overview as make_backups,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.report_facts import RunFacts, parse_report
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.report_page import make_overview
from ansible_collections.longhaul.fleet.plugins.plugin_utils.report.model import Page
from ansible_collections.longhaul.fleet.plugins.plugin_utils.report.page import render_page
from ansible_collections.longhaul.fleet.tests.support.backup_examples import backup_audit, backup_health, days_ago
from ansible_collections.longhaul.fleet.tests.support.report_examples import HOSTILE, at, fleet

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
OUTPUT = Path(__file__).parents[1] / "output/reports"
SIZES = ((380, 2400), (1600, 1200))
DARK = "--blink-settings=preferredColorScheme=0"
# A copy of the page is measured by a script, which the page itself forbids.
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
PROBE = """<script>addEventListener('load', () => {
  const page = document.documentElement, width = page.clientWidth;
  const wide = [...document.querySelectorAll('body *')].filter(
    (one) => one.getBoundingClientRect().right > width + 1 && !one.closest('svg, thead'));
  const found = {width, scroll: page.scrollWidth, wide: wide.slice(0, 5).map((one) => one.outerHTML.slice(0, 200)),
    images: document.images.length, background: getComputedStyle(document.body).backgroundColor,
    requests: performance.getEntriesByType('resource').length, alerted: window.alerted || 0};
  document.body.setAttribute('data-found', JSON.stringify(found));
});</script>"""

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not any(map(shutil.which, BROWSERS)), reason="cannot run here: chromium is missing (apt-get install chromium)"
    ),
]


class Browser:
    """A headless browser."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._program = next(path for path in map(shutil.which, BROWSERS) if path)

    def run(self, page: Path, *options: str) -> str:
        """Open a page, and return what the browser prints."""
        common = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run")
        own = (f"--user-data-dir={self._folder / 'profile'}", *options, page.as_uri())
        done = subprocess.run([self._program, *common, *own], capture_output=True, text=True, timeout=120, check=True)
        return done.stdout

    def measure(self, page: Path, width: int, *options: str) -> dict:
        """Return what a script finds on a copy of a page."""
        probed = self._folder / "probed.html"
        text = POLICY.sub("", page.read_text(encoding="utf-8"))
        probed.write_text(text.replace("</body>", f"{PROBE}</body>"), encoding="utf-8")
        dom = self.run(probed, f"--window-size={width},900", "--dump-dom", *options)
        return json.loads(html.unescape(re.search(r'data-found="([^"]*)"', dom).group(1)))


@pytest.fixture
def browser(tmp_path: Path) -> Browser:
    """Return a browser with a profile of its own."""
    return Browser(tmp_path)


def make_page(kind: str, count: int, hostile: bool) -> Page:
    """Return the report on so many migrations or backups, or the audit of so many backups."""
    loud = (HOSTILE.replace("alert(1)", "window.alerted = 1") + "x" * 10_000) if hostile else ""
    if kind == "backup":
        return make_backups(backup_health(count, loud), days_ago(0), "ada@control")
    if kind == "audit":
        return make_audit_page(backup_audit(count, loud))
    reports = fleet(count)
    if hostile:
        reports[0]["identity"] = dict.fromkeys(reports[0]["identity"], HOSTILE + "x" * 10_000)
        reports[0]["warnings"] = [loud]
    return make_overview([parse_report(one) for one in reports], RunFacts(at(91_000), "ada@control", "cutover"))


def write(folder: Path, count: int, hostile: bool = False, kind: str = "migrate") -> Path:
    """Write such a page."""
    path = folder / f"{kind}-{count}.html"
    path.write_text(render_page(make_page(kind, count, hostile)), encoding="utf-8")
    return path


def size_of(picture: Path) -> tuple[int, int]:
    """Return the width and the height of a PNG file."""
    return struct.unpack(">II", picture.read_bytes()[16:24])


KINDS = ("migrate", "backup", "audit")


@pytest.mark.parametrize("count", [1, 12, 1000])
@pytest.mark.parametrize("kind", KINDS)
def test_pictures_in_light_and_dark_narrow_and_wide_and_on_paper(
    browser: Browser, tmp_path: Path, kind: str, count: int
) -> None:
    OUTPUT.mkdir(parents=True, exist_ok=True)
    page = write(tmp_path, count, kind=kind)
    for width, height in SIZES:
        for name, options in (("light", ()), ("dark", (DARK,))):
            picture = OUTPUT / f"{kind}-{count}-{width}-{name}.png"
            browser.run(page, f"--screenshot={picture}", f"--window-size={width},{height}", *options)
            assert size_of(picture) == (width, height)
    paper = OUTPUT / f"{kind}-{count}.pdf"
    browser.run(page, f"--print-to-pdf={paper}", "--no-pdf-header-footer")
    assert paper.read_bytes().startswith(b"%PDF-")


@pytest.mark.parametrize("hostile", [False, True])
@pytest.mark.parametrize("width", [500, 1600])  # the least that a headless window has, and a wide one
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_wider_than_the_screen_or_loaded_or_run(
    browser: Browser, tmp_path: Path, kind: str, width: int, hostile: bool
) -> None:
    found = browser.measure(write(tmp_path, 12, hostile, kind), width)
    assert found["scroll"] <= found["width"] and found["wide"] == [], found
    assert (found["images"], found["requests"], found["alerted"]) == (0, 0, 0), found


def test_dark_and_light_have_colours_of_their_own(browser: Browser, tmp_path: Path) -> None:
    page = write(tmp_path, 1)
    light, dark = browser.measure(page, 1600), browser.measure(page, 1600, DARK)
    assert (light["background"], dark["background"]) == ("rgb(255, 255, 255)", "rgb(20, 24, 28)")
