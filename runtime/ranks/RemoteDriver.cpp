//===- RemoteDriver.cpp - Devices of other ranks -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ranks/RemoteDriver.h"

#include <cstring>

using namespace baechi::runtime;

namespace {

class RemoteDriver final : public Driver {
public:
  RemoteDriver(std::shared_ptr<Ranks> ranks, RankRelay &relay, int32_t device)
      : ranks(std::move(ranks)), relay(relay), device(device) {}

  Error start() override { return Error(); }

  int32_t run(baechi_context *context) override {
    return relay.runBy() == device ? relay.run(*context) : 0;
  }

  Error write(int64_t offset, const void *data, size_t bytes) override {
    if (Error error = ask(Command::Write, offset, bytes))
      return error;
    if (Error error =
            ranks->send(owner(), {static_cast<const char *>(data), bytes}))
      return error;
    return answer(nullptr, 0);
  }

  Error read(int64_t offset, void *data, size_t bytes) const override {
    if (Error error = ask(Command::Read, offset, bytes))
      return error;
    return answer(data, bytes);
  }

private:
  int32_t owner() const { return relay.ownerOf(device); }

  Error ask(Command::Kind kind, int64_t offset, size_t bytes) const {
    if (!ranks->leads())
      return Error("it lies on " + Ranks::name(owner()) +
                   ", and only rank 0 reaches the others");
    return ranks->send(owner(),
                       Command(kind, device, offset, int64_t(bytes)).bytes());
  }

  /// 'e' and an error's text, or 'k' and what was read.
  Error answer(void *data, size_t bytes) const {
    Expected<std::string> reply = ranks->receive(owner());
    if (!reply)
      return reply.takeError();
    if ((*reply)[0] == 'e')
      return Error(Ranks::name(owner()) + ": " + reply->substr(1));
    if (bytes)
      std::memcpy(data, reply->data() + 1, bytes);
    return Error();
  }

  const std::shared_ptr<Ranks> ranks;
  RankRelay &relay;
  const int32_t device;
};

} // namespace

const DriverKind baechi::runtime::remoteKind = {"remote", /*runsEntry=*/false,
                                                Memory::None, nullptr};

std::unique_ptr<Driver>
baechi::runtime::makeRemoteDriver(std::shared_ptr<Ranks> ranks,
                                  RankRelay &relay, int32_t device) {
  return std::make_unique<RemoteDriver>(std::move(ranks), relay, device);
}

static std::string obey(Ranks &ranks, const Command &command, Driver &driver) {
  Error error;
  std::string bytes;
  if (command.kind == Command::Write) {
    Expected<std::string> data = ranks.receive(0);
    if (!data)
      return "e" + data.error().message();
    error = driver.write(command.offset, data->data(), data->size());
  } else {
    bytes.resize(size_t(command.size) + 1);
    bytes[0] = 'k';
    error = driver.read(command.offset, bytes.data() + 1, bytes.size() - 1);
  }
  if (error)
    return "e" + error.message();
  return bytes.empty() ? "k" : bytes;
}

Error baechi::runtime::followLeader(
    Ranks &ranks, const std::vector<std::unique_ptr<Driver>> &drivers,
    const std::function<Error()> &step,
    const std::function<Error(const Command &)> &steps) {
  std::string text;
  for (;;) {
    if (Error error = ranks.receive(0, text))
      return error;
    Command command;
    if (!command.read(text))
      return Error("rank 0 says what this rank does not understand: the ranks "
                   "are of different versions");
    switch (command.kind) {
    case Command::Step:
      if (Error error = step(); error && ranks.broken())
        return error;
      break;
    case Command::Steps:
    case Command::Calls:
      if (Error error = steps(command); error && ranks.broken())
        return error;
      break;
    case Command::Write:
    case Command::Read:
      if (Error error =
              ranks.send(0, obey(ranks, command, *drivers[command.device])))
        return error;
      break;
    case Command::Quit:
      ranks.setDismissed();
      return Error();
    case Command::Close:
      return Error();
    }
  }
}
