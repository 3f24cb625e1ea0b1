# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""First values by their seeds: a file of kilobytes instead of arrays of megabytes."""

import dataclasses
import json

from baechi import init


def save(file, values):
    """Writes how each of `values`, a name's `baechi.init.Init`, is made."""
    file.write_text(
        json.dumps(
            {
                name: {"kind": type(value).__name__, **dataclasses.asdict(value)}
                for name, value in values.items()
            }
        )
    )


def load(file):
    """Makes them again, as arrays; needs nothing but NumPy."""
    arrays = {}
    for name, fields in json.loads(file.read_text()).items():
        kind = getattr(init, fields.pop("kind"))
        arrays[name] = kind(**fields | {"shape": tuple(fields["shape"])}).value()
    return arrays
