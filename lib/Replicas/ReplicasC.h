//===- ReplicasC.h - What files of the C interface share --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_REPLICAS_REPLICASC_H
#define BAECHI_LIB_REPLICAS_REPLICASC_H

#include "Baechi-c/Replicas.h"
#include "Baechi/Runtime/ParameterStore.h"

struct BaechiStore {
  std::unique_ptr<baechi::store::ParameterStore> store;
};

namespace baechi::replicas {

/// Of the calling thread.
extern thread_local std::string lastError;

/// Runs \p call; an exception becomes the error of this thread.
template <typename Call> int guarded(Call &&call) {
  try {
    call();
    return 0;
  } catch (const std::exception &error) {
    lastError = error.what();
    return 1;
  }
}

store::StoreOptions optionsOf(const BaechiStoreOptions &given);
std::vector<store::TableShape> shapesOf(size_t tables, const char *const *names,
                                        const uint64_t *rows,
                                        const uint64_t *widths,
                                        const double *steps);

} // namespace baechi::replicas

#endif // BAECHI_LIB_REPLICAS_REPLICASC_H
