//===- LoadOnce.h - A library's functions, loaded once ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_CORE_LOADONCE_H
#define BAECHI_RUNTIME_CORE_LOADONCE_H

#include "Baechi/Runtime/Error.h"

#include <mutex>

namespace baechi::runtime {

/// What the first call of \p load that succeeds gives, for every caller. What
/// failed is tried again: a library may be installed meanwhile.
template <typename Api>
Expected<const Api *> loadOnce(Expected<Api> (*load)()) {
  static std::mutex mutex;
  static Api *loaded = nullptr;
  std::lock_guard<std::mutex> guard(mutex);
  if (!loaded) {
    Expected<Api> api = load();
    if (!api)
      return api.takeError();
    loaded = new Api(*api);
  }
  return loaded;
}

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_CORE_LOADONCE_H
