# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An imported step, placed, compiled and loaded: what all front ends share."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import statistics
from collections.abc import Collection, Mapping
from typing import Any, Self

import numpy as np

from baechi.common import progress, temporary, users
from baechi.common.bytecode import Bytecode, text_of
from baechi.compiling import compiler
from baechi.compiling.options import CompileOptions as CompileOptions
from baechi.compiling.tools import CompileError
from baechi.pictures import picture
from baechi.pictures.picture import Picture
from baechi.steps import memory
from baechi.steps.first_steps import FirstSteps
from baechi.steps.gpu_ending import Ending, Endings
from baechi.steps.library import StepLibrary
from baechi.steps.library_file import StepError
from baechi.steps.memory import LeastMemory, Memory

# Where a remark is of: the tool's place, and the operator's name, which its text begins with, with
# the name and the place of what it was made of.
_REMARK = re.compile(r'^.*?: remark: (loc\((?:"[^"]*"|[():\d])*\): )?')


def time_text(ns: float) -> str:
    """Milliseconds, as the tools have them, but of short steps more digits."""
    return f"{ns / 1e6:.3f} ms" if ns >= 1e5 else f"{ns / 1e3:.2f} us"


def _mebibytes(count: int, digits: int = 2) -> str:
    """Not "0.00" for what is there."""
    size = count / 2**20
    text = f"{size:.{digits}f}"
    return f"{size:.2g}" if count and not float(text) else text


def _roofline_text(roofline: dict[str, float], step_ns: float) -> str:
    """How much of what its cores could at best a step reaches (docs/kernels.md)."""
    percent = 100 * roofline["ns"] / (step_ns * roofline["cores"]) if step_ns > 0 else 0.0
    return f", {percent:.0f} % of the roofline"


