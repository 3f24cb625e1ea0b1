"""Configuration of the lit tests."""

import os

import lit.formats
from lit.llvm import llvm_config
from lit.llvm.subst import FindTool, ToolSubst

config.name = "Baechi"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["fixtures"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.baechi_obj_root, "test")

config.substitutions.append(
    ("%fixtures", os.path.join(config.test_source_root, "fixtures"))
)
config.substitutions.append(("%llvm_lib_dir", config.llvm_lib_dir))

llvm_config.use_default_substitutions()  # FileCheck, not, count
llvm_config.add_tool_substitutions(
    [
        ToolSubst(tool, FindTool(tool), unresolved="ignore")
        for tool in (
            "baechi-opt",
            "baechi-place",
            "baechi-run",
            "baechi-translate",
            "mlir-opt",
            "mlir-runner",
            "mlir-translate",
            "opt",
        )
    ],
    [config.baechi_tools_dir, config.llvm_tools_dir],
)
