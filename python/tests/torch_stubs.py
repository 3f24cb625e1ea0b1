# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lets PyPI's wheel of torch load on a machine without CUDA, for tests only.

PyPI has one wheel for Linux. It is linked with CUDA's libraries (cuBLAS, cuDNN,
NCCL, ...), 3 GB of other packages, although nothing of them runs without a GPU.
For each library that torch's shared objects need and the machine lacks, this
makes an empty one beside them: the right name, and the symbols that torch leaves
undefined with the versions that it asks for. Every function of a stub returns
100, cudaErrorNoDevice, so torch finds no GPU and goes on on the CPU.

Usage: python torch_stubs.py   (in the environment whose torch is meant; needs cc and binutils)
"""

from __future__ import annotations

import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict

# Of the C library, the compiler and the C++ library: every machine has them.
_SYSTEM = re.compile(
    r"^(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|ld-linux-x86-64|libgomp)\.so"
)
_CUDA = re.compile(
    r"^(__cuda|cuda|cu[A-Z]|cublas|cudnn|cufft|curand|cusparse|cusolver|cufile|cuFile|nccl|nvrtc"
    r"|nvshmem|nvtx|nvjit|cupti)"
)


def _read(*command: object) -> str:
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


class Needs:
    """What the shared objects of a folder need and no library of it has."""

    def __init__(self, folder: pathlib.Path):
        self.libraries: set[str] = set()
        self._undefined: set[tuple[str, str]] = set()  # symbol, version
        self._library_of: dict[str, str] = {}  # of a version
        own = sorted(folder.glob("*.so"))
        defined: set[str] = set()
        for file in own:
            needed = re.findall(r"NEEDED.*\[(.*)\]", _read("readelf", "-d", file))
            names = {other.name for other in own}
            self.libraries |= {n for n in needed if n not in names and not _SYSTEM.match(n)}
            self._read_versions(file)
            defined |= self._read_symbols(file)
        self._undefined = {(s, v) for s, v in self._undefined if s not in defined}

    def _read_versions(self, file: pathlib.Path) -> None:
        library = None
        for line in _read("objdump", "-p", file).splitlines():
            if match := re.match(r"\s+required from (\S+):", line):
                library = match[1]
            elif library and (match := re.match(r"\s+0x\S+ 0x\S+ \d+ (\S+)", line)):
                self._library_of[match[1]] = library
            elif not line.strip():
                library = None

    def _read_symbols(self, file: pathlib.Path) -> set[str]:
        defined = set()
        for line in _read("nm", "-D", file).splitlines():
            *_, kind, symbol = line.split()
            name, _, version = symbol.partition("@")
            if kind not in "Uw":
                defined.add(name)
            elif _CUDA.match(name):
                self._undefined.add((name, version.lstrip("@")))
        return defined

    def symbols(self) -> dict[str, dict[str, set[str]]]:
        """The undefined symbols by library and version; those without a version
        in the CUDA runtime, as any library will do for them."""
        any_library = min(self.libraries, key=lambda name: (not name.startswith("libcudart"), name))
        found = {name: defaultdict(set) for name in self.libraries}
        for symbol, version in self._undefined:
            library = self._library_of.get(version, any_library)
            found[library if library in found else any_library][version].add(symbol)
        return found


def _function(symbol: str) -> str:
    if symbol.startswith("__cuda"):  # registration: a handle is expected
        return f"void *{symbol}(void) {{ static long handle[64]; return handle; }}\n"
    if symbol.endswith(("GetErrorString", "GetErrorName")):
        return f'const char *{symbol}(int error) {{ return "no CUDA: a stub for tests"; }}\n'
    result = 0 if symbol in ("cudaGetLastError", "cudaPeekAtLastError") else 100
    return f"int {symbol}(void) {{ return {result}; }}\n"


def write_stub(file: pathlib.Path, versions: dict[str, set[str]]) -> None:
    symbols = sorted({symbol for group in versions.values() for symbol in group})
    with tempfile.TemporaryDirectory() as folder:
        source, script = pathlib.Path(folder) / "stub.c", pathlib.Path(folder) / "versions"
        source.write_text("".join(map(_function, symbols)))
        flags = ["-shared", "-fPIC", "-w", "-fno-builtin", f"-Wl,-soname,{file.name}"]
        blocks = [
            f"{version} {{ global: {'; '.join(sorted(names))}; }};"
            for version, names in versions.items()
            if version
        ]
        if blocks:
            script.write_text("\n".join(blocks) + "\n")
            flags.append(f"-Wl,--version-script={script}")
        _read("cc", *flags, source, "-o", file)


def main() -> int:
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        print("torch_stubs: torch is not installed", file=sys.stderr)
        return 1
    for tool in ("cc", "readelf", "objdump", "nm"):
        if shutil.which(tool) is None:
            print(f"torch_stubs: {tool} is missing; install gcc and binutils", file=sys.stderr)
            return 1
    folder = pathlib.Path(spec.origin).parent / "lib"
    for library, versions in sorted(Needs(folder).symbols().items()):
        write_stub(folder / library, versions)
        print(f"{library}: {sum(map(len, versions.values()))} symbols")
    return 0


if __name__ == "__main__":
    sys.exit(main())
