#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps whose pieces the planner finds beside the same cut by hand, as a Markdown table.

    .venv/bin/python benchmarks/splitting/by_hand.py [MODEL...] [--preset small]
    [--transfers lend copy] [--rounds 5]

By hand: the batch is cut in two in the model's JAX source (halves.py), and the step is placed with
--splits=none. The planner's: the whole step with --splits=any and exact. The steps run in turns in
one process, from the same values; their losses are compared. With --rounds=0 nothing is measured:
times are predicted from the roofline. Kernels and compilation (processor seconds, linked) are
multiples of those of the whole step on two devices.
"""

import argparse
import pathlib
import statistics
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import halves  # noqa: E402
import jax  # noqa: E402

from baechi import init  # noqa: E402
from baechi.experiments import measured  # noqa: E402
from baechi.models import configuration  # noqa: E402
from baechi.steps.library import StepLibrary  # noqa: E402

STEPS = 3  # a turn
HEADS = (
    "model, transfers|step|predicted, ms|measured, ms|of one device|over by hand|kernels|"
    "compilation|loss"
)


class Step:
    """Compiled, and opened: its own memory and threads."""

    def __init__(self, module, told, machine, splits, transfers, costs):
        self.told, self.times, self.loss = told, [], None
        library = module.with_name(f"{module.stem}_{machine[-1]}_{splits}.so")
        done = measured.tool(
            "baechi-run", module, f"--machine={machine}", f"--splits={splits}",
            f"--transfers={transfers}", f"--costs={costs}", "--emit=so", f"--output={library}",
        )  # fmt: skip
        self.seconds = measured.checked(done, library.name).cost.cpu_s
        self.library = StepLibrary(library)
        program = self.library.program
        self.predicted = program["predicted"]["step_ns"] / 1e6
        self.kernels = len(
            {each["kernel"] for device in program["devices"] for each in device["operators"]}
        )

    def begin(self, values):
        for index, value in enumerate(values):
            self.library.set_argument(index, value)
        self.library.run()  # its memory is touched

    def turn(self):
        for _ in range(STEPS):
            self.library.run()
            self.times.append(self.library.wall_ns / 1e6)
        names = [each["name"] for each in self.library.program["results"]]
        self.loss = float(self.library.result(names.index("loss")))

    @property
    def ms(self):
        return statistics.median(self.times) if self.times else self.predicted


def imported(folder, name, words):
    module = folder / f"{name}.mlir"
    command = [sys.executable, "-m", "baechi.importer", *words, "-o", module]
    measured.checked(measured.run(command, measured.SEARCH), name)
    return module


def values_of(model, preset):
    _, args, _ = configuration.training_step(model, preset)
    leaves = jax.tree.leaves(args, is_leaf=lambda x: isinstance(x, init.Init))
    return [np.asarray(x.value() if isinstance(x, init.Init) else x) for x in leaves]


def rows(model, preset, transfers, rounds, folder):
    whole = imported(folder, "whole", [model, f"--preset={preset}"])
    source = f"{ROOT / 'benchmarks/splitting/halves.py'}:step"
    cut = imported(folder, "hand", [source, "--set", f"model={model}", f"preset={preset}"])
    costs = "measured" if rounds else "roofline"
    steps = [
        Step(whole, "one device", "host:1", "none", "lend", costs),
        Step(whole, "whole", "host:2", "none", transfers, costs),
        Step(cut, "by hand", "host:2", "none", transfers, costs),
        Step(whole, "`any`", "host:2", "any", transfers, costs),
        Step(whole, "`exact`", "host:2", "exact", transfers, costs),
    ]
    if rounds:
        values = values_of(model, preset)
        for step in steps:
            step.begin(values)
        for _ in range(rounds):
            for step in steps:
                step.turn()
    one, two, hand = steps[:3]
    for step in steps:
        yield "|".join(
            [f"{model}, {transfers}", step.told, f"{step.predicted:.1f}"]
            + [f"{step.ms:.1f}" if rounds else "–"]
            + [f"{one.ms / step.ms:.2f}", f"{step.ms / hand.ms:.2f}"]
            + [f"{step.kernels / two.kernels:.2f}", f"{step.seconds / two.seconds:.2f}"]
            + [f"{step.loss:.5f}" if rounds else "–"]
        )
        step.library.close()
    if rounds:
        for step in steps:
            np.testing.assert_allclose(step.loss, one.loss, rtol=1e-3, err_msg=step.told)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    models = list(halves.BATCH_DIMENSION)
    parser.add_argument("model", nargs="*", default=models, help=f"of {', '.join(models)}")
    parser.add_argument("--preset", default="small")
    parser.add_argument("--transfers", nargs="+", default=["lend"], choices=["lend", "copy"])
    parser.add_argument("--rounds", type=int, default=5, help=f"turns of {STEPS} steps; 0: none")
    options = parser.parse_args()
    if unknown := set(options.model) - set(models):
        parser.error(f"'{min(unknown)}' cannot be cut by hand; known: {', '.join(models)}")
    print("| " + HEADS.replace("|", " | ") + " |")
    print("|" + "---|" * (HEADS.count("|") + 1))
    for model in options.model:
        for transfers in options.transfers:
            with tempfile.TemporaryDirectory() as folder:
                for row in rows(
                    model, options.preset, transfers, options.rounds, pathlib.Path(folder)
                ):
                    print("| " + row.replace("|", " | ") + " |", flush=True)


if __name__ == "__main__":
    main()
