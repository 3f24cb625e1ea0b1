# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What holds for all tests."""

import importlib.util
import os

# Tests look at plans and at calls that return at once right after a first call, whatever the
# profile of this machine knows; test_replan.py asks for plans that are made later.
os.environ.setdefault("BAECHI_REPLAN", "never")


def pytest_terminal_summary(terminalreporter):
    """Who reads that all passed is told what was not there to pass."""
    missing = [name for name in ("torch", "onnx") if importlib.util.find_spec(name) is None]
    if missing:
        terminalreporter.write_line(
            f"without {' and '.join(missing)}: tests of these front ends were skipped; "
            "scripts/torch-env installs what they need"
        )
