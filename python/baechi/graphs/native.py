# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The extension module, or the mend where it is not built."""

import baechi

try:
    from baechi import _placement as _placement
except ImportError as error:
    raise ImportError(
        "the extension module baechi._placement cannot be imported from "
        f"{', '.join(baechi.__path__)} ({error}): in a checkout, build it for "
        "this Python with scripts/python-env and then scripts/build release BaechiPython"
    ) from error

PlacementError = _placement.PlacementError
