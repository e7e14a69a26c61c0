# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The conditions of a search: what they match, and what is wrong with those that match nothing."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.conditions import parse_conditions
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.errors import Refused

PATHS = [
    b"", b"a.conf", b"etc", b"etc/a.conf", b"etc/b.txt", b"etc/x/a.conf", b"etc/x/y/a.conf", b"etcetera/a.conf",
    b"new\nline", b"\xff\xfe", b"[x]", b"x",
]  # fmt: skip


def matched(**match):
    (test,) = parse_conditions(match).paths
    return [path for path in PATHS if test(path)]


@pytest.mark.parametrize(
    "match, paths",
    [
        ({"path": "etc/x"}, [b"etc/x/a.conf", b"etc/x/y/a.conf"]),
        ({"path": "/etc/"}, [b"etc", b"etc/a.conf", b"etc/b.txt", b"etc/x/a.conf", b"etc/x/y/a.conf"]),
        ({"path": "a.conf"}, [b"a.conf"]),
        ({"path": "/"}, PATHS),
        ({"path": "new\\#012line"}, [b"new\nline"]),
        ({"path": "\\#377\\#376"}, [b"\xff\xfe"]),
        ({"glob": "a.conf"}, [b"a.conf", b"etc/a.conf", b"etc/x/a.conf", b"etc/x/y/a.conf", b"etcetera/a.conf"]),
        ({"glob": "*.txt"}, [b"etc/b.txt"]),
        ({"glob": "etc/*"}, [b"etc/a.conf", b"etc/b.txt"]),
        ({"glob": "/etc"}, [b"etc"]),
        ({"glob": "etc/*/*.conf"}, [b"etc/x/a.conf"]),
        ({"glob": "etc/**/*.conf"}, [b"etc/a.conf", b"etc/x/a.conf", b"etc/x/y/a.conf"]),
        ({"glob": "**/y/**"}, [b"etc/x/y/a.conf"]),
        ({"glob": "*"}, PATHS),
        ({"glob": "?"}, [b"x"]),
        ({"glob": "[wx]"}, [b"x"]),
        ({"glob": "[!a-w]"}, [b"x"]),
        ({"glob": "[[]x]"}, [b"[x]"]),
        ({"glob": "[x"}, []),
        ({"glob": "new*line"}, [b"new\nline"]),
        ({"glob": "**"}, PATHS),
        ({"glob": "**/**/a.conf"}, [b"a.conf", b"etc/a.conf", b"etc/x/a.conf", b"etc/x/y/a.conf", b"etcetera/a.conf"]),
        ({"glob": "**/x/**/a.conf"}, [b"etc/x/a.conf", b"etc/x/y/a.conf"]),
        ({"glob": "etc/*/**"}, [b"etc/x/a.conf", b"etc/x/y/a.conf"]),
        ({"glob": "e*c*a/*.*o*"}, [b"etcetera/a.conf"]),
        ({"regex": "^etc/.\\.txt$"}, [b"etc/b.txt"]),
        ({"regex": "y"}, [b"etc/x/y/a.conf"]),
    ],
)
def test_paths(match, paths):
    assert matched(**match) == paths


@pytest.mark.parametrize(
    "glob, path, holds",
    [
        ("?", "ä".encode(), True),
        ("??", "ä".encode(), False),
        ("?x", b"ax", True),
        ("*ä?", "xäö".encode(), True),
        ("[!a]", "ä".encode(), True),
        ("[!]a]", b"b", True),
        ("[!]a]", b"]", False),
        ("[!]a]", b"/", False),
        ("[]a]", b"]", True),
        ("[&&^~|]", b"&", True),
        ("x[!a]y", b"x/y", False),
        ("[.-0]", b"/", False),
        ("*a*b", b"xabab", True),
        ("*a*b", b"xabac", False),
        ("*ab*ab", b"ab", False),
        ("*aba*ba", b"ababa", True),
        ("*aba*aba", b"ababa", False),
        ("**/a/**/a/b", b"a/a/a/b", True),
        ("**/a/**/a/b", b"a/b", False),
        ("**/a/b/**/b/*", b"a/b/a/b/b/c", True),
        ("**/a*/b/**", b"a1/c/a2/b/c", True),
        ("a/**/b", b"a/b", True),
        ("a/**/b", b"ab", False),
        ("a**", b"abc", True),
    ],
)
def test_one_path(glob, path, holds):
    (test,) = parse_conditions({"glob": glob}).paths
    assert bool(test(path)) == holds


