# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the options of a daemon and its modules, and put them into one form. Private to the collection. Pure.

Nothing here looks at a host: names, types, values, and what contradicts itself.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Iterable, Mapping, cast

from .access import network
from .options import (
    BOOL,
    INT,
    NAMES,
    NOT_SHARED,
    OF_A_MODULE,
    OPTIONS,
    PATH,
    TEXT,
    WORD,
    WORDS,
    RsyncdOption,
    Value,
    Values,
)

OWN_KEYS = {"name": TEXT, "state": WORD, "create_path": BOOL, "path_mode": WORD}
"""What a module has beside rsync's options."""

_YES = frozenset(["yes", "true", "on", "y", "t", "1", "1.0"])
_NO = frozenset(["no", "false", "off", "n", "f", "0", "0.0"])
_RANGES = {
    "port": (1, 65535),
    "listen_backlog": (1, 65535),
    "max_verbosity": (0, 100),
    "timeout": (0, 2**31 - 1),
    "max_connections": (-1, 2**31 - 1),
}
_EMPTY_ALLOWED = frozenset(["log_file", "comment", "motd_file"])
_FREE = frozenset(
    ["comment", "log_format", "filter", "early_exec", "pre_xfer_exec", "post_xfer_exec", "name_converter"]
)
_SPACED = frozenset(["exclude", "include"])  # an element may say "- pattern"
_HOSTS = frozenset(["hosts_allow", "hosts_deny", "proxy_protocol_hosts"])


def same_name(name: str) -> str:
    """Return what two names share when rsync takes them for one module: it ignores case and spaces (seen in 3.5.0)."""
    return re.sub(r"\s+", "", name).lower()


def value_of(option: RsyncdOption, given: Any) -> Value:
    """Return the value of an option in its own type; raises ValueError with the reason.

    Strings that say a boolean, a number or a list are taken, since that is how variables often arrive.
    """
    if option.kind == BOOL:
        return _boolean(given)
    if option.kind == INT:
        return _integer(option, given)
    if option.kind in (WORDS, NAMES):
        return _words(option, given)
    if isinstance(given, (bool, list, tuple, dict)) or given is None:
        raise ValueError(f"{given!r} is no text")
    text = str(given)
    _refuse_unwritable(text)
    if not text and option.key not in _EMPTY_ALLOWED:
        raise ValueError("it is empty. Leave it out instead")
    if option.key not in _FREE and re.search(r"(^|\s)#", text):
        raise ValueError(f"{text!r} holds a #: rsyncd.conf has no comments after a value, so it would be a part of it")
    if text and (option.kind == PATH or option.key == "log_file"):
        _refuse_bad_path(text)
    if option.kind == WORD and re.search(r"\s", text):
        raise ValueError(f"{text!r} holds a space, and it is one word")
    if option.choices and text not in option.choices:
        raise ValueError(f"{text!r} is none of {', '.join(option.choices)}")
    return text


def values_of(given: Mapping[str, Any], known: Iterable[str], where: str) -> tuple[Values, list[str]]:
    """Return the values of a dictionary of options, and what is wrong with them. ``None`` means: not set."""
    known, problems = frozenset(known), []
    values: dict[str, Value] = {}
    for key, value in given.items():
        if key not in known:
            problems.append(f"{where}: {_unknown(str(key), known)}")
        elif value is not None:
            try:
                values[key] = value_of(OPTIONS[key], value)
            except ValueError as error:
                problems.append(f"{where}: {key}: {error}")
    return cast(Values, values), problems


def daemon_values(options: Mapping[str, Any]) -> tuple[Values, list[str]]:
    """Check the options for the daemon and the defaults for its modules; give values and problems."""
    return values_of(options, frozenset(OPTIONS) - NOT_SHARED, "options of the daemon")


def module_values(module: Mapping[str, Any]) -> tuple[Values, list[str]]:
    """Check one module by itself; give its values (with ``name``, ``state``, ``create_path``, ``path_mode``)."""
    name = module.get("name")
    if not isinstance(name, (str, int)) or isinstance(name, bool) or not str(name).strip():
        return {}, ["a module has no name. Give each one a name of its own"]
    name = str(name)
    where = f"module {name}"
    rest = {key: value for key, value in module.items() if key not in OWN_KEYS}
    values, problems = values_of(rest, OF_A_MODULE, where)
    problems += [f"{where}: {text}" for text in _name_problems(name)]
    values["name"], values["state"] = name, str(module.get("state") or "present")
    if values["state"] not in ("present", "absent"):
        problems.append(f"{where}: state is {values['state']!r}; it can be present or absent")
    try:
        values["create_path"] = _boolean(module.get("create_path") or False)
    except ValueError as error:
        problems.append(f"{where}: create_path: {error}")
    values["path_mode"] = str(module.get("path_mode") or "0755")
    if not re.match(r"^0?[0-7]{3,4}$", values["path_mode"]):
        problems.append(f"{where}: path_mode is {values['path_mode']!r}; write it as a text in octal, such as '0750'")
    if values["state"] == "present" and "path" not in module:
        problems.append(f"{where}: path is missing: every module shows one directory. Name it")
    return values, problems


