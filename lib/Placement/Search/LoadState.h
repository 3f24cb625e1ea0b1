//===- LoadState.h - Loads kept up to date move by move ---------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_LOADSTATE_H
#define BAECHI_LIB_PLACEMENT_LOADSTATE_H

#include "Model/LoadGraph.h"

namespace baechi::placement::search {

/// A device for every vertex of a load graph, with the loads of devices and of
/// what the link model makes exclusive, and the bytes on every device. Moving a
/// vertex costs its degree (times the devices that read what it sends).
class LoadState {
public:
  /// \p graph must outlive the state. Of the bytes that only pass through a
  /// device, outputs, scratch and received copies, the share \p passingShare
  /// is held: 1 bounds the peak of every schedule from above, 0 from below.
  LoadState(const LoadGraph &graph, const Machine &machine,
            double passingShare);

  void assign(std::span<const int32_t> deviceOf);

  const std::vector<int32_t> &assignment() const { return device; }
  int32_t deviceOf(int32_t v) const { return device[v]; }
  std::span<const int32_t> verticesOn(int32_t d) const { return onDevice[d]; }

  /// What has a load: the devices, [0, numDevices), then links or sides of
  /// devices; then the bytes on every device; last the pairs of devices that
  /// must talk but cannot, counted once a net.
  std::span<const int64_t> loads() const { return {value.data(), numLoads}; }
  std::span<const int64_t> bytes() const {
    return {value.data() + numLoads, static_cast<size_t>(devices)};
  }
  std::span<const int64_t> values() const { return value; }
  size_t firstBytes() const { return numLoads; }
  size_t blockedIndex() const { return value.size() - 1; }
  int64_t maxLoad() const;
  /// No device above its memory, no pair that cannot talk.
  bool feasible() const;

  /// Calls \p add(index into `values()`, difference) for every change that
  /// moving \p v to another device \p to would make; an index may come more
  /// than once.
  template <typename Add>
  void forEachChange(int32_t v, int32_t to, Add add) const;
  void move(int32_t v, int32_t to);

private:
  template <typename Add>
  void changeTransfer(int32_t net, int32_t from, int32_t to, int64_t sign,
                      Add add) const;
  template <typename IsRead, typename Add>
  void changeTransfers(int32_t net, int32_t home, IsRead isRead, int64_t sign,
                       Add add) const;
  int32_t &readers(int32_t net, int32_t d) {
    return readersOn[static_cast<size_t>(net) * devices + d];
  }
  int32_t readers(int32_t net, int32_t d) const {
    return readersOn[static_cast<size_t>(net) * devices + d];
  }
  /// Of a net sent from \p home and read on other devices, once for all.
  int64_t sendNs(int32_t net, int32_t home) const {
    return isStage[home] ? 0 : graph->transferNs(net, home, stage);
  }

  const LoadGraph *graph;
  int32_t devices;
  size_t numLoads;
  LinkModel linkModel;
  int32_t stage; ///< -1: transfers are not staged
  std::vector<uint8_t> isStage;
  std::vector<int64_t> limit; ///< bytes of every device
  std::vector<int64_t> held;  ///< bytes of every vertex where it is
  std::vector<int64_t> copy;  ///< bytes of every net where it is received
  std::vector<int32_t> device;
  std::vector<int32_t> readersOn; ///< [net * devices + d]
  std::vector<int32_t> remoteOf;  ///< net -> devices it is sent to
  std::vector<int64_t> value;
  std::vector<std::vector<int32_t>> onDevice;
  std::vector<int32_t> slot; ///< place in `onDevice`
};

template <typename Add>
void LoadState::changeTransfer(int32_t net, int32_t from, int32_t to,
                               int64_t sign, Add add) const {
  if (copy[net])
    add(numLoads + to, sign * copy[net]);
  if (stage >= 0) {
    if (!isStage[to])
      add(to, sign * graph->transferNs(net, stage, to));
    return;
  }
  int64_t ns = sign * graph->transferNs(net, from, to);
  auto d = static_cast<size_t>(devices);
  switch (linkModel) {
  case LinkModel::Unlimited:
    break;
  case LinkModel::Parallel:
    add(d + from * d + to, ns);
    break;
  case LinkModel::Duplex:
    add(d + from, ns);
    add(2 * d + to, ns);
    break;
  case LinkModel::Sequential:
    add(d + from, ns);
    add(d + to, ns);
    break;
  }
}

/// All transfers of a net from \p home to where it is read, each hop once.
template <typename IsRead, typename Add>
void LoadState::changeTransfers(int32_t net, int32_t home, IsRead isRead,
                                int64_t sign, Add add) const {
  std::vector<uint8_t> there(devices, 0);
  there[home] = 1;
  for (int32_t d = 0; d < devices; ++d) {
    if (d == home || !isRead(d))
      continue;
    if (graph->isBlocked(net, home, d)) {
      add(blockedIndex(), sign);
      continue;
    }
    for (int32_t to = d, from; !there[to]; to = from) {
      there[to] = 1;
      from = graph->hopBefore(home, to);
      changeTransfer(net, from, to, sign, add);
    }
  }
}

template <typename Add>
void LoadState::forEachChange(int32_t v, int32_t to, Add add) const {
  int32_t from = device[v];
  add(from, -graph->timeOf(v, from));
  add(to, graph->timeOf(v, to));
  if (held[v]) {
    add(numLoads + from, -held[v]);
    add(numLoads + to, held[v]);
  }
  for (int32_t net : graph->consumes[v]) {
    int32_t home = device[graph->producer[net]];
    bool leaves = from != home && readers(net, from) == 1;
    bool comes = to != home && readers(net, to) == 0;
    if (graph->lacksLinks && (leaves || comes)) {
      changeTransfers(
          net, home, [&](int32_t d) { return readers(net, d) > 0; }, -1, add);
      changeTransfers(
          net, home,
          [&](int32_t d) {
            return readers(net, d) - (d == from) + (d == to) > 0;
          },
          1, add);
    } else {
      if (leaves)
        changeTransfer(net, home, from, -1, add);
      if (comes)
        changeTransfer(net, home, to, 1, add);
    }
    if (stage >= 0 && leaves != comes) {
      int32_t remote = remoteOf[net];
      if (leaves && remote == 1)
        add(home, -sendNs(net, home));
      if (comes && remote == 0)
        add(home, sendNs(net, home));
    }
  }
  for (int32_t net : graph->produces[v]) {
    if (graph->lacksLinks) {
      auto isRead = [&](int32_t d) { return readers(net, d) > 0; };
      changeTransfers(net, from, isRead, -1, add);
      changeTransfers(net, to, isRead, 1, add);
    } else {
      for (int32_t d = 0; d < devices; ++d) {
        if (readers(net, d) == 0)
          continue;
        if (d != from)
          changeTransfer(net, from, d, -1, add);
        if (d != to)
          changeTransfer(net, to, d, 1, add);
      }
    }
    if (stage >= 0) {
      if (remoteOf[net] > 0)
        add(from, -sendNs(net, from));
      // The readers that stay where it comes from are remote afterwards.
      if (remoteOf[net] + (readers(net, from) > 0) - (readers(net, to) > 0) > 0)
        add(to, sendNs(net, to));
    }
  }
}

} // namespace baechi::placement::search

#endif // BAECHI_LIB_PLACEMENT_LOADSTATE_H
