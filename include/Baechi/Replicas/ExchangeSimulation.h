//===- ExchangeSimulation.h - Steps of replicas over slow links -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Simulated time of data-parallel training with parameter servers that share
/// the workers' machines. Each machine computes forward and backward layer by
/// layer; a gradient is pushed, in pieces, as soon as its layer's backward is
/// done; a piece's server sends the new values to all once it has every
/// machine's gradient; a layer's forward of the next step begins when all its
/// pieces are there. A machine's network card sends one message at a time and
/// receives one at a time, for its worker and its server.
///
/// Sources: Jayarajan et al., "Priority-based Parameter Propagation for
/// Distributed DNN Training" (P3), MLSys 2019, sections 3 and 4; Hashemi et
/// al., "TicTac: Accelerating Distributed Deep Learning with Communication
/// Scheduling", MLSys 2019 (whole arrays, in the order of their first use).
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_REPLICAS_EXCHANGESIMULATION_H
#define BAECHI_REPLICAS_EXCHANGESIMULATION_H

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace baechi::replicas {

/// Layers in the order of their forward.
struct Layer {
  std::string name;
  int64_t parameters = 0; ///< of 4 bytes
  int64_t forwardNs = 0, backwardNs = 0;
};

enum class Policy : uint8_t {
  Fifo,   ///< whole arrays as they are ready, large ones a part a server
  Slices, ///< pieces of a size, as they are ready
  P3,     ///< such pieces, those of the first layer first
  TicTac, ///< arrays as Fifo's, those of the first layer first
};

/// Which servers have an array's pieces.
enum class Servers : uint8_t {
  First,  ///< from the first on, as P3's authors do
  InTurn, ///< from the one behind the array before: even shares
  Better, ///< whichever of both has the shorter step
};

struct ExchangeOptions {
  int machines = 4;
  double bytesPerSecond = 0; ///< of a network card, each way
  int64_t latencyNs = 50000;
  int64_t messageNs = 0; ///< that a card is busy with a message besides
  /// A card begins to receive a message once all of it was sent, as where
  /// something between stores it; else while it is sent.
  bool stored = false;
  /// A server tells the workers that an array's piece is new, and each asks for
  /// the values when it was told of all pieces, as those of MXNet's store do.
  /// Else the values are sent at once. Both are messages of no bytes, in the
  /// order of all.
  bool asked = false;
  /// Of gradients that a server adds and takes a step with, one after the other
  /// in the order of its messages; 0: at once.
  double serverBytesPerSecond = 0;
  Policy policy = Policy::P3;
  Servers servers = Servers::First;
  int64_t slice = 50000;      ///< parameters
  int64_t bigArray = 1000000; ///< parameters from which Fifo splits an array
  int steps = 6;              ///< of which the first is not counted
};

struct ExchangeResult {
  int64_t stepNs = 0;    ///< between steps, in the long run
  int64_t computeNs = 0; ///< of a step alone
  /// Of the busiest card: bytes of a step over its bytes per second.
  int64_t exchangeNs = 0;
  size_t pieces = 0;
  /// No order of messages has shorter steps.
  int64_t boundNs() const {
    return computeNs > exchangeNs ? computeNs : exchangeNs;
  }
};

/// Layers or options that make no sense; the text names them.
struct ExchangeError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

ExchangeResult simulateExchange(const std::vector<Layer> &layers,
                                const ExchangeOptions &options);

/// The slice of those tried (1,000 to 2,000,000 parameters) with the shortest
/// step; the larger of equal ones.
int64_t chooseSlice(const std::vector<Layer> &layers, ExchangeOptions options);

} // namespace baechi::replicas

#endif // BAECHI_REPLICAS_EXCHANGESIMULATION_H
