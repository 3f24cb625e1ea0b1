//===- LinkMeasure.cpp - Measuring messages -------------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/Abi.h"
#include "Baechi/Runtime/Machine.h"
#include "Baechi/Runtime/Ranks.h"
#include "Baechi/Runtime/Session.h"
#include "core/Exchange.h"
#include "drivers/cuda/CudaDevice.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

using namespace baechi::runtime;

// The program that is measured: the sender writes a tensor and sends it as the
// next message of queue 0, which the receiver copies and answers with a message
// without bytes in queue 1. Operator i of the sender is exchange i. Both move
// through their arenas, so that a tensor comes from the cache of who has just
// written it and goes to where nobody was lately, as in a step.

/// Beyond a second-level cache.
static constexpr int64_t arenaBytes = int64_t(16) << 20;

namespace {
/// Where the next message lies.
class Ring {
public:
  explicit Ring(int64_t size) : size(size) {}
  int64_t take(int64_t bytes) {
    if (next + bytes > size)
      next = 0;
    int64_t offset = next;
    next += (bytes + 63) / 64 * 64;
    return offset;
  }

private:
  int64_t size, next = 0;
};
} // namespace

using WriteTensor = int32_t (*)(baechi_context *, char *tensor, int value,
                                int64_t bytes);

/// What lies in a file is written there by a copy in its place. Before, there
/// is nothing that would have to be read.
static int32_t writeOnDisk(baechi_context *context, char *tensor, int,
                           int64_t bytes) {
  return baechi_disk_copy(context, tensor, tensor, bytes);
}

/// Lets the device write a tensor, now or when it comes to it.
static int32_t writeTensor(baechi_context *context, char *tensor, int value,
                           int64_t bytes) {
  cuda::CudaDevice *gpu = cuda::currentDevice;
  if (!gpu) {
    std::memset(tensor, value, size_t(bytes));
    return 0;
  }
  if (bytes == 0)
    return 0;
  Problem problem = gpu->check(
      gpu->api().memsetAsync(reinterpret_cast<cuda::DevicePointer>(tensor),
                             static_cast<unsigned char>(value), size_t(bytes),
                             gpu->computeStream()),
      "a tensor cannot be written");
  return problem ? context->exchange.fail(*context,
                                          {problem.reason, problem.detail})
                 : 0;
}

template <WriteTensor write>
static int32_t sendMessages(baechi_context *context, char *arena) {
  const Channel &channel = context->exchange.channels()[0];
  Ring ring(arenaBytes);
  for (int32_t i = 0; size_t(i) < channel.slots.size(); ++i) {
    int64_t bytes = channel.slots[size_t(i)].bytes;
    char *tensor = arena + ring.take(bytes);
    if (write(context, tensor, i, bytes))
      return Exchange::Stop;
    baechi_operator_begin(context, i);
    if (baechi_recv(context, 1, i, arena) ||
        baechi_send(context, 0, i, tensor) ||
        baechi_await_recv(context, 1, i) || baechi_await_send(context, 0, i))
      return Exchange::Stop;
    baechi_operator_end(context, i);
  }
  return 0;
}

static int32_t receiveMessages(baechi_context *context, char *arena) {
  const Channel &channel = context->exchange.channels()[0];
  Ring ring(arenaBytes);
  for (int32_t i = 0; size_t(i) < channel.slots.size(); ++i)
    if (baechi_recv(context, 0, i,
                    arena + ring.take(channel.slots[size_t(i)].bytes)) ||
        baechi_await_recv(context, 0, i) || baechi_send(context, 1, i, arena) ||
        baechi_await_send(context, 1, i))
      return Exchange::Stop;
  return 0;
}

static int32_t stayIdle(baechi_context *, char *) { return 0; }

