#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares training steps on host devices with JAX (XLA CPU) and PyTorch (eager), as Markdown
tables.

    .venv/bin/python benchmarks/execution/compare_frameworks.py [MODEL...] [--torch-python PYTHON]
    [--write FILE]

Every model is the `small` preset of the collection; PyTorch's are written by hand
(torch_models.py). The contenders take turns: in every round each runs its steps alone. A turn in
which other processes took processor time is repeated, up to --patience seconds. The table has the
median over all undisturbed turns; a time with a * had none. JAX's and PyTorch's processes are
bound to as many cores as they have threads; their CPU time over wall time says whether that held.
A step is forward, backward and update, with the state handed from step to step (donated in JAX).
"""

import argparse
import dataclasses
import json
import os
import pathlib
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import turns

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
# Time ratios to reach to the better of both frameworks on one and on two cores.
GOALS = {
    "transformer": (0.5, 0.4),
    "moe": (None, 0.45),
    "lstm": (0.55, 0.75),
    "gnmt": (0.55, 0.37),
    "convnet": (0.9, 0.95),
    "resnet": (0.9, 0.82),
    "inception": (0.9, 1.1),
    "mlp": (0.9, 0.82),
}
SPEED_UP = 1.85  # to reach by the second device
STEPS = 6  # of a contender in a round; Baechi's first is not counted
LOSS_TOLERANCE = 1e-4  # relative, of the first step
QUIET = 0.05  # processors that others may take in a turn


def jax_step(model, threads, arrays):
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = (
        f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'} "
        f"intra_op_parallelism_threads={threads}"
    )
    import jax
    import numpy as np

    from baechi import init, models

    module = models.load(model)
    config = module.PRESETS["small"]
    step, args, donated = module.training_step(config)
    args = jax.tree.map(
        lambda leaf: leaf.value(), args, is_leaf=lambda leaf: isinstance(leaf, init.Init)
    )
    if not arrays.exists():  # what PyTorch begins with
        leaves, _ = jax.tree_util.tree_flatten_with_path({"params": args[0], "batch": args[2]})
        named = {
            jax.tree_util.keystr(path, simple=True, separator="/"): value for path, value in leaves
        }
        np.savez(arrays, **named)
        arrays.with_suffix(".json").write_text(json.dumps(dataclasses.asdict(config)))
    compiled = jax.jit(step, donate_argnums=donated)
    params, optimizer, batch = jax.tree.map(jax.numpy.asarray, args)

    def run():
        nonlocal params, optimizer
        loss, params, optimizer = jax.block_until_ready(compiled(params, optimizer, batch))
        return float(loss)

    return run


def torch_step(model, threads, arrays):
    import numpy as np
    import torch
    import torch_models

    torch.set_num_threads(threads)
    return torch_models.training_step(
        model, dict(np.load(arrays)), json.loads(arrays.with_suffix(".json").read_text())
    )


def worker(framework, model, threads, arrays):
    """A contender's process."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    step = {"jax": jax_step, "torch": torch_step}[framework](model, threads, pathlib.Path(arrays))
    turns.serve(step, 3, STEPS)


class Contender:
    """Has `measure`, which makes a turn: the seconds of its steps, and the processor time of all
    that it did."""

    def __init__(self, name, threads):
        self.name, self.threads, self.times, self.loads, self.disturbed = name, threads, [], [], []

    def turn(self, patience):
        attempts, deadline = [], time.monotonic() + patience
        while not attempts or (min(attempts)[0] > QUIET and time.monotonic() < deadline):
            before, start = busy_seconds(), time.monotonic()
            times, cpu = self.measure()
            wall = time.monotonic() - start
            attempts.append(((busy_seconds() - before - cpu) / wall, times, cpu / wall))
        foreign, times, load = min(attempts)
        self.times.append(times)
        self.loads.append(load)
        self.disturbed.append(max(0.0, foreign))

    @property
    def milliseconds(self):
        quiet = [times for times, foreign in zip(self.times, self.disturbed) if foreign <= QUIET]
        return statistics.median(time for times in quiet or self.times for time in times) * 1e3

    def __str__(self):
        return f"{self.milliseconds:.1f}" + ("\\*" if min(self.disturbed) > QUIET else "")


def busy_seconds():
    """Processor time that the whole machine has spent, also what its host took from it."""
    user, nice, system, _, _, *others = map(
        int, pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9]
    )
    return (user + nice + system + sum(others)) / os.sysconf("SC_CLK_TCK")


