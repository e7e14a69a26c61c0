# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A transfer as a job on a host, and what the control node can ask of it.

* ``steps``: what the control node asks for. ``commands``: does it; each step imports what it needs.
* ``request``: what a job is asked to do.
* ``probe``: what a host has, what stands at a path, and a fingerprint of the facts on which a plan depends.
* ``launcher``: start a job as a process of its own, watch it, end it, and remove what a killed one left.
* ``main``: what such a process does. ``transfer_job``, ``digest_job``, ``owner_census``, ``benchmark_job``,
  ``consistent_job``: its kinds. ``confine_job``: what it gives up before it deals with the peer.
* ``state``: the folder of a job, its locks. ``reporter``: its status file.
* ``overview``: what all transfers of a host do at the moment.
* ``records``: what the control node keeps of its jobs at their destinations.
* ``leases``: which control node may work on a job.
* ``control_client``: pause, slow or cancel jobs from outside. ``control_loop``: what a job does about that.
* ``bytecode_cache``: the engine as this host's Python compiled it.

Of module_utils nothing else may import it. The modules do, and the control node reads by its types.
"""
