#!/usr/bin/env python3
# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Predicts what the planner's pieces bring beside the same cut by hand, as a Markdown table.

    .venv/bin/python benchmarks/splitting/by_hand.py [MODEL...] [--preset small]
    [--transfers lend copy]

By hand: the batch is cut in two in the model's JAX source (halves.py), and the step is placed with
--splits=none. The planner's: the whole step with --splits=any and exact. All are steps of two host
devices with the roofline's costs, so nothing is measured. Kernels and compilation (processor
seconds, linked) are multiples of those of the whole step on two devices.
"""

import argparse
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import halves  # noqa: E402

from baechi.experiments import measured  # noqa: E402
from baechi.steps.library import StepLibrary  # noqa: E402


class Built:
    def __init__(self, module, machine, splits, transfers):
        library = module.with_name(f"{module.stem}_{machine[-1]}_{splits}_{transfers}.so")
        done = measured.tool(
            "baechi-run", module, f"--machine={machine}", f"--splits={splits}",
            f"--transfers={transfers}", "--costs=roofline", "--emit=so", f"--output={library}",
        )  # fmt: skip
        self.seconds = measured.checked(done, library.name).cost.cpu_s
        opened = StepLibrary(library)
        self.step_ms = opened.program["predicted"]["step_ns"] / 1e6
        devices = opened.program["devices"]
        self.kernels = len({each["kernel"] for device in devices for each in device["operators"]})
        opened.close()


def imported(folder, name, words):
    module = folder / f"{name}.mlir"
    command = [sys.executable, "-m", "baechi.importer", *words, "-o", module]
    measured.checked(measured.run(command, measured.SEARCH), name)
    return module


def row(model, preset, transfers, folder):
    whole = imported(folder, "whole", [model, f"--preset={preset}"])
    source = f"{ROOT / 'benchmarks/splitting/halves.py'}:step"
    cut = imported(folder, "hand", [source, "--set", f"model={model}", f"preset={preset}"])
    one = Built(whole, "host:1", "none", "lend")
    two = Built(whole, "host:2", "none", transfers)
    hand = Built(cut, "host:2", "none", transfers)
    speed_up = one.step_ms / two.step_ms
    cells = [model, transfers, f"{one.step_ms:.1f}", f"{two.step_ms:.1f} ({speed_up:.2f})"]
    for splits in (None, "any", "exact"):
        found = Built(whole, "host:2", splits, transfers) if splits else hand
        told = f"{found.step_ms:.1f} ({one.step_ms / found.step_ms:.2f})"
        ratio = f"{found.step_ms / hand.step_ms:.2f}"
        kernels, seconds = found.kernels / two.kernels, found.seconds / two.seconds
        cells += [told, *([ratio] if splits else []), f"{kernels:.2f}, {seconds:.2f}"]
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    models = list(halves.BATCH_DIMENSION)
    parser.add_argument("model", nargs="*", default=models, help=f"of {', '.join(models)}")
    parser.add_argument("--preset", default="small")
    parser.add_argument("--transfers", nargs="+", default=["lend"], choices=["lend", "copy"])
    options = parser.parse_args()
    if unknown := set(options.model) - set(models):
        parser.error(f"'{min(unknown)}' cannot be cut by hand; known: {', '.join(models)}")
    heads = "model|transfers|one device, ms|whole, ms|by hand, ms|kernels, compilation"
    for splits in ("any", "exact"):
        heads += f"|`{splits}`, ms|over by hand|kernels, compilation"
    print("| " + heads.replace("|", " | ") + " |")
    print("|" + "---|" * (heads.count("|") + 1))
    for model in options.model:
        for transfers in options.transfers:
            with tempfile.TemporaryDirectory() as folder:
                print(row(model, options.preset, transfers, pathlib.Path(folder)), flush=True)


if __name__ == "__main__":
    main()
