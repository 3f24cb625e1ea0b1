//===- PeerMemory.cpp - The memory of a process nearby --------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "transport/sockets/PeerMemory.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <random>

using namespace baechi::runtime::sockets;

static uint64_t draw() {
  std::random_device device;
  return uint64_t(device()) << 32 | device();
}

Proof Proof::own() {
  static const uint64_t number = draw();
  return {getpid(), reinterpret_cast<uintptr_t>(&number), number};
}

void PeerMemory::meet(const Proof &given) {
  process = pid_t(given.process);
  uint64_t found = 0;
  if (!read(&found, given.address, sizeof(found)) || found != given.number)
    process = 0;
}

bool PeerMemory::read(void *to, uint64_t from, int64_t bytes) {
  if (!isReadable())
    return false;
  iovec here{to, size_t(bytes)};
  iovec there{reinterpret_cast<void *>(uintptr_t(from)), size_t(bytes)};
  ssize_t count = process_vm_readv(process, &here, 1, &there, 1, 0);
  if (count < 0 && (errno == EPERM || errno == ESRCH || errno == ENOSYS))
    process = 0;
  return count == ssize_t(bytes);
}
