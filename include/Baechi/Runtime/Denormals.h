//===- Denormals.h - Floating point as devices compute it -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_DENORMALS_H
#define BAECHI_RUNTIME_DENORMALS_H

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace baechi::runtime {

/// Makes the calling thread take numbers too small to be normalized for zero,
/// as operands and as results: processors are up to a hundred times slower on
/// them, and states that decay are full of them.
inline void flushDenormals() {
#if defined(__x86_64__)
  constexpr unsigned flushToZero = 0x8000, denormalsAreZero = 0x0040;
  _mm_setcsr(_mm_getcsr() | flushToZero | denormalsAreZero);
#elif defined(__aarch64__)
  uint64_t control;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  constexpr uint64_t flushToZero = uint64_t(1) << 24;
  asm volatile("msr fpcr, %0" : : "r"(control | flushToZero));
#endif
}

/// Keeps how the calling thread computes, and gives it back at the end.
class KeepsDenormals {
public:
#if defined(__x86_64__)
  KeepsDenormals() : control(_mm_getcsr()) {}
  ~KeepsDenormals() { _mm_setcsr(control); }
#elif defined(__aarch64__)
  KeepsDenormals() { asm volatile("mrs %0, fpcr" : "=r"(control)); }
  ~KeepsDenormals() { asm volatile("msr fpcr, %0" : : "r"(control)); }
#else
  KeepsDenormals() {}
#endif
  KeepsDenormals(const KeepsDenormals &) = delete;
  KeepsDenormals &operator=(const KeepsDenormals &) = delete;

protected:
#if defined(__x86_64__)
  unsigned control;
#elif defined(__aarch64__)
  uint64_t control;
#endif
};

/// The calling thread's numbers as they are elsewhere, while it lives.
class WithDenormals : KeepsDenormals {
public:
#if defined(__x86_64__)
  WithDenormals() { _mm_setcsr(control & ~0x8040u); }
#elif defined(__aarch64__)
  WithDenormals() {
    asm volatile("msr fpcr, %0" : : "r"(control & ~(uint64_t(1) << 24)));
  }
#else
  WithDenormals() {}
#endif
};

/// The calling thread's numbers as on devices, while it lives.
class WithoutDenormals : KeepsDenormals {
public:
  WithoutDenormals() { flushDenormals(); }
};

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_DENORMALS_H