@pytest.mark.parametrize("glob", ["*a" * 30 + "*b", "**/a/" * 30 + "b", "**/*a*/" * 20 + "b", "x/" + "**/*" * 20 + "b"])
def test_no_pattern_takes_long(glob):  # with backtracking it would not end
    (test,) = parse_conditions({"glob": glob}).paths
    assert not test(b"a" * 250)
    assert not test(b"x/" + b"/".join([b"a"] * 100))
    assert not test(b"/".join([b"a" * 40] * 100))


@pytest.mark.parametrize(
    "match, holds, fails",
    [
        ({"type": "d"}, ("d", 0, 0, 0, 0), ("f", 0, 0, 0, 0)),
        ({"size_min": "1K"}, ("f", 1024, 0, 0, 0), ("f", 1023, 0, 0, 0)),
        ({"size_min": "0"}, ("f", 0, 0, 0, 0), ("d", 0, 0, 0, 0)),
        ({"size_max": "2 MiB"}, ("f", 2 << 20, 0, 0, 0), ("f", (2 << 20) + 1, 0, 0, 0)),
        ({"size_max": 10}, ("f", 10, 0, 0, 0), ("l", 5, 0, 0, 0)),
        ({"owner": 0}, ("f", 1, 0, 9, 0), ("f", 1, 1, 9, 0)),
        ({"group": "7"}, ("f", 1, 0, 7, 0), ("f", 1, 0, 0, 0)),
        ({"newer": "1970-01-02"}, ("f", 1, 0, 0, 86400 * 10**9), ("f", 1, 0, 0, 86400 * 10**9 - 1)),
        ({"older": "1970-01-01 00:01"}, ("f", 1, 0, 0, 60 * 10**9 - 1), ("f", 1, 0, 0, 60 * 10**9)),
        ({"older": "1970-01-01T00:00:00Z"}, ("f", 1, 0, 0, -1), ("f", 1, 0, 0, 0)),
    ],
)
def test_values(match, holds, fails):
    conditions = parse_conditions(match)
    test = conditions.make_test()
    assert conditions.has_values and conditions.paths == () and test(*holds) and not test(*fails)


@pytest.mark.parametrize(
    "match, problem",
    [
        ({}, "without a condition"),
        ({"glob": ""}, "without a condition"),
        ({"name": "x"}, "name is no condition"),
        ({"regex": "(x"}, "regex '(x' cannot be understood"),
        ({"regex": "x" * 5000}, "more than 4096"),
        ({"glob": "[z-a]"}, "glob '[z-a]' cannot be understood"),
        ({"glob": "[ä]"}, "only ASCII"),
        ({"glob": "\ud800"}, "surrogate"),
        ({"regex": "\ud800"}, "surrogate"),
        ({"path": "\ud800"}, "surrogate"),
        ({"type": "x"}, "type is 'x'"),
        ({"size_min": "1.5G"}, "size_min is '1.5G'"),
        ({"size_max": "-1"}, "size_max is '-1'"),
        ({"owner": "root"}, "owner is 'root'"),
        ({"owner": 1 << 32}, "owner is"),
        ({"newer": "yesterday"}, "newer is 'yesterday'"),
        ({"older": "01/02/2026"}, "older is"),
    ],
)
def test_what_is_wrong_is_named(match, problem):
    with pytest.raises(Refused) as refused:
        parse_conditions(match)
    assert problem in str(refused.value)
