# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m baechi.learned`: trains the policy of the method `trained` on generated graphs."""

from __future__ import annotations

import argparse
import pathlib
import sys

from baechi.learned import policy, pretraining


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m baechi.learned",
        description="Trains a policy that places graphs that it has not seen (docs/learned.md).",
    )
    parser.add_argument(
        "--output", type=pathlib.Path, required=True, metavar="FILE", help="an .npz to write"
    )
    parser.add_argument("--seed", type=_number, default=0, help="default: %(default)s")
    parser.add_argument(
        "--rounds",
        type=_number,
        default=pretraining.ROUNDS,
        help="of episodes on one of the graphs (default: %(default)s)",
    )
    options = parser.parse_args(argv)
    params = pretraining.train(options.seed, rounds=options.rounds, progress=_tell)
    try:
        policy.save(params, options.output)
    except OSError as error:
        print(f"error: {options.output}: {error.strerror}", file=sys.stderr)
        return 1
    print(f"wrote {options.output}", file=sys.stderr)
    return 0


def _number(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**31:
        raise argparse.ArgumentTypeError(f"'{text}' is no number from 0 to 2^31 - 1")
    return int(text)


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
