//===- Watch.cpp - What launches touch beside what they declare -----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// watch LIBRARY FUNCTION=POINTERS...: calls the host functions of kernels
// (NAME__cuda) of a library that also has the kernels' code (outline.py), built
// with ThreadSanitizer's calls, which stand here and note each byte. What lies
// outside of the accesses by which the runtime orders commands is a line that
// begins with "BAD"; the last line counts.
//
//===----------------------------------------------------------------------===//

#include "drivers/cuda/CudaCommands.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <utility>

using namespace baechi::runtime::cuda;

namespace {
/// As many as joined updates have, and a scratch.
constexpr size_t mostPointers = 122;
constexpr size_t regionBytes = size_t(1) << 22;
constexpr size_t totalBytes = mostPointers * regionBytes;

enum Use : uint8_t { readIt = 1, wroteIt = 2, mayRead = 4, mayWrite = 8 };

/// A region for each pointer, and what was done to each byte.
struct Memory {
  char *bytes = static_cast<char *>(std::calloc(totalBytes, 1));
  uint8_t *uses = static_cast<uint8_t *>(std::calloc(totalBytes, 1));
  size_t low = totalBytes, high = 0;
  bool watched = false;

  void note(const void *at, size_t size, uint8_t use) {
    auto begin = uintptr_t(at) - uintptr_t(bytes);
    if (!watched || begin >= totalBytes)
      return;
    size_t end = std::min<size_t>(begin + size, totalBytes);
    for (size_t i = begin; i < end; ++i)
      uses[i] |= use;
    low = std::min<size_t>(low, begin);
    high = std::max(high, end);
  }
} memory;

void *library = nullptr;
std::string function;
int launches = 0, unknown = 0, bad = 0;
int64_t block = 0, blocks = 0, thread = 0, threads = 0;

/// Compares, and forgets.
void compare(const char *what, const Accesses &declared) {
  memory.watched = true;
  for (const auto &access : declared)
    if (access.begin < access.end)
      memory.note(reinterpret_cast<void *>(access.begin),
                  access.end - access.begin,
                  access.writes ? mayWrite : mayRead);
  memory.watched = false;
  size_t reads = 0, writes = 0, first = totalBytes;
  for (size_t i = memory.low; i < memory.high; ++i) {
    uint8_t use = memory.uses[i];
    bool read = (use & readIt) && !(use & (mayRead | mayWrite));
    bool write = (use & wroteIt) && !(use & mayWrite);
    if (read || write)
      first = std::min(first, i);
    reads += read;
    writes += write;
  }
  if (reads + writes > 0) {
    ++bad;
    std::printf("BAD %s, %s: reads %zu and writes %zu bytes that it does not "
                "declare, the first of pointer %zu at %zu\n",
                function.c_str(), what, reads, writes, first / regionBytes,
                first % regionBytes);
  }
  if (memory.low < memory.high)
    std::memset(memory.uses + memory.low, 0, memory.high - memory.low);
  memory.low = totalBytes;
  memory.high = 0;
}

template <size_t> using PointerNumber = void *;

/// Calls with as many pointers as there may be; a function looks at its own.
void call(void *code, const std::array<void *, mostPointers> &p) {
  [&]<size_t... I>(std::index_sequence<I...>) {
    reinterpret_cast<void (*)(PointerNumber<I>...)>(code)(p[I]...);
  }(std::make_index_sequence<mostPointers>());
}
} // namespace

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {
#define BAECHI_WATCH(BYTES)                                                    \
  void __tsan_read##BYTES(void *at) { memory.note(at, BYTES, readIt); }        \
  void __tsan_write##BYTES(void *at) { memory.note(at, BYTES, wroteIt); }      \
  void __tsan_unaligned_read##BYTES(void *at) {                                \
    memory.note(at, BYTES, readIt);                                            \
  }                                                                            \
  void __tsan_unaligned_write##BYTES(void *at) {                               \
    memory.note(at, BYTES, wroteIt);                                           \
  }                                                                            \
  void __tsan_read_write##BYTES(void *at) {                                    \
    memory.note(at, BYTES, readIt | wroteIt);                                  \
  }