static Program exchangeProgram(const std::vector<int64_t> &messageBytes,
                               const LinkMeasureOptions &options) {
  int32_t sender = options.sender, receiver = options.receiver;
  Program program;
  size_t devices =
      std::max(options.kinds.size(), size_t(std::max(sender, receiver)) + 1);
  for (size_t i = 0; i < devices; ++i) {
    std::string kind = i < options.kinds.size() ? options.kinds[i] : "host";
    std::string name = i < options.names.size() ? options.names[i]
                                                : "device" + std::to_string(i);
    program.devices.push_back({name, kind, "stayIdle", 64, 64, {}});
  }
  for (auto [device, entry] : {std::pair(sender, "sendMessages"),
                               std::pair(receiver, "receiveMessages")}) {
    DeviceInfo &info = program.devices[size_t(device)];
    info.entry =
        device == sender && info.kind == "disk" ? "sendFromDisk" : entry;
    info.arenaBytes = info.memory = arenaBytes;
  }
  program.queues = {{sender, receiver, {}}, {receiver, sender, {}}};
  // One message after the other, as NCCL and pinned memory want to know.
  int64_t group = 0;
  auto add = [&](QueueInfo &queue, int64_t bytes) {
    constexpr int64_t apart = 10, takes = 4;
    MessageInfo message;
    message.bytes = bytes;
    message.group = group++;
    message.startNs = apart * message.group;
    message.endNs = message.startNs + takes;
    queue.messages.push_back(message);
  };
  for (int64_t bytes : messageBytes) {
    program.devices[size_t(sender)].operators.push_back({"exchange", "", 0, 0});
    add(program.queues[0], bytes);
    add(program.queues[1], 0);
  }
  return program;
}

static void *resolveExchange(const std::string &name) {
  int32_t (*entry)(baechi_context *, char *) = stayIdle;
  if (name == "sendMessages")
    entry = sendMessages<writeTensor>;
  else if (name == "sendFromDisk")
    entry = sendMessages<writeOnDisk>;
  else if (name == "receiveMessages")
    entry = receiveMessages;
  return reinterpret_cast<void *>(entry);
}

