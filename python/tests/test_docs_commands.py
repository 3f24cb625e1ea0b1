# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Commands that pages show run, on small models and graphs, and say what the pages say."""

import gzip
import json
import re
import shutil
import socket
import subprocess
import sys

import numpy as np
import pytest

from baechi.compiling import tools
from pages import ROOT, blocks, run_commands

_GRAPH = """{
  "format": "baechi-graph", "version": 1,
  "ops": [{"id": 0, "name": "a", "time_ns": 1000, "outputs": [64]},
          {"id": 1, "name": "b", "time_ns": 1000}],
  "edges": [{"from": 0, "output": 0, "to": 1}]
}"""
_SLOW = """{
  "format": "baechi-machine", "version": 1,
  "devices": [{"name": "host0", "kind": "host", "memory": 1073741824},
              {"name": "host1", "kind": "host", "memory": 1073741824}],
  "link_default": {"latency_ns": 20000, "bytes_per_us": 1000}, "link_model": "duplex"
}"""
_SMALL = ("test/fixtures/transformer_small.mlir.xz", "test/fixtures/mlp_tiny.mlir")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """As a checkout, with the files that the pages' reader brings."""
    for name in ("benchmarks", "data", "examples", "python", "scripts", "test"):
        (tmp_path / name).symlink_to(ROOT / name)
    built = tools.find("baechi-run").parents[1]
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "release").symlink_to(built)
    for name in ("model.mlir", "other.mlir"):
        shutil.copy(ROOT / "test/fixtures/mlp_tiny.mlir", tmp_path / name)
    (tmp_path / "graph.json").write_text(_GRAPH)
    (tmp_path / "slow.json").write_text(_SLOW)
    # What Open MPI wants of root, and of more processes than processors.
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("OMPI_MCA_rmaps_base_oversubscribe", "1")
    monkeypatch.setenv("BAECHI_DISK", str(tmp_path))
    return tmp_path


def succeeds(done):
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_tools_in_one_page(folder):
    graph = "data/graphs/gnmt40.json.xz data/graphs/machine_4x8GiB.json"
    succeeds(
        run_commands(
            "tools.md",
            folder,
            # Continuous integration runs each of these by itself: scripts/test, test_jit and
            # test_torch_models.
            skip=[
                "scripts/",
                *[f"{sys.executable} examples/{name}" for name in ("jit_mlp", "torch_mlp")],
                *([] if shutil.which("mpirun") else ["mpirun"]),
                *([] if _has("jax") else [sys.executable]),
            ],
            instead=[
                _SMALL,
                (f"{graph} --compare", "graph.json host:2 --compare"),
                (f"{graph} --objective", "graph.json host:2 --objective"),
                ("data/graphs/inception_v3.json.xz data", "graph.json data"),
                ("--preset=small", "--preset=tiny"),
            ],
        )
    )
    for name in ("trace.json", "report.html", "libmodel.so", "placement.json", "graph.dot"):
        assert (folder / name).stat().st_size > 1000, name


def _has(package):
    try:
        __import__(package)
    except ImportError:
        return False
    return True


def test_the_report_page(folder):
    succeeds(run_commands("report-page.md", folder, instead=[_SMALL]))
    assert '"baechi-page"' in (folder / "page.html").read_text()


def test_remarks(folder):
    words = ("baechi-opt model.mlir … ", "baechi-opt model.mlir --baechi-form-kernels ")
    placed = '--baechi-annotate-costs --baechi-place="msct machine=host:2" --remarks-filter'
    done = run_commands(
        "remarks.md",
        folder,
        instead=[
            words,
            ("--baechi-place=", "--baechi-annotate-costs --baechi-place="),
            ("kernels --remarks-filter", f"kernels {placed}"),
        ],
    )
    succeeds(done)
    assert "[Passed] placed | Category:baechi-place" in done.stderr
    assert "[Missed] not-fused | Category:baechi-form-kernels" in done.stderr
    assert "--- !Passed\nPass:            baechi-place\n" in (folder / "remarks.yaml").read_text()


