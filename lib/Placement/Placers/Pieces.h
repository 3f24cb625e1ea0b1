//===- Pieces.h - Where pieces of operators go together ---------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a local search does not find in a step whose operators were cut: that
/// the pieces of one number belong together (a lane), or all pieces of an
/// operator (a stage of a pipeline). A cut names its pieces `operator.piece3`
/// (--baechi-split); a graph without such names has no proposals.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_PIECES_H
#define BAECHI_LIB_PLACEMENT_PIECES_H

#include "Placers/Registry.h"

namespace baechi::placement::placers {

/// Of `x.piece3` and `x.piece3#1` 3; -1 of other names.
int32_t pieceOf(std::string_view name);

/// - `lanes`: pieces of one number on one device; what is no piece by m-ETF
///   around them.
/// - `owners`: the same lanes; what holds memory, with its update, is where its
///   gradient is, if that is in one lane, and else dealt to the devices, the
///   largest first, to the one that has the fewest bytes; the rest goes where
///   it is read (as --baechi-pin-replicas does).
/// - `lanes:stages`: the same lanes, the other layers in stages.
/// - `stages`: layers, with all of their pieces, in stages.
/// - `lanes:rounds`, `rounds`: the same with two stages on each device, dealt
///   in turn, as for an encoder and what waits for all of it (interleaved:
///   Narayanan et al. 2021, section 2.2).
///
/// A layer is what holds memory and is changed by the step, a parameter, with
/// the operators that read it or make what it is changed by, and what follows
/// them. Stages are contiguous in the order in which the program reads the
/// layers, of even work.
std::vector<Proposal> proposePieces(const Problem &problem, const Model &model);

} // namespace baechi::placement::placers

#endif // BAECHI_LIB_PLACEMENT_PIECES_H