static double median(std::vector<int64_t> times) {
  auto middle = times.begin() + std::ptrdiff_t(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return double(*middle);
}

/// What messages of each size take, the median over repetitions.
static Expected<std::vector<TransferSample>>
sampleTransfers(const LinkMeasureOptions &options);

Expected<LinkFit>
baechi::runtime::measureLink(const LinkMeasureOptions &options) {
  if (options.largestBytes < 1 || options.largestBytes > arenaBytes ||
      options.repetitions < 1)
    return Error("a link is measured with at least one repetition and sizes "
                 "up to at least one byte and at most " +
                 std::to_string(arenaBytes));
  if (options.sender < 0 || options.receiver < 0 ||
      options.sender == options.receiver)
    return Error("a link is measured between two different devices");
  // What else the machine does may take longer than the messages.
  constexpr int tries = 4;
  // Copies between caches and memories differ from a line by less.
  constexpr double steady = 0.5;
  std::optional<LinkFit> best;
  std::vector<TransferSample> fastest; // Of all tries, size by size.
  LinkMeasureOptions patient = options;
  for (int i = 1;; ++i, patient.repetitions *= 2) {
    Expected<std::vector<TransferSample>> samples = sampleTransfers(patient);
    if (!samples)
      return samples.takeError();
    if (fastest.empty())
      fastest = *samples;
    for (size_t k = 0; k < fastest.size(); ++k)
      fastest[k].ns = std::min(fastest[k].ns, (*samples)[k].ns);
    Expected<LinkFit> fit = fitLink(*samples);
    if (fit && (!best || fit->residual < best->residual))
      best = *fit;
    if (best && (best->residual <= steady || i == tries)) {
      best->disturbed = best->residual > steady;
      return *best;
    }
    if (i == tries) {
      // In no try by itself do times grow with the size.
      return fitDisturbed(std::move(fastest));
    }
  }
}

static std::vector<int64_t> sizesOf(const LinkMeasureOptions &options) {
  std::vector<int64_t> sizes = {0};
  for (int64_t bytes = 1; bytes <= options.largestBytes; bytes *= 4)
    sizes.push_back(bytes);
  return sizes;
}

/// Messages of each size, one more than are counted.
static Expected<std::unique_ptr<Session>>
startExchange(const LinkMeasureOptions &options) {
  std::vector<int64_t> messageBytes;
  for (int64_t bytes : sizesOf(options))
    messageBytes.insert(messageBytes.end(), size_t(options.repetitions) + 1,
                        bytes);
  SessionOptions sessionOptions;
  sessionOptions.ranks = options.ranks;
  sessionOptions.rehearse = false; // It only writes and sends.
  return Session::create(exchangeProgram(messageBytes, options),
                         resolveExchange, sessionOptions);
}

//===----------------------------------------------------------------------===//
// Links between processes
//===----------------------------------------------------------------------===//

static constexpr char beginsMeasure[] = "measure a link:";

static Error askOthers(const LinkMeasureOptions &options) {
  std::string asked = beginsMeasure;
  for (int64_t number : {int64_t(options.sender), int64_t(options.receiver),
                         options.largestBytes, int64_t(options.repetitions)})
    asked += " " + std::to_string(number);
  for (const std::string &kind : options.kinds)
    asked += " " + kind;
  for (int32_t rank = 1; rank < options.ranks->size(); ++rank)
    if (Error error = options.ranks->send(rank, asked))
      return error;
  return Error();
}

Expected<bool>
baechi::runtime::followLinkMeasure(const std::shared_ptr<Ranks> &ranks,
                                   const std::string &asked) {
  if (!asked.starts_with(beginsMeasure))
    return false;
  LinkMeasureOptions options;
  std::istringstream words(asked.substr(std::strlen(beginsMeasure)));
  words >> options.sender >> options.receiver >> options.largestBytes >>
      options.repetitions;
  for (std::string kind; words >> kind;)
    options.kinds.push_back(kind);
  options.ranks = ranks;
  auto session = startExchange(options);
  // What a session fails of, rank 0 says.
  if (!session)
    return !ranks->broken() ? Expected<bool>(true) : session.takeError();
  if (Error error = (*session)->follow())
    return error;
  return true;
}

//===----------------------------------------------------------------------===//
// Samples
//===----------------------------------------------------------------------===//

static Expected<std::vector<TransferSample>>
sampleTransfers(const LinkMeasureOptions &options) {
  if (options.ranks)
    if (Error error = askOthers(options))
      return error;
  auto session = startExchange(options);
  if (!session)
    return session.takeError();
  std::vector<int64_t> sizes = sizesOf(options);
  size_t rounds = size_t(options.repetitions) + 1;
  if (Error error = (*session)->step())
    return error;
  const Timeline &timeline = (*session)->timeline();
  // The first of each size warms what it can.
  auto medianOf = [&](size_t size, auto time) {
    std::vector<int64_t> times;
    for (size_t k = 1; k < rounds; ++k)
      times.push_back(time(size * rounds + k));
    return median(std::move(times));
  };
  auto roundTrip = [&](size_t i) {
    return timeline.devices[size_t(options.sender)].operators[i].durationNs();
  };
  double rendezvous = medianOf(0, [&](size_t i) { return roundTrip(i) / 2; });
  // Two processes may have clocks of their own: the sender's is asked.
  auto oneWay = [&](size_t size) {
    return options.ranks ? medianOf(size, roundTrip) - rendezvous
                         : rendezvous + medianOf(size, [&](size_t k) {
                             return timeline.queues[0][k].durationNs();
                           });
  };
  std::vector<TransferSample> samples;
  for (size_t i = 0; i < sizes.size(); ++i)
    samples.push_back({sizes[i], std::max(1.0, oneWay(i))});
  return samples;
}
