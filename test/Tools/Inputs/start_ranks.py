# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""start_ranks.py N [--as=NAME] COMMAND...: N processes that know each other by variables.

What each says is printed in their order, rank 0's first. `{rank}` in the command is the rank. Ends
badly when one of them does; one that hangs for five minutes ends it by a
signal.
"""

import os
import socket
import subprocess
import sys

count, words = int(sys.argv[1]), sys.argv[2:]
launcher = words.pop(0).removeprefix("--as=") if words[0].startswith("--as=") else ""


def free_port() -> int:
    """One that is free, as is the next, where torchrun's ranks meet."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("localhost", 0))
            port = first.getsockname()[1]
            try:
                second.bind(("localhost", port + 1))
            except (OSError, OverflowError):
                continue
            return port


port = free_port()


def variables(rank: int) -> dict[str, object]:
    if launcher == "torchrun":
        return {
            "MASTER_ADDR": "localhost",
            "MASTER_PORT": port,
            "WORLD_SIZE": count,
            "RANK": rank,
            "TORCHELASTIC_RUN_ID": "none",
        }
    if launcher == "srun":
        return {
            "SLURM_JOB_ID": port - 57344 if port >= 57344 else port,
            "SLURM_STEP_ID": 0,
            "SLURM_STEP_NODELIST": "localhost",
            "SLURM_NTASKS": count,
            "SLURM_PROCID": rank,
            "SLURM_LOCALID": rank,
        }
    return {
        "BAECHI_RANKS": count,
        "BAECHI_RANK": rank,
        "BAECHI_COORDINATOR": f"localhost:{port}",
    }


processes = [
    subprocess.Popen(
        [word.replace("{rank}", str(rank)) for word in words],
        env=os.environ | {name: str(value) for name, value in variables(rank).items()},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    for rank in range(count)
]
bad = False
for rank, process in enumerate(processes):
    try:
        said, _ = process.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        print(f"rank {rank} hangs", file=sys.stderr)
        for each in processes:
            each.kill()
        os.abort()  # No test takes this for the error that it expects.
    sys.stdout.write(said)
    bad = bad or process.returncode != 0
sys.exit(bad)
