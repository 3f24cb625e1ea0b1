//===- PeerMemory.h - The memory of a process nearby ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads what another process of this machine has in its memory, where the
/// kernel lets it (process_vm_readv): one copy, by the reader alone, in place
/// of two through a connection, which keep both processes busy.
///
/// A process's number alone may mean another process, in another namespace. So
/// each says where it has a number that is drawn for this start, and is read
/// only once that was found there.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_TRANSPORT_SOCKETS_PEERMEMORY_H
#define BAECHI_RUNTIME_TRANSPORT_SOCKETS_PEERMEMORY_H

#include <cstdint>
#include <sys/types.h>

namespace baechi::runtime::sockets {

/// What a process says of itself.
struct Proof {
  int64_t process;
  uint64_t address;
  uint64_t number; ///< that lies there

  /// Of this process, which has it until it ends.
  static Proof own();
};

class PeerMemory {
public:
  /// Tries to read what \p given says.
  void meet(const Proof &given);
  bool isReadable() const { return process > 0; }
  /// False where that cannot be read. Where the kernel lets this process read
  /// nothing of it, or it has ended, none is readable any more.
  bool read(void *to, uint64_t from, int64_t bytes);

private:
  pid_t process = 0;
};

} // namespace baechi::runtime::sockets

#endif // BAECHI_RUNTIME_TRANSPORT_SOCKETS_PEERMEMORY_H
