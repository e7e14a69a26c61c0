# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command line: ``make fuzz ARGS="bytes 60"`` takes 60 seconds, ``"turns --inputs 1000000"`` so many inputs.

``bytes``: all decoders read bytes. ``turns``: two ends without files and connections say what they may, or one of them
what it may not. ``dest``, ``source``: a conversation with a real end, with a peer that knows the secret and lies.
``sftp``, ``scp``: our servers hear any client. ``options``: the gate of rsync is asked for any command. It stops at the
first input that ends otherwise than it may, and leaves that input in ``.build/fuzz``; ``make fuzz ARGS="bytes
.build/fuzz/crash-..."`` runs it again. What reached something new is kept there, too, for the next time.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys

from ansible_collections.longhaul.fleet.tests.fuzz import targets

_PACKAGE = targets.__name__.rpartition(".")[0]
_DONE = re.compile(r"stat::number_of_executed_units:\s*(\d+)")


def _fuzz(name: str, arguments: list[str]) -> tuple[int, int]:
    """Run the fuzzer, whose words are passed on; return its exit code and the number of inputs that it tried."""
    argv = [sys.executable, "-m", f"{_PACKAGE}.child", name, f"-artifact_prefix={targets.FOUND}/", "-timeout=60"]
    tried = 0
    with subprocess.Popen([*argv, *arguments], stderr=subprocess.PIPE, text=True, errors="replace") as process:
        assert process.stderr is not None
        for line in process.stderr:
            sys.stderr.write(line)
            counted = _DONE.match(line)
            tried = int(counted[1]) if counted else tried
    return process.returncode, tried


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=sorted(targets.TARGETS))
    parser.add_argument("how", nargs="?", default="", help="seconds, or a file with an input to run again")
    parser.add_argument("--inputs", type=int, default=0, help="to try, in place of so many seconds")
    parser.add_argument("--seed", type=int, default=0, help="of what the fuzzer tries (default: another one each time)")
    given = parser.parse_args()
    if given.how and not given.how.isdigit():
        return _fuzz(given.what, [given.how])[0]
    if not given.how and not given.inputs:
        parser.error("how long? Say the seconds, or --inputs and a number")
    corpus = targets.FOUND / given.what
    corpus.mkdir(parents=True, exist_ok=True)
    for number, sample in enumerate(targets.TARGETS[given.what].samples()):
        (corpus / f"sample-{number}").write_bytes(sample)
    limits = [f"-max_total_time={given.how}"] if given.how else []
    limits += [f"-runs={given.inputs}"] if given.inputs else []
    code, tried = _fuzz(given.what, [*limits, f"-seed={given.seed}", "-print_final_stats=1", str(corpus)])
    print(f"{given.what}: {tried} inputs, {'1 finding, see above' if code else 'no findings'}")
    sys.stdout.flush()
    if not code:
        subprocess.run([sys.executable, "-m", f"{_PACKAGE}.coverage", given.what], check=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