class Framework(Contender):
    """JAX or PyTorch."""

    def __init__(self, python, name, model, threads, arrays):
        super().__init__(name, threads)
        command = [python, __file__, "--worker", name, model, str(threads), str(arrays)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            stderr=subprocess.PIPE,
        )
        self.losses = self._answer()

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name}: " + self.process.communicate()[1].strip()[-2000:])
        return json.loads(line)

    def measure(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        answer = self._answer()
        return answer["walls"], answer["cpu"]

    def close(self):
        self.process.communicate()


class Baechi(Contender):
    """baechi-run on so many host devices: a process a turn, kernels measured by the first. In
    `pieces`, operators are cut where that is predicted to be faster."""

    def __init__(self, binary, module, devices, pieces=False):
        super().__init__("pieces" if pieces else "baechi", devices)
        self.report = module.parent / f"report{self.name}{devices}.json"
        self.command = [
            binary / "baechi-run",
            module,
            f"--machine=host:{devices}",
            f"--splits={'any' if pieces else 'none'}",
            f"--steps={STEPS + 1}",
            "--check-single=false",
            f"--profile={module.parent / 'profile.json'}",
            f"--json={self.report}",
        ]
        self.measure()
        report = json.loads(self.report.read_text())
        self.losses, self.predicted = report["losses"], report["predicted_step_ns"] / 1e6

    def measure(self):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(self.command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError("baechi: " + done.stderr.strip()[-2000:])
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return [json.loads(self.report.read_text())["measured_step_ns"] / 1e9], cpu

    def close(self):
        pass


def contenders(options, model, folder):
    progress(f"{model}: importing")
    module, arrays = folder / "model.mlir", folder / "arrays.npz"
    subprocess.run(
        [sys.executable, "-m", "baechi.importer", model, "--preset=small", "-o", module],
        check=True,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
    )
    makers = [lambda n=n: Framework(sys.executable, "jax", model, n, arrays) for n in (1, 2)]
    if options.torch_python:
        makers += [
            lambda n=n: Framework(options.torch_python, "torch", model, n, arrays) for n in (1, 2)
        ]
    progress(f"{model}: measuring kernels")
    made = [Baechi(options.bin, module, n) for n in (1, 2)]
    made.append(Baechi(options.bin, module, 2, pieces=True))
    progress(f"{model}: starting the frameworks")
    return made + [make() for make in makers]


def compare(options, model):
    """The contenders of a model by name and threads, after all rounds."""
    with tempfile.TemporaryDirectory() as folder:
        found = contenders(options, model, pathlib.Path(folder))
        for i in range(options.rounds):
            for contender in found[i % len(found) :] + found[: i % len(found)]:
                contender.turn(options.patience)
            progress(
                f"{model}: round {i + 1} of {options.rounds}, ms: "
                + ", ".join(f"{c.name} {c.threads}: {c}" for c in found)
            )
        for contender in found:
            contender.close()
    first = [contender.losses[0] for contender in found]
    if max(first) - min(first) > LOSS_TOLERANCE * abs(first[0]):
        raise RuntimeError(
            "first losses differ: " + ", ".join(f"{c.name} {c.losses[0]}" for c in found)
        )
    return {(contender.name, contender.threads): contender for contender in found}


def progress(text):
    print(f"compare_frameworks: {text}", file=sys.stderr, flush=True)


def row(model, found, threads):
    ours = found["baechi" if threads == 1 else "pieces", threads]
    others = [found.get((name, threads)) for name in ("jax", "torch")]
    ratio = ours.milliseconds / min(other.milliseconds for other in others if other)
    goal = GOALS[model][threads - 1]
    cells = [model, str(found["baechi", threads])] + [str(ours)] * (threads - 1)
    cells += [
        f"{other} ({statistics.median(other.loads):.2f})" if other else "not installed"
        for other in others
    ]
    cells += [f"{ratio:.2f}", f"≤ {goal}" if goal else ""]
    if threads == 2:
        one = found["baechi", 1].milliseconds
        cells += [
            f"{one / found['baechi', 2].milliseconds:.2f}",
            f"{one / ours.milliseconds:.2f}",
            f"≥ {SPEED_UP}",
            f"{ours.predicted:.1f}",
            f"{100 * (ours.milliseconds / ours.predicted - 1):+.0f} %",
        ]
    return "| " + " | ".join(cells) + " |"


def tables(results):
    one = [
        "| step | Baechi, one device, ms | JAX, ms (CPU/wall) | PyTorch, ms (CPU/wall) | ratio "
        "to the better | goal |"
    ]
    two = [
        "| step | Baechi, two devices, ms | in pieces, ms | JAX, ms (CPU/wall) | PyTorch, ms "
        "(CPU/wall) | ratio of pieces to the better | goal | speed-up by the second device | in "
        "pieces | goal | predicted in pieces, ms | measured against predicted |"
    ]
    for lines, threads in ((one, 1), (two, 2)):
        lines.append("|" + "---|" * (lines[0].count("|") - 1))
        lines += [row(model, found, threads) for model, found in results.items()]
    disturbed = [
        share for found in results.values() for each in found.values() for share in each.disturbed
    ]
    return "\n".join(
        [
            "One core:",
            "",
            *one,
            "",
            "Two cores:",
            "",
            *two,
            "",
            f"Other processes took {statistics.median(disturbed or [0]):.2f} processors in the "
            "median turn, "
            f"{max(disturbed, default=0):.2f} in the worst.",
        ]
    )


def main():
    if sys.argv[1:2] == ["--worker"]:
        framework, model, threads, arrays = sys.argv[2:]
        return worker(framework, model, int(threads), arrays)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "model", nargs="*", default=list(GOALS), help=f"of {', '.join(GOALS)}; default: all"
    )
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "release" / "bin")
    parser.add_argument(
        "--torch-python", help="a Python that has PyTorch; without it there is no such column"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--patience", type=float, default=60.0, help="seconds to wait in a turn for a quiet machine"
    )
    parser.add_argument("--write", type=pathlib.Path)
    options = parser.parse_args()
    if unknown := set(options.model) - set(GOALS):
        parser.error(f"unknown model '{min(unknown)}'; known: {', '.join(GOALS)}")
    results = {}
    for model in options.model:
        try:
            results[model] = compare(options, model)
        except RuntimeError as error:
            progress(f"{model}: {error}")
        if options.write and results:
            options.write.write_text(
                "# Training steps against JAX and PyTorch: last "
                "results\n\n`benchmarks/execution/compare_frameworks.py` on "
                f"{platform.machine()} with {os.cpu_count()} cores; what the columns mean stands "
                "in it. Median of "
                f"{options.rounds} rounds. The losses of the first step agree to "
                f"{LOSS_TOLERANCE}.\n\n{tables(results)}\n"
            )
    print(tables(results))
    return 0 if len(results) == len(options.model) else 1


if __name__ == "__main__":
    sys.exit(main())
