#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares training steps on one GPU with PyTorch (eager and torch.compile) and JAX, at equal
precision.

    benchmarks/gpu/frameworks.py prepare FOLDER   imports and compiles the models: needs the tools
                                                  and JAX
    benchmarks/gpu/frameworks.py FOLDER           measures: needs a GPU and what of PyTorch and JAX
                                                  there is

The models are the collection's `small` presets, PyTorch's are written by hand
(benchmarks/execution/torch_models.py). Every contender is a process of its own; they take turns,
and the table has the median over all rounds. The first loss of each must be Baechi's to the
tolerance of its --math: fp32 (full single precision, 1e-4), tf32 or bf16 (what factors may be
rounded to; PyTorch has no such products of singles and takes TF32 for bf16, too). With --device=cpu
(in both parts) all of it runs on one core of the host, which shows that the comparison works, not
how fast a GPU is.
"""

import argparse
import dataclasses
import importlib.util
import json
import os
import pathlib
import select
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [
    str(ROOT / "python"),
    str(ROOT / "python" / "tests"),
    str(ROOT / "benchmarks" / "execution"),
    str(ROOT / "benchmarks" / "gpu"),
]

import turns  # noqa: E402

MODELS = ["gnmt", "inception", "transformer"]
CONTENDERS = {"baechi": "numpy", "torch": "torch", "torch-compile": "torch", "jax": "jax"}
STEPS = 20  # of a contender in a round
WARM = 3  # before the first round; PyTorch and JAX compile, CUDA graphs are captured
LOSS_TOLERANCE = {"fp32": 1e-4, "tf32": 1e-2, "bf16": 4e-2}  # relative, of the first step
JAX_PRECISION = {"fp32": "highest", "tf32": "tensorfloat32", "bf16": "BF16_BF16_F32"}


def library(folder, model, math):
    return folder / f"{model}.{math}.so"


def prepare(options):
    import jax
    import seeds

    import fixtures
    from baechi import init, models

    options.folder.mkdir(parents=True, exist_ok=True)
    for model in options.models:
        module = models.load(model)
        config = module.PRESETS["small"]
        _, args, _ = module.training_step(config)
        leaves, _ = jax.tree_util.tree_flatten_with_path(
            {"params": args[0], "batch": args[2]}, is_leaf=lambda leaf: isinstance(leaf, init.Init)
        )
        named = {
            jax.tree_util.keystr(path, simple=True, separator="/"): value for path, value in leaves
        }
        seeds.save(options.folder / f"{model}.seeds.json", named)
        (options.folder / f"{model}.json").write_text(json.dumps(dataclasses.asdict(config)))
        file = options.folder / f"{model}.mlir"
        subprocess.run(
            [sys.executable, "-m", "baechi.importer", model, "--preset=small", "-o", file],
            check=True,
            env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
        )
        (options.folder / f"{model}.arguments.json").write_text(
            json.dumps(fixtures.arguments_of(file.read_text()))
        )
        machine = "cuda:1@64GiB" if options.device == "cuda" else "host:1"
        for math in JAX_PRECISION:
            subprocess.run(
                [
                    options.bin / "baechi-run",
                    file,
                    f"--machine={machine}",
                    "--costs=roofline",
                    "--emit=so",
                    f"--cuda-math={math}",
                    f"--output={library(options.folder, model, math)}",
                    *([f"--host-target={options.target}"] if options.target else []),
                ],
                check=True,
            )
        file.unlink()


def baechi_step(model, folder, device, math):
    import numpy as np

    import fixtures
    from baechi.steps.library import StepLibrary

    step = StepLibrary(library(folder, model, math))
    made = json.loads((folder / f"{model}.arguments.json").read_text())
    for i, argument in enumerate(made):
        step.set_argument(i, np.ascontiguousarray(fixtures.value_of(*argument)))
    loss = next(i for i, result in enumerate(step.program["results"]) if result["name"] == "loss")

    def run():
        step.run()
        return float(step.result(loss))

    return run


def torch_step(model, folder, device, math, compiled=False):
    import seeds
    import torch
    import torch_models

    torch.backends.cudnn.allow_tf32 = math != "fp32"
    torch.backends.cuda.matmul.allow_tf32 = math != "fp32"
    torch.backends.cudnn.benchmark = True
    if device == "cpu":
        torch.set_num_threads(1)
    arrays = seeds.load(folder / f"{model}.seeds.json")
    config = json.loads((folder / f"{model}.json").read_text())
    return torch_models.training_step(
        model, arrays, config, device, torch.compile if compiled else None
    )


def jax_step(model, folder, device, math):
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # the others need memory, too
    if device == "cpu":
        os.environ["JAX_PLATFORMS"] = "cpu"
        os.environ["XLA_FLAGS"] = (
            "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        )
    import jax

    if jax.default_backend() == "cpu" and device != "cpu":
        raise SystemExit("JAX has no GPU here: its CUDA plugin is not installed")
    from baechi import init, models

    jax.config.update("jax_default_matmul_precision", JAX_PRECISION[math])
    module = models.load(model)
    step, args, donated = module.training_step(module.PRESETS["small"])
    args = jax.tree.map(
        lambda leaf: leaf.value(), args, is_leaf=lambda leaf: isinstance(leaf, init.Init)
    )
    compiled = jax.jit(step, donate_argnums=donated)
    params, optimizer, batch = jax.tree.map(jax.numpy.asarray, args)

    def run():
        nonlocal params, optimizer
        loss, params, optimizer = jax.block_until_ready(compiled(params, optimizer, batch))
        return float(loss)

    return run


def worker(name, model, folder, device, math):
    """A contender's process."""
    if device == "cpu":
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    makers = {
        "baechi": baechi_step,
        "torch": torch_step,
        "jax": jax_step,
        "torch-compile": lambda *given: torch_step(*given, compiled=True),
    }
    step = makers[name](model, pathlib.Path(folder), device, math)
    turns.serve(step, WARM, STEPS)


