//===- ExchangeSimulation.cpp - Steps of replicas over slow links -*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Replicas/ExchangeSimulation.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <tuple>

using namespace baechi::replicas;

namespace {

/// Spreads arrays over servers as MXNet's store does.
constexpr int64_t spread = 9973;

struct Piece {
  int layer;
  int64_t bytes;
  int server;
};

void check(const std::vector<Layer> &layers, const ExchangeOptions &options) {
  auto refuse = [](const std::string &why) { throw ExchangeError(why); };
  if (layers.empty())
    refuse("there is no layer: give at least one");
  for (const Layer &layer : layers)
    if (layer.parameters < 0 || layer.forwardNs < 0 || layer.backwardNs < 0)
      refuse("layer '" + layer.name + "' has a negative size or time");
  if (options.machines < 1)
    refuse("there are " + std::to_string(options.machines) +
           " machines: give at least 1");
  if (!(options.bytesPerSecond > 0))
    refuse("a network card has " + std::to_string(options.bytesPerSecond) +
           " bytes a second: give more than 0");
  if (options.latencyNs < 0 || options.messageNs < 0)
    refuse("the latency or the time of a message is negative");
  if (options.serverBytesPerSecond < 0)
    refuse("a server adds " + std::to_string(options.serverBytesPerSecond) +
           " bytes a second: give more than 0, or 0 for at once");
  if (options.slice < 256)
    refuse("the slice has " + std::to_string(options.slice) +
           " parameters: give at least 256 (1 KiB)");
  if (options.bigArray < options.machines)
    refuse("the large array has " + std::to_string(options.bigArray) +
           " parameters: give at least one a server");
  if (options.steps < 3)
    refuse("there are " + std::to_string(options.steps) +
           " steps: give at least 3");
}

std::vector<Piece> piecesOf(const std::vector<Layer> &layers,
                            const ExchangeOptions &options) {
  bool sliced =
      options.policy == Policy::Slices || options.policy == Policy::P3;
  int64_t servers = options.machines;
  std::vector<Piece> pieces;
  int64_t turn = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    int64_t left = layers[i].parameters;
    int64_t part = left;
    if (sliced)
      part = std::min(left, options.slice);
    else if (left >= options.bigArray)
      part = (left + servers - 1) / servers;
    bool one = part == left;
    for (int64_t k = 0; left > 0; ++k) {
      int64_t size = std::min(part, left);
      int64_t server = (one ? spread * int64_t(i) : k) % servers;
      if (sliced && options.servers == Servers::InTurn)
        server = turn++ % servers;
      pieces.push_back({int(i), 4 * size, int(server)});
      left -= size;
    }
  }
  return pieces;
}

enum class Kind : uint8_t { Gradient, Told, Asked, Values };

struct Message {
  int priority; ///< smaller is sooner; equal ones as they were offered
  int64_t order;
  int64_t bytes;
  int piece, from, to;
  Kind kind;
  bool operator>(const Message &other) const {
    return std::tie(priority, order) > std::tie(other.priority, other.order);
  }
};
using Heap = std::priority_queue<Message, std::vector<Message>, std::greater<>>;

/// One direction of a network card.
struct Side {
  Heap waiting;
  bool busy = false;
};

enum class What : uint8_t { Computed, Sent, Arrives, Received, Added };

struct Event {
  int64_t time, order;
  What what;
  int machine;
  Message message;
  bool operator>(const Event &other) const {
    return std::tie(time, order) > std::tie(other.time, other.order);
  }
};

class Simulation {
public:
  Simulation(const std::vector<Layer> &layers, const ExchangeOptions &options)
      : layers(layers), options(options), pieces(piecesOf(layers, options)),
        workers(size_t(options.machines)), out(size_t(options.machines)),
        in(size_t(options.machines)), servers(size_t(options.machines)),
        pushes(pieces.size(), 0), needed(layers.size(), 0),
        ofLayer(layers.size()) {
    for (size_t i = 0; i < pieces.size(); ++i) {
      ++needed[size_t(pieces[i].layer)];
      ofLayer[size_t(pieces[i].layer)].push_back(int(i));
    }
    for (Worker &worker : workers)
      worker.arrived.assign(layers.size(), 0), worker.told = worker.arrived;
  }

