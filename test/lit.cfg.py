"""Configuration of the lit tests."""

import os
import platform
import shutil
import subprocess
import sys

import lit.formats
from lit.llvm import llvm_config
from lit.llvm.subst import FindTool, ToolSubst

config.name = "Baechi"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["fixtures", "Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.baechi_obj_root, "test")

config.substitutions.append(("%fixtures", os.path.join(config.test_source_root, "fixtures")))
config.substitutions.append(("%llvm_lib_dir", config.llvm_lib_dir))
config.substitutions.append(("%python", sys.executable))
config.substitutions.append(
    ("%baechi_plugin", os.path.join(config.baechi_obj_root, "lib/BaechiPlugin.so"))
)
if platform.machine() == "x86_64":
    config.available_features.add("x86_64")
if shutil.which("mlir-opt-22"):
    config.available_features.add("stock-mlir-opt")

# Several processes: Open MPI's mpirun and this build's transport.
mpirun = shutil.which("mpirun")
if not os.path.exists(os.path.join(config.baechi_obj_root, "lib/libBaechiMpi.so")):
    lit_config.note("several processes are not tested: the build has no MPI")
elif not mpirun:
    lit_config.note("several processes are not tested: there is no mpirun")
elif b"Open MPI" not in subprocess.run([mpirun, "--version"], capture_output=True).stdout:
    lit_config.note("several processes are not tested: mpirun is not Open MPI's")
else:
    config.available_features.add("mpirun")
config.substitutions.append(("%mpirun", "timeout 120 mpirun --allow-run-as-root --oversubscribe"))

# The CUDA Toolkit, where baechi-opt looks for it.
for variable in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"):
    if variable in os.environ:
        config.environment[variable] = os.environ[variable]
if any(
    os.path.exists(os.path.join(folder, "bin/ptxas"))
    for folder in (
        *(os.environ.get(v, "") for v in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT")),
        "/usr/local/cuda",
    )
) or shutil.which("ptxas"):
    config.available_features.add("ptxas")
# CUDA's driver, cuBLASLt and cuDNN without a GPU (unittests/Runtime/FakeCuda).
fake_cuda = os.path.join(config.baechi_obj_root, "lib/libBaechiFakeCuda.so")
if os.path.exists(fake_cuda):
    config.available_features.add("fake-cuda")
config.substitutions.append(
    (
        "%with_fake_cuda",
        "env "
        + " ".join(f"BAECHI_{name}_LIBRARY={fake_cuda}" for name in ("CUDA", "CUBLASLT", "CUDNN")),
    )
)
config.substitutions.append(
    (
        "%oracle",
        os.path.join(config.baechi_src_root, "scripts/oracle/check_placement.py"),
    )
)

llvm_config.use_default_substitutions()  # FileCheck, not, count
llvm_config.add_tool_substitutions(
    [
        # Passes in a pipeline's text, "(baechi-place{", are no tools.
        ToolSubst(tool, FindTool(tool), pre=r".-^/\<(,", unresolved="ignore")
        for tool in (
            "RuntimeCudaTests",
            "baechi-choose",
            "baechi-lsp-server",
            "baechi-opt",
            "baechi-place",
            "baechi-reduce",
            "baechi-run",
            "baechi-translate",
            "mlir-opt",
            "mlir-runner",
            "mlir-translate",
            "opt",
            "split-file",
        )
    ],
    [config.baechi_tools_dir, config.llvm_tools_dir],
)