class Contender:
    def __init__(self, name, model, options):
        self.name, self.times = name, []
        self.seconds = options.seconds
        self.said = tempfile.TemporaryFile("w+")  # a pipe would be full some time
        command = [
            sys.executable,
            __file__,
            "--worker",
            name,
            model,
            str(options.folder),
            options.device,
            options.math,
        ]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.said,
            text=True,
        )

    def begin(self, until):
        """Waits for the first losses."""
        self.losses = self.answer(until)

    def answer(self, until):
        # A line at a time: nothing of the next one waits in Python's own buffer.
        if not select.select([self.process.stdout], [], [], max(0, until - time.monotonic()))[0]:
            self.process.kill()
            self.process.communicate()
            raise RuntimeError(f"no answer within {self.seconds:g} s")
        line = self.process.stdout.readline()
        if not line:
            self.process.communicate()
            self.said.seek(0)
            said = self.said.read().strip().splitlines()
            raise RuntimeError(said[-1] if said else "it ended without a word")
        return json.loads(line)

    def turn(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.times += self.answer(time.monotonic() + self.seconds)["walls"]

    @property
    def milliseconds(self):
        return statistics.median(self.times) * 1e3


def start(model, options):
    """Those that are asked for and installed, by name. They compile beside each other."""
    return {
        name: Contender(name, model, options)
        for name, module in CONTENDERS.items()
        if name in options.contenders and importlib.util.find_spec(module)
    }


def begin(model, started, until):
    """Waits for the first losses of all; those that have some, and why others have none."""
    found, missing = {}, {name: "not started" for name in CONTENDERS if name not in started}
    for name, contender in started.items():
        print(f"frameworks: {model}: {name}", file=sys.stderr, flush=True)
        try:
            contender.begin(until)
            found[name] = contender
        except RuntimeError as error:
            missing[name] = str(error)
    return found, missing


def compare(model, found, missing, options):
    """The row of a model, whether its losses agree, and its ratio; None: nothing to compare
    with."""
    for i in range(options.rounds if found else 0):
        order = list(found.values())
        for contender in order[i % len(order) :] + order[: i % len(order)]:
            try:
                contender.turn()
            except RuntimeError as error:
                missing[contender.name] = str(error)
                del found[contender.name]
    for contender in found.values():
        contender.process.communicate()  # no more lines: they end
    if "baechi" not in found:
        return f"| {model} | {missing['baechi']} |" + " |" * len(CONTENDERS), False, None
    ours = found["baechi"]
    wrong = [
        c.name
        for c in found.values()
        if not abs(c.losses[0] / ours.losses[0] - 1) <= LOSS_TOLERANCE[options.math]
    ]
    others = [c.milliseconds for c in found.values() if c is not ours]
    cells = [
        model,
        *(
            f"{found[name].milliseconds:.3f}" if name in found else missing[name]
            for name in CONTENDERS
        ),
    ]
    ratio = ours.milliseconds / min(others) if others else None
    cells.append(f"{ratio:.2f}" if ratio else "nothing to compare with")
    if wrong:
        cells[-1] += f"; first losses differ: {', '.join(wrong)}"
    return "| " + " | ".join(cells) + " |", not wrong, ratio


def main():
    if sys.argv[1:2] == ["--worker"]:
        return worker(*sys.argv[2:])
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="+", metavar="[prepare] FOLDER")
    parser.add_argument(
        "--models", type=lambda text: text.split(","), default=MODELS, help=", ".join(MODELS)
    )
    parser.add_argument(
        "--contenders",
        type=lambda text: text.split(","),
        default=list(CONTENDERS),
        help=", ".join(CONTENDERS),
    )
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--math", choices=list(JAX_PRECISION), default="fp32")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--seconds", type=float, default=120, help="for a contender's first losses, and its turns"
    )
    parser.add_argument("--target", default="", help="--host-target of baechi-run, if not this one")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "release" / "bin")
    options = parser.parse_args()
    options.folder = pathlib.Path(options.words[-1])
    if options.words[0] == "prepare" and len(options.words) == 2:
        return prepare(options)
    if len(options.words) != 1:
        parser.error("one folder")
    if lacking := [
        file
        for model in options.models
        if not (file := library(options.folder, model, options.math)).exists()
    ]:
        sys.exit(f"frameworks.py: {lacking[0]} is not there: prepare it first")
    # All begin before any is measured: compiling would take from what is.
    started = {model: start(model, options) for model in options.models}
    until = time.monotonic() + options.seconds
    begun = {model: begin(model, started[model], until) for model in options.models}
    names = f"step in {options.math}", "Baechi, ms", "PyTorch, ms", "torch.compile, ms", "JAX, ms"
    print(f"| {' | '.join(names)} | ratio to the best |")
    print("|---|---|---|---|---|---|")
    rows = []
    for model in options.models:  # what ends all of this leaves the rows before
        rows.append(compare(model, *begun[model], options))
        print(rows[-1][0], flush=True)
    print()
    for model, (_, _, ratio) in zip(options.models, rows, strict=True):
        result = "not compared" if ratio is None else "reached" if ratio <= 1 else "missed"
        print(f"goal: {model} in {options.math} in at most the best framework's time: {result}")
    return 0 if all(right for _, right, _ in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