def test_machines_of_nodes(folder):
    # The second block is the table's, of the whole model: grids take minutes.
    whole = [
        f"python3 benchmarks/placement/{name}"
        for name in ("node_grids", "node_step.py step.json cluster.json --nodes=8 ")
    ]
    shutil.copy(ROOT / "test/fixtures/mlp_small.mlir", folder / "model.mlir")
    out = succeeds(run_commands("nodes.md", folder, skip=whole))
    (shown,) = blocks("nodes.md", "text")
    for part in shown.split("\n\n"):
        assert part.strip() in out
    assert out.count("makespan") == 2  # the oracle agrees


def test_choices(folder):
    instance = (ROOT / "test/Tools/Inputs/choose/two.json").read_bytes()
    (folder / "G.json.gz").write_bytes(gzip.compress(instance))
    out = succeeds(run_commands("choice.md", folder, skip=["scripts/build"]))
    for words in ("cost: 13", "peak: 5 of 6 at time 1", "bound: 13"):
        assert words in out
    assert json.loads((folder / "choice.json").read_text()) == [0, 1]


def test_iree_runs_what_the_page_exports(folder):
    if not shutil.which("iree-compile") and not _has("iree.compiler"):
        pytest.skip("IREE is not installed: pip install '.[iree]'")
    random = np.random.default_rng(0)
    x, a, b = (random.normal(size=s).astype("float32") for s in ((256, 512), *[(512, 512)] * 2))
    for name, array in {"x": x, "a": a, "b": b}.items():
        np.save(folder / f"{name}.npy", array)
    shutil.copy(ROOT / "examples/mlp.mlir", folder / "model.mlir")
    inputs = ("--input=@x.npy", "--input=@x.npy --input=@a.npy --input=@b.npy")
    succeeds(run_commands("iree.md", folder, skip=["pip install"], instead=[inputs]))
    found, expected = np.load(folder / "y.npy"), x @ a @ a - x @ b @ b
    assert np.abs(found - expected).max() <= 1e-4 * np.abs(expected).max()


def test_the_package_in_other_tools(folder):
    plugin = tools.find("baechi-run").parents[1] / "lib/BaechiPlugin.so"
    stock = plugin.exists() and shutil.which("mlir-opt-22")
    lit = (ROOT / "test/Tools/reduce.mlir").read_text()
    (folder / "program.mlir").write_text(lit)
    script = folder / "still-fails.sh"
    fault = "'math.exp' op has no 'baechi.cost'"
    check = f'! baechi-opt "$1" --baechi-place=machine=host:1 2>&1 | grep -q "{fault}"'
    script.write_text(f"#!/bin/sh\n{check}\n")
    script.chmod(0o755)
    done = run_commands(
        "package.md",
        folder,
        # examples/downstream installs the package and is built against it: ctest -R downstream.
        skip=[
            "scripts/build",
            "cmake --install",
            *([] if stock else ["mlir-opt-22", "    --pass"]),
        ],
    )
    out = succeeds(done)
    if stock:
        assert "baechi.machine = #baechi.machine<" in out
    assert "math.exp" in out and "@last" not in out


def test_the_package_is_what_the_downstream_projects_take():
    projects = [
        (ROOT / "examples/downstream" / name / "CMakeLists.txt").read_text()
        for name in ("opt", "placement")
    ]
    (cmake,), (interfaces,) = blocks("package.md", "cmake"), blocks("package.md", "tablegen")
    for line in cmake.splitlines():
        found = re.match(r"find_package\(.*?\)|target_link_libraries", line)
        assert found and any(found[0] in text for text in projects), line
    assert interfaces.endswith("> { ... }\n")
    td = (ROOT / "examples/downstream/opt/Shop.td").read_text()
    include, definition = interfaces.removesuffix(" ... }\n").split("\n\n")
    assert include in td and definition in td