def all_problems(
    modules: Iterable[Mapping[str, Any]],
    options: Mapping[str, Any],
    users: Iterable[str] = (),
    managed_secrets: str = "",
) -> list[str]:
    """Say everything that is wrong, a sentence each; empty if all is well.

    ``users`` have a password in ``managed_secrets``, the file that the role writes (empty if it writes none).
    """
    shared, problems = daemon_values(options)
    users = frozenset(users)
    seen: dict[str, str] = {}
    for module in modules:
        if not isinstance(module, Mapping):
            problems.append(f"{module!r} is no module: write name and path of each")
            continue
        values, own = module_values(module)
        problems += own
        name = values.get("name", "")
        if same_name(name) in seen and name:
            other = seen[same_name(name)]
            problems.append(
                f"module {name} is there twice{'' if other == name else f' (rsync takes {other} and {name} for one)'}: "
                "the daemon would mix the options of both. Rename or remove one"
            )
        seen[same_name(name)] = name
        if not own and values["state"] == "present":
            problems += _contradictions({**shared, **values}, users, managed_secrets)
    return problems


def doubts(values: Values) -> list[str]:
    """Return warnings for a module whose effective values are these: allowed, but seldom meant."""
    name, found = values["name"], []
    if may_write(values) and "auth_users" not in values and "hosts_allow" not in values:
        found.append(f"module {name}: everybody who reaches the port may write into it. Set hosts_allow or auth_users")
    if "hosts_allow" in values and write_as_root(values):
        found.append(f"module {name}: {write_as_root(values)}")
    named = [word for word in values.get("hosts_deny", ()) if word != "*" and not _is_address(word)]
    if named:
        found.append(
            f"module {name}: hosts_deny names {named[0]}: rsync before 3.5.0 lets a host in where the name cannot be "
            "looked up. Use addresses"
        )
    if values.get("insecure_links"):
        found.append(f"module {name}: insecure_links lets whoever makes a symlink in it reach files outside of it")
    return found


def write_as_root(values: Values) -> str:
    """Return who may write to a module as root without a password, if more than single hosts may; else empty."""
    if not may_write(values) or "auth_users" in values or str(values.get("uid", "nobody")) not in ("root", "0"):
        return ""
    who = "everybody who reaches the port"
    if "hosts_allow" in values:
        many = [word for word in values["hosts_allow"] if _is_many(word)]
        if not many:
            return ""
        who = f"everybody in {', '.join(many)}"
    return f"{who} may write as root. Set auth_users, name single hosts in hosts_allow, or give it another uid"


def _is_many(word: str) -> bool:
    """Return whether an element of ``hosts allow`` means more than one host."""
    known = network(word)
    return known.num_addresses > 1 if known is not None else bool(re.search(r"[*?\[@]|^\.|/", word))


def varies(text: str) -> bool:
    """Return whether a value refers to a variable (``%RSYNC_USER_NAME%``), so that it differs between connections."""
    return re.search(r"%[A-Za-z_]\w*%", text) is not None


def may_write(values: Values) -> bool:
    """Return whether anybody may write into a module: by ``read only``, or by a rule of ``auth users``."""
    return not values.get("read_only", True) or any(word.endswith(":rw") for word in values.get("auth_users", ()))


def plain_users(values: Values) -> dict[str, str]:
    """Return the users that ``auth users`` names (no group, no wildcard, not denied) → ``rw``, ``ro`` or empty."""
    found: dict[str, str] = {}
    for rule in values.get("auth_users", ()):
        user, _colon, access = rule.partition(":")
        if user and not user.startswith("@") and not re.search(r"[*?\[]", user) and access != "deny":
            found.setdefault(user, access)
    return found


def _contradictions(values: Values, users: frozenset[str], managed_secrets: str) -> list[str]:
    where, found = f"module {values['name']}", []
    secrets_file = values.get("secrets_file", managed_secrets)
    if values.get("write_only") and not may_write(values):
        found.append(f"{where}: it is read_only and write_only, so nobody could do anything. Set read_only: false")
    if "auth_users" in values and not secrets_file:
        found.append(
            f"{where}: it has auth_users and no passwords, so every login would fail. Give rsyncd_secrets, or a "
            "secrets_file that is there"
        )
    elif secrets_file == managed_secrets:
        for user in plain_users(values):
            if user not in users:
                found.append(f"{where}: auth_users names {user}, who has no password. Add {user} to rsyncd_secrets")
    path = values["path"].rstrip("/")
    if path and f"{secrets_file}/".startswith(f"{path}/"):
        found.append(f"{where}: its path {path} holds the passwords in {secrets_file}. Keep them elsewhere")
    return found