class Program:
    """A module of one step on the devices of a machine.

    library: of a step that was compiled elsewhere; then module and options, which
        are how it is compiled, may be unknown.
    Raises CompileError (no placement fits), ValueError (a machine that is none) and
    StepError (the library cannot be opened, a step failed).
    """

    def __init__(
        self,
        module: str | Bytecode | None,
        options: CompileOptions | None,
        library: StepLibrary | None = None,
    ):
        self.module, self._options = module, options
        self.library = library or self._compile()
        if options is not None:  # of what else is compiled of it
            self._options = dataclasses.replace(options, replan="never", step_times=None)
        self._wall_ns: list[int] = []
        self._endings = Endings()
        self._first: FirstSteps | None = None
        self._plan: str | None = None  # what `report` says of when it was made
        if options is not None and "to_measure" in self.library.program:
            self._first = FirstSteps(self.library)
            self._plan = "of one device, until a few calls have told what kernels take"

    def measures(self) -> bool:
        """Whether its steps are timed, for a plan that is made of these times."""
        return self._first is not None

    def is_measured(self) -> bool:
        """Whether they have told enough: what follows is `replanned`."""
        return self._first is not None and self._first.is_enough()

    def replanned(self, name: str) -> Self:
        """The step as it is planned with what kernels took in this one's steps, by the same
        code, so that results have the same bits. Where that cannot be, itself, which is not
        timed any more, and a warning says why, by the step's name."""
        try:
            return self.planned()
        except (CompileError, StepError) as error:
            users.warn(
                f"'{name}' goes on on one device, as no plan could be made of "
                f"what its first calls took ({error}); replan='never' plans before the first call"
            )
        self._first = None
        self._plan = "of one device; another could not be made"
        self.library.record_times(False)
        return self

    def planned(self) -> Self:
        """`replanned`, but raises CompileError and StepError."""
        assert self._first is not None
        _, options = self.source()
        with temporary.folder("baechi-jit-") as folder:
            file = folder / "step-times.json"
            self._first.write(file)
            made = self._again(dataclasses.replace(options, step_times=file))
        made._plan = f"made of what kernels took in the first {self._first.steps} calls"
        return made

    def _again(self, options: CompileOptions) -> Self:
        """The same step as it is compiled by other options."""
        return type(self)(self.module, options)

    def source(self) -> tuple[str | Bytecode, CompileOptions]:
        """The module, and how it is compiled. Raises RuntimeError where it came
        as a file."""
        if self.module is None or self._options is None:
            raise RuntimeError(
                "this step was loaded from a file, which has the program but not its module: "
                "ask where it was compiled"
            )
        return self.module, self._options

    def _compile(self) -> StepLibrary:
        module, options = self.source()
        with progress.shown(options.verbose, "step"), temporary.folder("baechi-jit-") as folder:
            file = folder / "step.so"
            for message in compiler.emit(module, file, options):
                if "is of another version of the program" in message.text:  # a placement file
                    users.warn(message.text)
            # The code stays mapped when its file is gone.
            return StepLibrary(file)

    def with_costs_of(self, inputs: Mapping[str, np.ndarray]) -> Program:
        """The same step as it is planned with the costs of these arguments (`arg0`, ...), which
        steps of one device are run with. It is no more than its report: the times are those of
        this one's steps."""
        module, options = self.source()
        with progress.shown(options.verbose, "costs"), temporary.folder("baechi-jit-") as folder:
            archive, file = folder / "inputs.npz", folder / "step.so"
            with archive.open("wb") as opened:
                np.savez(opened, **inputs)  # type: ignore[arg-type]
            # What was measured with other arguments is in the user's profile.
            options = dataclasses.replace(
                options, costs="measured", profile=folder / "profile.json"
            )
            compiler.emit(module, file, options, archive)
            made = Program(module, options, StepLibrary(file))
        made.library.close()
        made._wall_ns = self._wall_ns
        return made

    def step(
        self,
        arguments: Mapping[int, Any] | None = None,
        results: Mapping[int, Any] | None = None,
        lent: Collection[int] = (),
    ) -> None:
        """One step on what the arguments' places hold; with these arguments, some of them lent,
        and results into these arrays, where given (`StepLibrary.call`)."""
        with self._first.step() if self._first else contextlib.nullcontext():
            if arguments is None:
                self.library.run()
            else:
                self.library.call(arguments, results or {}, lent)
        self._wall_ns.append(self.library.wall_ns)

    def begin_step(
        self, arguments: Mapping[int, Any], results: Mapping[int, Any], gpu: int
    ) -> Ending | None:
        """The same, but may return before the GPU has ended it (`StepLibrary.begin`); None: it has
        ended. Raises the StepError of an earlier call that has failed there."""
        self._endings.retire()
        begun = self.library.begin(arguments, results)
        if begun is None:
            self._wall_ns.append(self.library.wall_ns)
            return None
        ending = Ending(gpu, *begun)
        self._endings.add(ending)
        return ending

    def placement(self) -> dict[str, str]:
        """The device of every operator and argument; of one stored in pieces, of each."""
        program = self.library.program
        devices = [device["name"] for device in program["devices"]]
        found = {
            part["name"]: devices[part["device"]]
            for argument in program["arguments"]
            for part in argument.get("pieces", [argument])
        }
        for device in program["devices"]:
            found |= {operator["name"]: device["name"] for operator in device["operators"]}
        return found

    def placement_file(self) -> str:
        """The placement in the form that `placement=` takes (docs/formats.md)."""
        ops = [
            {"id": i, "name": n, "device": d} for i, (n, d) in enumerate(self.placement().items())
        ]
        return json.dumps({"format": "baechi-placement", "version": 1, "ops": ops})

    def report(self) -> str:
        """Prediction, measured steps, devices."""
        program = self.library.program
        predicted = program["predicted"]
        given_up = program.get("given_up")
        asked = (given_up or predicted)["placer"]
        if "to_measure" in program and self._options is not None:
            asked = self._options.placer  # of the plan that follows
        lines = [
            f"placement  {asked} asked, '{predicted['winner']}' won",
            f"step       predicted {self._predicted()}",
        ]
        told = [
            f"{'' if number else title:10} {line}"
            for key, title in (
                ("pieces", "pieces"),
                ("unrolled_loops", "loops"),
                ("cut_to_fit", "cut"),
                ("memory_fit", "memory"),
                ("checkpoints", "again"),
                ("messages", "messages"),
            )
            for number, line in enumerate(program.get(key, {}).get("text", []))
        ]
        lines[1:1] = told
        if given_up:
            lines.insert(
                1,
                f"           instead of '{given_up['winner']}', whose step would take "
                f"{time_text(given_up['step_ns'])} with the copies between devices",
            )
        if costs := program.get("kernel_costs"):
            text = f"{costs['measured']} kernels measured, {costs['estimated']} estimated"
            if costs["disturbed"]:
                text += f"; other work disturbed {costs['disturbed']} measurements"
            lines.insert(1 + bool(given_up), f"costs      {text}")
        if self._wall_ns:
            # The first step of a program warms its memory.
            counted = self._wall_ns[1:] or self._wall_ns
            median = statistics.median(counted)
            lines.append(f"           measured {time_text(median)} (median of {len(counted)})")
            if roofline := program.get("roofline"):
                lines[-1] += _roofline_text(roofline, median)
        for device in program["devices"]:
            if estimated := device.get("graph_bytes_estimated"):
                lines.append(
                    f"graphs     about {_mebibytes(estimated)} MiB beside {device['name']}'s arena "
                    f"({device['commands']} commands; an estimate, in no limit)"
                )
        for queue in program["queues"]:
            if link := queue.get("simulated_link"):
                ends = (program["devices"][queue[end]]["name"] for end in ("from", "to"))
                lines.append(
                    f"network    simulated network: {' to '.join(ends)} "
                    f"{link['latency_ns'] / 1e3:.1f} us and {link['bytes_per_us']} bytes a us"
                )
        if self._plan is not None:
            lines.append(f"plan       {self._plan}")
        sent = [0] * len(program["devices"])
        lent = [0] * len(program["devices"])
        for queue in program["queues"]:
            for message in queue["messages"]:
                sent[queue["from"]] += message["bytes"]
                lent[queue["from"]] += message["bytes"] * message.get("lent", False)
        header = ("device", "operators", "memory MiB", "limit MiB", "sent MiB a step", "of it lent")
        lines += ["", "{:10} {:>10} {:>12} {:>12} {:>16} {:>12}".format(*header)]
        for device, moved, borrowed in zip(program["devices"], sent, lent, strict=True):
            lines.append(
                f"{device['name']:10} {len(device['operators']):>10} "
                f"{_mebibytes(device['arena_bytes']):>12} {_mebibytes(device['memory']):>12} "
                f"{_mebibytes(moved, 3):>16} {_mebibytes(borrowed, 3):>12}"
            )
        return "\n".join(lines)

    def _predicted(self) -> str:
        predicted = self.library.program["predicted"]
        # A program that the runtime's rules were not applied to has the placers' alone.
        makespan, bound = predicted["makespan_ns"], predicted["lower_bound_ns"]
        step = predicted.get("step_ns", makespan)
        text = time_text(step)
        if predicted.get("objective") == "period":  # of which the bound is
            return text
        if step < bound:  # It is of what the placers count, copies at full price.
            text += f"; the placement's makespan {time_text(makespan)}"
        return f"{text}, lower bound {time_text(bound)}"

    def memory(self) -> Memory:
        return memory.of_program(self.library.program)

    def least_memory(self, devices: int | None) -> LeastMemory:
        """`Compiled.least_memory` says what it is."""
        module, options = self.source()
        listed = self.library.program["devices"]
        pools = {device["name"] for device in listed if device["kind"] in ("pool", "disk")}
        kinds = {device["kind"] for device in listed} - {"pool", "disk"}

        def compiled(options: CompileOptions) -> Memory:
            program = Program(module, options)
            program.library.close()
            return program.memory()

        with progress.shown(options.verbose, "least memory"):
            return memory.least(self.memory(), kinds, devices, options, compiled, pools)

    def picture(self) -> Picture:
        """What `baechi.plot_timeline` and `baechi.plot_memory` draw: the plan."""
        counted = self._wall_ns[1:] or self._wall_ns
        median = statistics.median(counted) if counted else None
        return picture.of_program(self.library.program, median)

    def explain(self, name: str) -> str:
        """Why operators, by a pattern of names, are where they are."""
        try:
            return self._explained(name)
        except CompileError as error:
            if not memory.is_too_little(error):
                raise
            # The placer alone, which explains, does not search for an order that fits.
            return "where all is follows from what the memories hold; step.report() says of what"

    def _explained(self, name: str) -> str:
        module, options = self.source()
        measured = options.costs == "measured"
        machine = options.machine
        fit = self.library.program.get("memory_fit")
        if fit and "pool" in fit:
            return f"where all is follows from what waits in '{fit['pool']}'; so step.report()"
        again = [compiler.step("baechi-fit-memory", limit=fit["peak_after_bytes"])] if fit else []
        loops = self.library.program.get("unrolled_loops", {"kept": False})
        unroll = compiler.step(
            "baechi-unroll-loops",
            limit=loops.get("limit"),
            least_share=loops.get("least_share"),
            least_ns=loops.get("least_ns"),
            most_writes=loops.get("most_writes"),
            keep=loops.get("keep"),
        )
        cutting = self.library.program.get("cutting", [])
        is_exact = "baechi-fix-sums" in cutting
        fold = compiler.step("baechi-fold-sums", keep=list(options.split or {}))
        checkpoints = self.library.program.get("checkpoints", {})
        undo = compiler.step(
            "baechi-undo-checkpoints",
            keep=",".join(map(str, checkpoints.get("kept_regions", []))) or None,
        )
        with temporary.folder("baechi-jit-") as folder:
            saved = folder / "placement.json"
            saved.write_text(self.placement_file())
            done = compiler.transform(
                text_of(module),
                [
                    *([fold] if is_exact else []),
                    *(["baechi-inline-step", unroll] if loops["kept"] else []),
                    *([undo] if checkpoints.get("undone") else []),
                    *cutting,
                    "baechi-form-kernels",
                    "baechi-kernel-scratch",
                    compiler.step(
                        "baechi-annotate-costs",
                        profile=options.profile_file() if measured else None,
                    ),
                    "baechi-colocate",
                    *again,
                    compiler.step("baechi-load-placement", file=saved, machine=machine),
                    compiler.step("baechi-place", placer="metf", machine=machine, budget="0"),
                    # The file's pins have done their work: reasons are the placer's.
                    compiler.step(
                        "baechi-constrain", replace="true", machine=machine, pins=options.pins()
                    ),
                    compiler.step("baechi-explain", name=name),
                ],
            )
        lines = done.said.splitlines()
        first = [i for i, line in enumerate(lines) if ": remark: " in line]
        return "\n".join(_REMARK.sub("", line) for line in lines[first[0] :]) if first else ""
