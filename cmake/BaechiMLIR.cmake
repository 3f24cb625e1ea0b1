# MLIR out of tree, from the distribution's packages (docs/building.md).

if(NOT MLIR_DIR)
  find_program(BAECHI_LLVM_CONFIG NAMES llvm-config-22)
  if(BAECHI_LLVM_CONFIG)
    execute_process(COMMAND ${BAECHI_LLVM_CONFIG} --prefix
                    OUTPUT_VARIABLE BAECHI_LLVM_PREFIX
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
    list(APPEND CMAKE_PREFIX_PATH ${BAECHI_LLVM_PREFIX})
  endif()
endif()
find_package(MLIR 22.1 REQUIRED CONFIG)

# Not exported by MLIRConfig: link libMLIR.so rather than the static archives.
set(MLIR_LINK_MLIR_DYLIB ON)
# Tools are part of the default build.
set(LLVM_BUILD_TOOLS ON)
set(MLIR_BINARY_DIR ${CMAKE_BINARY_DIR})
set(LLVM_RUNTIME_OUTPUT_INTDIR ${CMAKE_BINARY_DIR}/bin)
set(LLVM_LIBRARY_OUTPUT_INTDIR ${CMAKE_BINARY_DIR}/lib)
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)
include(HandleLLVMOptions)
include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
separate_arguments(BAECHI_LLVM_DEFINITIONS NATIVE_COMMAND ${LLVM_DEFINITIONS})
add_definitions(${BAECHI_LLVM_DEFINITIONS})
set(LLVM_EXTERNAL_LIT ${LLVM_TOOLS_BINARY_DIR}/lit CACHE PATH "" FORCE)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib;${LLVM_LIBRARY_DIR}")

# Half of the time of a file that includes them.
baechi_add_headers(BaechiMLIRHeaders
  <mlir/Dialect/Affine/IR/AffineOps.h>
  <mlir/Dialect/Arith/IR/Arith.h>
  <mlir/Dialect/Func/IR/FuncOps.h>
  <mlir/Dialect/LLVMIR/LLVMDialect.h>
  <mlir/Dialect/Linalg/IR/Linalg.h>
  <mlir/Dialect/Math/IR/Math.h>
  <mlir/Dialect/MemRef/IR/MemRef.h>
  <mlir/Dialect/SCF/IR/SCF.h>
  <mlir/Dialect/Tensor/IR/Tensor.h>
  <mlir/IR/Matchers.h>
  <mlir/Pass/PassManager.h>
  <mlir/Transforms/DialectConversion.h>)
if(TARGET BaechiMLIRHeaders)
  llvm_update_compile_flags(BaechiMLIRHeaders)
endif()

# baechi_add_mlir_library(NAME sources... DEPENDS ... LINK libs...)
function(baechi_add_mlir_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK;MLIR" ${ARGN})
  add_mlir_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS}
    DEPENDS ${ARG_DEPENDS} BaechiDialectIncGen BaechiInterfacesIncGen
    DISABLE_INSTALL)
  if(TARGET obj.${name}) # of which the library is made
    baechi_take_headers(obj.${name} BaechiMLIRHeaders)
  else()
    baechi_take_headers(${name} BaechiMLIRHeaders)
  endif()
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  mlir_target_link_libraries(${name} PUBLIC ${ARG_MLIR})
  baechi_install_library(${name} BaechiMLIR)
  set_property(GLOBAL APPEND PROPERTY BAECHI_MLIR_LIBRARIES ${name})
endfunction()
