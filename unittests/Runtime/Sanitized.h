//===- Sanitized.h - Whether a sanitizer watches -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_UNITTESTS_RUNTIME_SANITIZED_H
#define BAECHI_UNITTESTS_RUNTIME_SANITIZED_H

/// BAECHI_SANITIZED is 1 where AddressSanitizer or ThreadSanitizer keeps a
/// shadow of the memory, which costs a multiple of it, and owns malloc.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BAECHI_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define BAECHI_SANITIZED 1
#endif
#endif
#ifndef BAECHI_SANITIZED
#define BAECHI_SANITIZED 0
#endif

#endif // BAECHI_UNITTESTS_RUNTIME_SANITIZED_H
