//===- DiskDriver.cpp - A device whose memory is a file -------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "drivers/disk/DiskDriver.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <span>
#include <vector>

using namespace baechi::runtime;

namespace {

constexpr size_t pieceBytes = size_t(1) << 20;

/// Read and written with calls, not mapped: what fails is then an error and no
/// signal. Addresses stand for places of the file; nothing lies there.
class DiskFile {
public:
  ~DiskFile() {
    if (base)
      munmap(base, size);
    if (file >= 0)
      close(file);
  }

  Error open(size_t bytes) {
    size = std::max<size_t>(bytes, 1);
    std::string folder;
    if (const char *asked = std::getenv("BAECHI_DISK"); asked && *asked) {
      folder = asked;
    } else {
      std::error_code failed;
      folder = std::filesystem::temp_directory_path(failed).string();
    }
    auto error = [&](const std::string &what, int number) {
      return Error("cannot " + what + " in '" + folder +
                   "': " + std::strerror(number) +
                   "; BAECHI_DISK names the folder of what waits on disk");
    };
    file = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    // Not every file system has files without a name.
    if (file < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
      std::string name = folder + "/baechi-disk-XXXXXX";
      file = mkostemp(name.data(), O_CLOEXEC);
      if (file >= 0)
        unlink(name.c_str());
    }
    if (file < 0)
      return error("make a file", errno);
    // What has its place now needs none later.
    if (int number = posix_fallocate(file, 0, static_cast<off_t>(size)))
      return error("reserve " + std::to_string(bytes) + " bytes of a file",
                   number);
    void *place = mmap(nullptr, size, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED)
      return error("find addresses for " + std::to_string(bytes) +
                       " bytes of a file",
                   errno);
    base = static_cast<char *>(place);
    return Error();
  }

  char *address() const { return base; }
  int64_t offsetOf(const void *place) const {
    return static_cast<const char *>(place) - base;
  }

  Problem read(int64_t offset, void *data, size_t bytes) const {
    char *at = static_cast<char *>(data);
    while (bytes > 0) {
      ssize_t done = pread(file, at, bytes, offset);
      if (done < 0 && errno == EINTR)
        continue;
      if (done <= 0)
        return {"what waits on disk cannot be read",
                done < 0 ? strerrordesc_np(errno) : "the file is too short"};
      at += done;
      offset += done;
      bytes -= static_cast<size_t>(done);
    }
    return {};
  }

  Problem write(int64_t offset, const void *data, size_t bytes) {
    const char *at = static_cast<const char *>(data);
    while (bytes > 0) {
      ssize_t done = pwrite(file, at, bytes, offset);
      if (done < 0 && errno == EINTR)
        continue;
      if (done <= 0)
        return {"what waits on disk cannot be written",
                done < 0 ? strerrordesc_np(errno) : "nothing was written"};
      at += done;
      offset += done;
      bytes -= static_cast<size_t>(done);
    }
    return {};
  }

private:
  int file = -1;
  size_t size = 0;
  char *base = nullptr;
};

/// By way of \p piece.
Problem copyPieces(const DiskFile &from, int64_t source, DiskFile &to,
                   int64_t target, size_t bytes, std::span<char> piece) {
  while (bytes > 0) {
    size_t count = std::min(bytes, piece.size());
    if (Problem problem = from.read(source, piece.data(), count))
      return problem;
    if (Problem problem = to.write(target, piece.data(), count))
      return problem;
    source += static_cast<int64_t>(count);
    target += static_cast<int64_t>(count);
    bytes -= count;
  }
  return {};
}

/// Between a file and host memory, or two files.
class DiskMover final : public Mover {
public:
  DiskMover(const DiskFile *from, DiskFile *to) : from(from), to(to) {
    if (from && to)
      piece.resize(pieceBytes);
  }

  Problem offered(Side, int32_t) override { return {}; }
  Problem copy(int32_t, const void *source, void *destination,
               int64_t bytes) override {
    auto count = static_cast<size_t>(bytes);
    if (!to)
      return from->read(from->offsetOf(source), destination, count);
    if (!from)
      return to->write(to->offsetOf(destination), source, count);
    std::lock_guard<std::mutex> alone(mutex); // both ends may copy
    return copyPieces(*from, from->offsetOf(source), *to,
                      to->offsetOf(destination), count, piece);
  }
  Problem awaited(Side, int32_t, const Exchange &) override { return {}; }
  bool isIdle() override { return true; }
  bool copiesAtOnce() const override { return true; }
  Interval timeOf(int32_t) const override { return Interval(); }

private:
  const DiskFile *from;
  DiskFile *to;
  std::mutex mutex;
  std::vector<char> piece;
};

Error toError(const Problem &problem) {
  return problem ? Error(std::string(problem.reason) + ": " + problem.detail)
                 : Error();
}

class DiskDriver final : public Driver {
public:
  DiskDriver(const DeviceInfo &device, Entry entry)
      : bytes(static_cast<size_t>(device.arenaBytes)), entry(entry) {}

  Error start() override {
    piece.resize(std::min(bytes, pieceBytes));
    return file.open(bytes);
  }

  int32_t run(baechi_context *context) override {
    here = this;
    return entry(context, file.address());
  }

  Error write(int64_t offset, const void *data, size_t count) override {
    return toError(file.write(offset, data, count));
  }
  Error read(int64_t offset, void *data, size_t count) const override {
    return toError(file.read(offset, data, count));
  }

  Expected<std::unique_ptr<Mover>>
  connect(Driver &other, bool otherSends,
          const std::vector<MessageInfo> &) override {
    DiskFile *there = nullptr;
    if (auto *disk = dynamic_cast<DiskDriver *>(&other))
      there = &disk->file;
    else if (other.hostArena().empty())
      return Error("what waits on disk comes from host memory and goes there");
    return std::unique_ptr<Mover>(
        otherSends ? std::make_unique<DiskMover>(there, &file)
                   : std::make_unique<DiskMover>(&file, there));
  }

  Problem copy(const void *source, void *target, size_t count) {
    return copyPieces(file, file.offsetOf(source), file, file.offsetOf(target),
                      count, piece);
  }

  /// Whose thread this is.
  static thread_local DiskDriver *here;

private:
  size_t bytes;
  Entry entry;
  DiskFile file;
  std::vector<char> piece;
};

thread_local DiskDriver *DiskDriver::here = nullptr;

} // namespace

int32_t baechi_disk_copy(baechi_context *context, void *target,
                         const void *source, int64_t bytes) {
  Problem problem =
      DiskDriver::here->copy(source, target, static_cast<size_t>(bytes));
  return problem ? baechi_fail(context, problem.reason) : 0;
}

std::unique_ptr<Driver>
baechi::runtime::makeDiskDriver(const DeviceInfo &device, Entry entry,
                                const Share &) {
  return std::make_unique<DiskDriver>(device, entry);
}
