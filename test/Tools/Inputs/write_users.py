# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""write_users.py FILE.npz: factors of examples/factorise.mlir, without NumPy."""

import array
import sys
import zipfile

ROWS, WIDTH = 600, 8
numbers = array.array("f", (1e-4 * n for n in range(ROWS * WIDTH)))
header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({ROWS}, {WIDTH}), }}"
header = header.ljust(128 - 10 - 1) + "\n"
with zipfile.ZipFile(sys.argv[1], "w") as archive:
    start = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little")
    archive.writestr("users.npy", start + header.encode() + numbers.tobytes())
