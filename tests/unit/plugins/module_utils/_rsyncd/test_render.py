# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""rsyncd.conf written by the role, and read with what it includes."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._rsyncd import render
from ansible_collections.longhaul.fleet.plugins.module_utils._rsyncd.conf import key_of, load, logical_lines

THEIRS = """\
# the distribution's
pid file = /run/their.pid
uid = ftp
[ftp]
  path = /srv/ftp
"""


def loaded(files: dict[str, str], path: str = "/etc/rsyncd.conf"):
    def read(name: str) -> str:
        if name not in files:
            raise FileNotFoundError(name)
        return files[name]

    def names(folder: str):
        folder = folder.rstrip("/")
        found = [name[len(folder) + 1 :] for name in files if name.startswith(f"{folder}/")]
        return found or None

    return load(path, read, names)


@pytest.mark.parametrize(
    "key, value, text",
    [
        ("read_only", True, "read only = yes"),
        ("munge_symlinks", False, "munge symlinks = no"),
        ("pre_xfer_exec", "/bin/true", "pre-xfer exec = /bin/true"),
        ("hosts_allow", ("10.0.0.1", "10.1.0.0/16"), "hosts allow = 10.0.0.1 10.1.0.0/16"),
        ("auth_users", ("a:rw", "b"), "auth users = a:rw b"),
        ("auth_users", ("a:rw", "@some group"), "auth users = ,a:rw, @some group"),
        ("port", 873, "port = 873"),
        ("log_file", "", "log file ="),
    ],
)
def test_lines(key, value, text):
    assert render.line(key, value) == text


@pytest.mark.parametrize(
    "name, file",
    [("data", "data.conf"), ("my data", "my%20data.conf"), (".hidden", "%2Ehidden.conf"), ("d\u00e4", "d%C3%A4.conf")],
)
def test_names_of_files(name, file):
    assert render.file_name(name) == file


def test_the_file_of_a_module():
    values = {"name": "data", "state": "present", "create_path": True, "uid": "root", "path": "/srv", "read_only": True}
    text = render.module_text(values, {"timeout": 600, "uid": "x", "port": 873}, "# managed")
    assert text == (
        "# managed\n# longhaul.fleet.rsyncd: module data\n[data]\n"
        "path = /srv\nread only = yes\nuid = root\ntimeout = 600\n"
    )
    assert render.is_ours(text)
    assert not render.is_ours("# managed by hand\n[data]\n")


def test_lines_of_others_stay_and_a_second_time_changes_nothing():
    once = render.include_text(THEIRS, {"port": 8730}, "/etc/rsyncd.d", "managed\nby")
    assert THEIRS in once
    assert once.startswith("# BEGIN longhaul.fleet.rsyncd daemon\n# managed\n# by\nport = 8730\n# END")
    assert once.endswith("[global]\n&include /etc/rsyncd.d\n# END longhaul.fleet.rsyncd modules\n")
    assert render.include_text(once, {"port": 8730}, "/etc/rsyncd.d", "managed\nby") == once
    assert render.without_blocks(once) == THEIRS
    changed = render.include_text(once, {}, "/etc/rsyncd.d")
    assert "port" not in changed and THEIRS in changed


@pytest.mark.parametrize(
    "existing", ["", "uid = x", "&include /etc/rsyncd.d\n", "  &include /etc/rsyncd.d/ \n", "comment = x \\\n"]
)
def test_whatever_is_there_the_modules_are_read(existing):
    text = render.include_text(existing, {}, "/etc/rsyncd.d")
    files = {"/etc/rsyncd.conf": text, "/etc/rsyncd.d/a.conf": "[a]\npath = /a\n"}
    conf = loaded(files)
    assert [module.name for module in conf.modules] == ["a"]
    assert text.count("&include") == 1
    assert render.include_text(text, {}, "/etc/rsyncd.d") == text