def test_kernels_of_gpus(folder):
    shutil.copy(ROOT / "examples/mlp.mlir", folder / "model.mlir")
    shutil.copy(ROOT / "test/Conversion/CudaKernels/in-place.mlir", folder / "kernels.mlir")
    out = succeeds(run_commands("cuda-kernels.md", folder))
    assert "gpu.launch" in out and "baechi_cuda_multiply" in out


def test_replicas(folder):
    out = succeeds(
        run_commands(
            "replicas.md",
            folder,
            # The same of other models and ranks.
            skip=[
                f"benchmarks/execution/exchange.py {ranks}--model=transformer"
                for ranks in ("", "--ranks=2 ")
            ],
            instead=[
                ("mlp_small.mlir", "mlp_tiny.mlir"),
                ("100 200 400 600 800", "400"),
                ("200 400 800", "800"),
            ],
        )
    )
    assert out.count("measured") >= 3


def test_the_runtime(folder):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    starts = [name for name in ("mpirun", "torchrun", "srun") if not shutil.which(name)]
    out = succeeds(
        run_commands(
            "runtime.md",
            folder,
            # The last one needs two GPUs.
            skip=["mpirun -n 2 baechi-run model.mlir --machine=cuda", *starts],
            instead=[
                ("host:1+disk:40GiB", "host:1+disk:40MiB"),
                ("node1:7000", f"127.0.0.1:{port}"),
                (
                    "BAECHI_RANK=0 baechi-run model.mlir --machine=host:4 ",
                    "BAECHI_RANK=1 baechi-run model.mlir --machine=host:4 &\n"
                    "BAECHI_RANK=0 baechi-run model.mlir --machine=host:4 ",
                ),
                ("--steps=100", "--steps=10"),
            ],
        )
    )
    assert out.count("measured") >= 4


def test_importing(folder):
    jax = pytest.importorskip("jax")
    (example,) = blocks("import.md", "python")
    (folder / "my_model.py").write_text(example)
    written = jax.jit(lambda x: jax.numpy.tanh(x).sum()).lower(jax.numpy.ones(8)).as_text()
    (folder / "step.stablehlo.mlir").write_text(written)
    done = run_commands(
        "import.md",
        folder,
        skip=["scripts/"],
        instead=[
            ("transformer --preset=small", "transformer --preset=tiny"),
            ("gnmt --preset=small", "mlp --preset=tiny"),
            ("gnmt --set layers=4", "gnmt --preset=tiny --set layers=2"),
        ],
    )
    succeeds(done)


def test_models_of_pytorch(folder):
    pytest.importorskip("torch_mlir")
    words = [("transformer --preset=small", "mlp --preset=tiny"), ("--steps=20", "--steps=2")]
    succeeds(run_commands("torch.md", folder, instead=words))


def test_cuts(folder):
    pytest.importorskip("jax")
    small = [
        ("mlp_small.mlir", "mlp_tiny.mlir"),
        ("gnmt --preset=paper --set batch=256", "mlp --preset=tiny"),
        # All models by hand take a quarter of an hour.
        ("by_hand.py\n", "by_hand.py mlp --preset=tiny --rounds=1\n"),
        ("by_hand.py mlp transformer", "by_hand.py mlp --preset=tiny --rounds=1"),
    ]
    out = succeeds(run_commands("splitting.md", folder, instead=small))
    # Those before it are what one machine printed.
    pieces = blocks("splitting.md", "text")[3]
    assert pieces in out


def test_loops_of_other_programs(folder):
    for block in blocks("loops.md", ""):
        command, *shown = block.splitlines()
        told = _remarks(folder, command)
        for line in shown:
            # Long lists are cut short with dots.
            assert any(each.startswith(line.removesuffix("...")) for each in told), line


def _remarks(folder, command):
    name, *arguments = command.removeprefix("$ ").split()
    done = subprocess.run(
        [tools.find(name), *arguments], cwd=folder, capture_output=True, text=True
    )
    succeeds(done)
    return [line for line in done.stderr.splitlines() if re.search(r": (remark|note): ", line)]