def secret_problems(secrets: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return what is wrong with users (``name``) and their passwords (``password``). No sentence says a password."""
    found, seen = [], set()
    for secret in secrets:
        name, password = secret.get("name"), secret.get("password")
        if not isinstance(name, str) or not name or re.search(r"[:\s]", name) or name.startswith("#"):
            found.append("a secret's name is missing, begins with #, or holds a colon or a space: rename the user")
            continue
        if not isinstance(password, (str, int)) or not str(password) or re.search(r"[\r\n\0]", str(password)):
            found.append(f"the password of {name} is empty, no text, or more than one line")
        if name in seen:
            found.append(f"{name} has two passwords: rsync takes the first one only. Remove one")
        seen.add(name)
    return found


def _name_problems(name: str) -> list[str]:
    if re.search(r"[/\]\[\r\n\0]", name):
        return ["its name holds a slash, a bracket or a line's end, which rsyncd.conf cannot have in a name. Rename it"]
    if name != " ".join(name.split()):
        return ["its name has spaces that rsync would drop. Write single spaces, inside only"]
    if name.lower() == "global":
        return ["[global] means the global options in rsyncd.conf, so no module can be called so. Rename it"]
    if name.startswith(("#", "-")):
        return ["a name that begins with # or - cannot be asked for. Rename it"]
    return []


def _unknown(key: str, known: frozenset[str]) -> str:
    squeezed = re.sub(r"[\s_-]+", "", key).lower()
    for other in sorted(OPTIONS):
        if other.replace("_", "") == squeezed:
            if other in known:
                return f"{key} is no option; it is called {other}"
            return f"{key} counts for the daemon as a whole. Move it to the options of the daemon"
    return f"{key} is no option of rsyncd.conf. Its options are those of rsyncd.conf(5), written in snake case"


def _boolean(given: Any) -> bool:
    if isinstance(given, bool):
        return given
    word = str(given).strip().lower()
    if word in _YES or word in _NO:
        return word in _YES
    raise ValueError(f"{given!r} is no boolean; write true or false")


def _integer(option: RsyncdOption, given: Any) -> int:
    if isinstance(given, bool) or not re.match(r"^-?\d+$", str(given)):
        raise ValueError(f"{given!r} is no number")
    number, (low, high) = int(given), _RANGES[option.key]
    if not low <= number <= high:
        raise ValueError(f"{number} is not between {low} and {high}")
    return number


def _words(option: RsyncdOption, given: Any) -> tuple[str, ...]:
    if isinstance(given, str):
        given = re.split(r",", given[1:]) if given.startswith(",") else re.split(r"[\s,]+", given.strip())
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        given = [given]
    if not isinstance(given, (list, tuple)):
        raise ValueError(f"{given!r} is no list")
    words = tuple(str(word).strip() for word in given)
    for word in words:
        _refuse_unwritable(word)
        if not word:
            raise ValueError("an element of the list is empty")
        if word.startswith("#") or " #" in word:
            raise ValueError(f"{word!r} holds a #: rsyncd.conf has no comments after a value")
        if option.kind == NAMES and "," in word:
            raise ValueError(f"{word!r} holds a comma: write each one as an element of its own")
        if option.kind == WORDS and re.search(r"\s", re.sub(r"^[-+] ", "", word) if option.key in _SPACED else word):
            raise ValueError(f"{word!r} holds a space, which separates the elements in rsyncd.conf")
        if option.key in _HOSTS:
            _refuse_bad_host(word)
    if not words:
        raise ValueError("the list is empty. Leave it out instead")
    return words


def _refuse_unwritable(text: str) -> None:
    if re.search(r"[\r\n\0]", text):
        raise ValueError("it has more than one line: the second would be read as another option")
    if text != text.strip():
        raise ValueError(f"{text!r} begins or ends with a space, which rsync drops")
    if text.endswith("\\"):
        raise ValueError(f"{text!r} ends with a backslash, which joins the next line of the file to it")


def _refuse_bad_path(text: str) -> None:
    if not text.startswith("/"):
        raise ValueError(f"{text!r} is no absolute path: the daemon would look for it wherever it was started")
    if ".." in text.split("/"):
        raise ValueError(f"{text!r} holds `..`: write where it leads")


def _refuse_bad_host(word: str) -> None:
    looks = re.match(r"^[\d.]+(/.*)?$", word) or ":" in word
    if looks and not _is_address(word):
        raise ValueError(f"{word!r} is no address and no network (address/bits)")


def _is_address(word: str) -> bool:
    address, slash, mask = word.partition("/")
    try:
        ipaddress.ip_interface(re.sub(r"%[^/]*", "", address) + slash + mask)
    except ValueError:
        if not slash or ":" not in address:
            return False
        try:  # an IPv6 mask may be written as an address
            ipaddress.ip_address(re.sub(r"%.*", "", address))
            ipaddress.ip_address(mask)
        except ValueError:
            return False
    return True