BAECHI_WATCH(1)
BAECHI_WATCH(2)
BAECHI_WATCH(4)
BAECHI_WATCH(8)
BAECHI_WATCH(16)
#undef BAECHI_WATCH
void __tsan_init() {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
void *__tsan_memcpy(void *to, const void *from, size_t bytes) {
  memory.note(from, bytes, readIt);
  memory.note(to, bytes, wroteIt);
  return std::memcpy(to, from, bytes);
}
void *__tsan_memmove(void *to, const void *from, size_t bytes) {
  memory.note(from, bytes, readIt);
  memory.note(to, bytes, wroteIt);
  return std::memmove(to, from, bytes);
}
void *__tsan_memset(void *to, int value, size_t bytes) {
  memory.note(to, bytes, wroteIt);
  return std::memset(to, value, bytes);
}

int64_t watch_block_x() { return block; }
int64_t watch_blocks_x() { return blocks; }
int64_t watch_thread_x() { return thread; }
int64_t watch_threads_x() { return threads; }
int64_t watch_block_y() { return 0; }
int64_t watch_blocks_y() { return 1; }
int64_t watch_thread_y() { return 0; }
int64_t watch_threads_y() { return 1; }
int64_t watch_block_z() { return 0; }
int64_t watch_blocks_z() { return 1; }
int64_t watch_thread_z() { return 0; }
int64_t watch_threads_z() { return 1; }

void baechi_cuda_launch_accesses(const void *image, size_t, const char *kernel,
                                 uint32_t gx, uint32_t, uint32_t, uint32_t bx,
                                 uint32_t, uint32_t, uint32_t,
                                 void **parameters, uint32_t count,
                                 const baechi_cuda_access *accesses) {
  ++launches;
  void *code = dlsym(library, (std::string("K_") + kernel).c_str());
  if (!code || count > mostPointers) {
    ++bad;
    std::printf("BAD %s: %s cannot be run\n", function.c_str(), kernel);
    return;
  }
  std::array<void *, mostPointers> pointers{};
  std::array<uint64_t, mostPointers> words{};
  for (uint32_t i = 0; i < count; ++i) {
    std::memcpy(&pointers[i], parameters[i], sizeof(void *));
    words[i] = reinterpret_cast<uintptr_t>(pointers[i]);
  }
  Accesses declared;
  if (!findAccesses(
          KernelCommand{image, kernel, accesses, gx, 1, 1, bx, 1, 1, 0, count},
          words.data(), declared)) {
    ++unknown; // It runs alone.
    return;
  }
  blocks = gx;
  threads = bx;
  memory.watched = true;
  for (block = 0; block < gx; ++block)
    for (thread = 0; thread < bx; ++thread)
      call(code, pointers);
  compare(kernel, declared);
}

void baechi_cuda_multiply(const baechi_cuda_product *p, const void *a,
                          const void *b, void *c, const void *bias,
                          void *workspace, int32_t accumulate) {
  ++launches;
  Accesses declared;
  findAccesses(
      ProductCommand{*p, {a, b, c, bias, workspace, int64_t(accumulate != 0)}},
      declared);
  int64_t size = p->factor_type == BAECHI_CUDA_F32 ? 4 : 2,
          made = p->result_type == BAECHI_CUDA_F32 ? 4 : 2;
  auto touch = [](const void *from, int64_t element, int64_t bytes, Use use) {
    memory.note(static_cast<const char *>(from) + element * bytes,
                size_t(bytes), use);
  };
  memory.watched = true;
  for (int64_t i = 0; i < p->batch; ++i) {
    for (int64_t k = 0; k < p->k; ++k) {
      for (int64_t m = 0; m < p->m; ++m)
        touch(a,
              i * p->stride_a +
                  (p->transpose_a ? k * p->ld_a + m : m * p->ld_a + k),
              size, readIt);
      for (int64_t n = 0; n < p->n; ++n)
        touch(b,
              i * p->stride_b +
                  (p->transpose_b ? n * p->ld_b + k : k * p->ld_b + n),
              size, readIt);
    }
    for (int64_t m = 0; m < p->m; ++m)
      for (int64_t n = 0; n < p->n; ++n)
        touch(c, i * p->stride_c + m * p->ld_c + n, made, wroteIt);
  }
  if (p->has_bias)
    memory.note(bias, size_t(p->n * made), readIt);
  if (p->workspace_bytes > 0)
    memory.note(workspace, size_t(p->workspace_bytes), wroteIt);
  compare("a product", declared);
}
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

int main(int count, char **arguments) {
  library = count > 1 ? dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL) : nullptr;
  if (!library) {
    std::printf("BAD %s\n", count > 1 ? dlerror() : "no library is given");
    return 1;
  }
  for (int i = 2; i < count; ++i) {
    std::string given = arguments[i];
    size_t equal = given.find('=');
    function = given.substr(0, equal);
    auto pointers = std::strtoul(given.c_str() + equal + 1, nullptr, 10);
    void *code = dlsym(library, function.c_str());
    if (!code || pointers > mostPointers) {
      ++bad;
      std::printf("BAD %s cannot be called\n", function.c_str());
      continue;
    }
    // In the middle: batches and pieces go both ways.
    std::array<void *, mostPointers> places{};
    for (size_t k = 0; k < pointers; ++k)
      places[k] = memory.bytes + k * regionBytes + regionBytes / 2;
    call(code, places);
  }
  std::printf("%d launches, %d of them declare nothing, %d wrong\n", launches,
              unknown, bad);
  return bad > 0;
}
