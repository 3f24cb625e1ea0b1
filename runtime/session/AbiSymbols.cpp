//===- AbiSymbols.cpp - What a linker must know of the C interface --------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/Abi.h"
#include "Baechi/Runtime/CudaAbi.h"
#include "Baechi/Runtime/Session.h"

using namespace baechi::runtime;

std::span<const AbiSymbol> baechi::runtime::abiSymbols() {
  static const AbiSymbol symbols[] = {
      {"baechi_send", reinterpret_cast<void *>(baechi_send)},
      {"baechi_recv", reinterpret_cast<void *>(baechi_recv)},
      {"baechi_await_send", reinterpret_cast<void *>(baechi_await_send)},
      {"baechi_await_recv", reinterpret_cast<void *>(baechi_await_recv)},
      {"baechi_borrow", reinterpret_cast<void *>(baechi_borrow)},
      {"baechi_give_back", reinterpret_cast<void *>(baechi_give_back)},
      {"baechi_argument", reinterpret_cast<void *>(baechi_argument)},
      {"baechi_operator_begin",
       reinterpret_cast<void *>(baechi_operator_begin)},
      {"baechi_operator_end", reinterpret_cast<void *>(baechi_operator_end)},
      {"baechi_host_call", reinterpret_cast<void *>(baechi_host_call)},
      {"baechi_fail", reinterpret_cast<void *>(baechi_fail)},
      {"baechi_divided_by_zero",
       reinterpret_cast<void *>(baechi_divided_by_zero)},
      {"baechi_disk_copy", reinterpret_cast<void *>(baechi_disk_copy)},
      {"baechi_cuda_launch", reinterpret_cast<void *>(baechi_cuda_launch)},
      {"baechi_cuda_launch_accesses",
       reinterpret_cast<void *>(baechi_cuda_launch_accesses)},
      {"baechi_cuda_multiply", reinterpret_cast<void *>(baechi_cuda_multiply)},
      {"baechi_cuda_convolve", reinterpret_cast<void *>(baechi_cuda_convolve)},
      {"baechi_cuda_copy", reinterpret_cast<void *>(baechi_cuda_copy)},
      {"baechi_cuda_constant", reinterpret_cast<void *>(baechi_cuda_constant)},
  };
  return symbols;
}