def test_the_modules_of_others_get_nothing_of_ours():
    text = render.include_text(THEIRS, {"port": 8730}, "/etc/rsyncd.d")
    ours = render.module_text({"name": "data", "path": "/srv", "uid": "root"}, {"timeout": 9})
    conf = loaded({"/etc/rsyncd.conf": text, "/etc/rsyncd.d/data.conf": ours, "/etc/rsyncd.d/note.txt": "[x]\n"})
    assert conf.start == {"port": "8730", "pid_file": "/run/their.pid", "uid": "ftp"}
    ftp, data = conf.modules
    assert (ftp.name, ftp.options["path"], "timeout" in ftp.options) == ("ftp", "/srv/ftp", False)
    assert (data.options["uid"], data.options["timeout"]) == ("root", "9")
    assert data.files == ["/etc/rsyncd.d/data.conf"]


def test_the_whole_file():
    text = render.whole_text({"port": 8730, "log_file": "/l"}, "/etc/rsyncd.d", "managed")
    assert text.splitlines()[1:] == [
        "# longhaul.fleet.rsyncd: the whole file",
        "log file = /l",
        "port = 8730",
        "&include /etc/rsyncd.d",
    ]


def test_a_trial_reads_another_folder():
    text = "&include /etc/rsyncd.d\n &MERGE /etc/rsyncd.d/ \n&include /etc/rsyncd.d.old\n"
    redirected = render.redirected(text, "/etc/rsyncd.d", "/t").splitlines()
    assert redirected == ["&include /t", " &MERGE /t", "&include /etc/rsyncd.d.old"]


def test_logical_lines():
    text = "# no\n; no\n a = 1\t\nb = 2 \\\n  # part of b\n\n[x]\nc = 3 \\"
    assert logical_lines(text) == ["a = 1", "b = 2 # part of b", "[x]", "c = 3"]


@pytest.mark.parametrize(
    "name, key",
    [
        ("Read Only", "read_only"),
        ("readonly", "read_only"),
        ("read_only", "read_only"),
        ("pre-xfer exec", "pre_xfer_exec"),
        ("read-only", "read-only"),
    ],
)
def test_keys(name, key):
    assert key_of(name) == key


def test_options_by_their_own_names():
    (module,) = loaded({"/etc/rsyncd.conf": "[a]\nReadOnly = no\npath=/a\nodd thing = 1\n"}).modules
    assert module.named() == {"read only": "no", "path": "/a", "oddthing": "1"}


def test_what_an_include_sets_stays_in_it_and_what_a_merge_sets_does_not():
    conf = loaded(
        {
            "/etc/rsyncd.conf": "uid = 1\n&include /i\n&merge /m/x.inc\n[a]\npath=/a\n"
            "[global]\nuid = 3\n[b]\npath=/b\n",
            "/i/one.conf": "uid = 9\nport = 5\n[one]\npath=/one\n",
            "/m/x.inc": "gid = 7\n",
        }
    )
    assert {module.name: module.options.get("uid") for module in conf.modules} == {"one": "9", "a": "1", "b": "3"}
    assert [module.options.get("gid") for module in conf.modules] == [None, "7", "7"]
    assert conf.start == {"uid": "1", "gid": "7"}


def test_one_module_in_two_files_is_one_that_is_mixed():
    conf = loaded(
        {"/etc/rsyncd.conf": "[Data]\npath=/a\n&include /etc/d", "/etc/d/x.conf": "[da ta]\ncomment=second\n"}
    )
    (module,) = conf.modules
    assert (module.name, module.options, len(module.files)) == ("Data", {"path": "/a", "comment": "second"}, 2)


def test_a_file_that_is_missing_is_named():
    conf = loaded({"/etc/rsyncd.conf": "&include /nowhere\n[a]\npath=/a\n"})
    assert conf.missing == ["/nowhere"]
    with pytest.raises(FileNotFoundError):
        loaded({})


def test_files_that_include_each_other_end():
    conf = loaded({"/etc/rsyncd.conf": "&merge /etc/rsyncd.conf\n[a]\npath=/a\n"})
    assert [module.name for module in conf.modules] == ["a"]
