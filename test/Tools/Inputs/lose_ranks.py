# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""lose_ranks.py N RANK SIGNAL WHEN COMMAND...: N ranks of which one is sent a signal.

COMMAND takes --calls. WHEN: `between` two calls of few steps; `step`, within a call of many. What
the others say is printed, with their number, when they have ended; who goes on for a minute (where
nobody is lost, for five) ends this by a signal. With SIGNAL `SIGSTOP-1` the rank goes on after a
second, with `SLOWED` it runs 20 ms of each 200 for three seconds, with `NONE` nothing happens; the
results of that call are written to LOSE_OUTPUTS of the environment. With LOSE_AT=outward there
ranks meet at this machine's address in its network, where it has one.
"""

import os
import signal
import socket
import subprocess
import sys
import time

count, lost, name, when, *words = sys.argv[1:]
count, lost = int(count), int(lost)
number = getattr(signal, name.removesuffix("-1"), signal.SIGSTOP)
goes_on = name in ("SIGSTOP-1", "SLOWED", "NONE")

host = "localhost"
if os.environ.get("LOSE_AT") == "outward":
    with socket.socket(type=socket.SOCK_DGRAM) as found:
        try:
            found.connect(("192.0.2.1", 9))  # sends nothing
            host = found.getsockname()[0]
        except OSError:
            pass
with socket.socket() as found:
    found.bind((host, 0))
    port = found.getsockname()[1]

variables = {"BAECHI_RANKS": count, "BAECHI_COORDINATOR": f"{host}:{port}", "BAECHI_SILENCE": 2}
processes = [
    subprocess.Popen(
        words,
        env=os.environ | {k: str(v) for k, v in variables.items()} | {"BAECHI_RANK": str(rank)},
        stdin=subprocess.PIPE if rank == 0 else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    for rank in range(count)
]
first = processes[0]


def call(steps: int, outputs: str = "") -> None:
    """Whoever is lost does not read it."""
    try:
        first.stdin.write(f"\t{outputs}\t{steps}\n")
        first.stdin.flush()
    except BrokenPipeError:
        pass


def await_call() -> None:
    for line in first.stdout:
        if line == "call ended\n":
            return


call(2)
await_call()
if when == "step":
    call(10**7)
    time.sleep(0.5)
outputs = os.environ.get("LOSE_OUTPUTS", "")
if name == "SLOWED":
    call(2000, outputs)
    for _ in range(15):
        for each, seconds in ((signal.SIGSTOP, 0.18), (signal.SIGCONT, 0.02)):
            processes[lost].send_signal(each)
            time.sleep(seconds)
elif name == "NONE":
    call(2000, outputs)
else:
    processes[lost].send_signal(number)
if goes_on:
    if name == "SIGSTOP-1":
        time.sleep(1)
        processes[lost].send_signal(signal.SIGCONT)
        call(2)
    first.stdin.close()
elif when != "step":
    call(2)

bad = False
for rank, process in enumerate(processes):
    if rank == lost and number == signal.SIGSTOP and not goes_on:
        continue
    try:
        # What rank 0 reads stays open: an end of input would be an end in order.
        # On a busy machine steps that follow each other take long.
        process.wait(300 if goes_on else 60)
        said = process.stdout.read()
    except subprocess.TimeoutExpired:
        print(f"rank {rank} hangs", file=sys.stderr)
        for each in processes:
            each.kill()
        os.abort()  # No test takes this for the error that it expects.
    if rank != lost or goes_on:
        for line in said.splitlines():
            print(f"{rank}: {line}")
    bad = bad or process.returncode != 0
processes[lost].kill()
sys.exit(bad)