  ExchangeResult run() {
    for (int machine = 0; machine < options.machines; ++machine)
      compute(machine);
    while (!events.empty()) {
      Event event = events.top();
      events.pop();
      now = event.time;
      handle(event);
    }
    ExchangeResult result;
    const std::vector<int64_t> &begins = workers[0].begins;
    result.stepNs = (begins.back() - begins[1]) / (options.steps - 2);
    for (const Layer &layer : layers)
      result.computeNs += layer.forwardNs + layer.backwardNs;
    result.exchangeNs = busiestCard();
    result.pieces = pieces.size();
    return result;
  }

private:
  struct Worker {
    int step = 0, layer = 0;
    bool forward = true, busy = false;
    std::vector<int64_t> arrived; ///< pieces of all steps, by layer
    std::vector<int64_t> told;    ///< pieces that are new, the same
    std::vector<int64_t> begins;  ///< of steps
  };

  const std::vector<Layer> &layers;
  const ExchangeOptions &options;
  std::vector<Piece> pieces;
  std::vector<Worker> workers;
  std::vector<Side> out, in;
  std::vector<Side> servers;   ///< what they add, as if they received it
  std::vector<int64_t> pushes; ///< of all steps, by piece
  std::vector<int64_t> needed; ///< pieces, by layer
  std::vector<std::vector<int>> ofLayer;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  int64_t now = 0, orders = 0;

  void at(int64_t time, What what, int machine, Message message = {}) {
    events.push({time, orders++, what, machine, message});
  }

  int64_t takes(int64_t bytes) const {
    return options.messageNs +
           int64_t(std::ceil(double(bytes) * 1e9 / options.bytesPerSecond));
  }

  void handle(const Event &event) {
    size_t machine = size_t(event.machine);
    switch (event.what) {
    case What::Computed:
      computed(event.machine);
      break;
    case What::Sent:
      out[machine].busy = false;
      send(event.machine);
      break;
    case What::Arrives:
      in[machine].waiting.push(event.message);
      receive(event.machine);
      break;
    case What::Received:
      in[machine].busy = false;
      received(event.machine, event.message);
      receive(event.machine);
      break;
    case What::Added:
      servers[machine].busy = false;
      added(event.machine, event.message);
      add(event.machine);
      break;
    }
  }

  /// Begins the next layer, where it may.
  void compute(int machine) {
    Worker &worker = workers[size_t(machine)];
    if (worker.busy || worker.step == options.steps)
      return;
    size_t layer = size_t(worker.layer);
    if (worker.forward && worker.arrived[layer] < needed[layer] * worker.step)
      return;
    if (worker.forward && worker.layer == 0)
      worker.begins.push_back(now);
    worker.busy = true;
    at(now + (worker.forward ? layers[layer].forwardNs
                             : layers[layer].backwardNs),
       What::Computed, machine);
  }

  void computed(int machine) {
    Worker &worker = workers[size_t(machine)];
    worker.busy = false;
    bool forward = worker.forward;
    int layer = worker.layer;
    if (forward && layer + 1 < int(layers.size()))
      ++worker.layer;
    else if (forward)
      worker.forward = false;
    else if (layer > 0)
      --worker.layer;
    else
      worker.forward = true, ++worker.step;
    // The worker is ready for its next layer: what it offers may begin that.
    if (!forward)
      for (int piece : ofLayer[size_t(layer)])
        offer(machine, pieces[size_t(piece)].server, piece, Kind::Gradient);
    compute(machine);
  }

  void offer(int from, int to, int piece, Kind kind) {
    bool ordered =
        options.policy == Policy::P3 || options.policy == Policy::TicTac;
    const Piece &what = pieces[size_t(piece)];
    bool hasBytes = kind == Kind::Gradient || kind == Kind::Values;
    Message message{ordered ? what.layer : 0,
                    orders++,
                    hasBytes ? what.bytes : 0,
                    piece,
                    from,
                    to,
                    kind};
    if (from == to)
      return received(to, message);
    out[size_t(from)].waiting.push(message);
    send(from);
  }

  void send(int machine) {
    Side &side = out[size_t(machine)];
    if (side.busy || side.waiting.empty())
      return;
    Message message = side.waiting.top();
    side.waiting.pop();
    side.busy = true;
    // Bytes arrive while others are sent yet: the cards are equally fast.
    int64_t sent = now + takes(message.bytes);
    at((options.stored ? sent : now) + options.latencyNs, What::Arrives,
       message.to, message);
    at(sent, What::Sent, machine);
  }

  void receive(int machine) {
    Side &side = in[size_t(machine)];
    if (side.busy || side.waiting.empty())
      return;
    Message message = side.waiting.top();
    side.waiting.pop();
    side.busy = true;
    at(now + takes(message.bytes), What::Received, machine, message);
  }

  void received(int machine, const Message &message) {
    int piece = message.piece;
    auto layer = size_t(pieces[size_t(piece)].layer);
    Worker &worker = workers[size_t(machine)];
    switch (message.kind) {
    case Kind::Gradient:
      servers[size_t(machine)].waiting.push(message);
      return add(machine);
    case Kind::Told:
      // An array is asked for as a whole.
      if (++worker.told[layer] % needed[layer] == 0)
        for (int part : ofLayer[layer])
          offer(machine, pieces[size_t(part)].server, part, Kind::Asked);
      return;
    case Kind::Asked:
      return offer(machine, message.from, piece, Kind::Values);
    case Kind::Values:
      ++worker.arrived[layer];
      return compute(machine);
    }
  }

  /// Begins to add a gradient, where the server may.
  void add(int machine) {
    Side &side = servers[size_t(machine)];
    if (side.busy || side.waiting.empty())
      return;
    Message message = side.waiting.top();
    side.waiting.pop();
    if (options.serverBytesPerSecond == 0)
      return added(machine, message);
    side.busy = true;
    at(now + int64_t(std::ceil(double(message.bytes) * 1e9 /
                               options.serverBytesPerSecond)),
       What::Added, machine, message);
  }

  void added(int machine, const Message &message) {
    if (++pushes[size_t(message.piece)] % options.machines != 0)
      return;
    Kind kind = options.asked ? Kind::Told : Kind::Values;
    for (int worker = 0; worker < options.machines; ++worker)
      offer(machine, worker, message.piece, kind);
  }

  /// A machine sends all gradients but its own server's, and as its server new
  /// values to all others; it receives as much.
  int64_t busiestCard() const {
    int64_t all = 0, most = 0;
    std::vector<int64_t> served(size_t(options.machines), 0);
    for (const Piece &piece : pieces) {
      all += piece.bytes;
      served[size_t(piece.server)] += piece.bytes;
    }
    for (int64_t own : served)
      most = std::max(most, all - own + own * (options.machines - 1));
    return takes(most) - options.messageNs;
  }
};

} // namespace

ExchangeResult
baechi::replicas::simulateExchange(const std::vector<Layer> &layers,
                                   const ExchangeOptions &options) {
  check(layers, options);
  if (options.servers != Servers::Better)
    return Simulation(layers, options).run();
  // Even shares are less to send, but orders by priority fall into slow rhythms
  // with them at some bandwidths, where machines wait for each other in turn.
  ExchangeOptions one = options, other = options;
  one.servers = Servers::First;
  other.servers = Servers::InTurn;
  ExchangeResult first = Simulation(layers, one).run();
  ExchangeResult inTurn = Simulation(layers, other).run();
  return inTurn.stepNs < first.stepNs ? inTurn : first;
}

int64_t baechi::replicas::chooseSlice(const std::vector<Layer> &layers,
                                      ExchangeOptions options) {
  constexpr int64_t tried[] = {2000000, 1000000, 500000, 200000, 100000, 50000,
                               40000,   20000,   10000,  5000,   2000,   1000};
  int64_t best = 0, shortest = 0;
  for (int64_t slice : tried) {
    options.slice = slice;
    int64_t step = simulateExchange(layers, options).stepNs;
    if (best == 0 || step < shortest)
      best = slice, shortest = step;
  }
  return best;
}
