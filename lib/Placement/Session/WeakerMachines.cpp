//===- WeakerMachines.cpp - Machines that can do no more --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Session/WeakerMachines.h"
#include "Baechi/Placement/Io/Files.h"
#include "Model/DeviceOrder.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

using namespace baechi::placement;
using namespace baechi::placement::session;

/// Larger graphs have no time to be searched more than once.
static constexpr size_t manyOperators = 50'000;

/// Those of more than few operators are placed on parts of the machine only
/// once so many evaluations have shown that this may be of use.
static constexpr int64_t lateEvaluations = 640;

/// Devices that can take each other's place, where no operator has a pin: sets
/// in the order of their first devices.
static std::vector<std::vector<int32_t>> equalDevices(const Machine &machine) {
  auto count = static_cast<int32_t>(machine.devices.size());
  std::vector<std::vector<int32_t>> sets;
  for (int32_t d = 0; d < count; ++d) {
    auto takes = [&](const std::vector<int32_t> &set) {
      const Device &first = machine.devices[set.front()];
      if (machine.devices[d].kind != first.kind ||
          machine.devices[d].memory != first.memory)
        return false;
      const std::optional<Link> &link = set.size() > 1
                                            ? machine.link(set[0], set[1])
                                            : machine.link(set[0], d);
      return link && std::all_of(set.begin(), set.end(), [&](int32_t e) {
               return machine.link(d, e) == link && machine.link(e, d) == link;
             });
    };
    auto it = std::find_if(sets.begin(), sets.end(), takes);
    if (it == sets.end())
      sets.push_back({d});
    else
      it->push_back(d);
  }
  return sets;
}

std::vector<std::vector<int32_t>>
baechi::placement::session::partsOf(const Problem &problem) {
  const Machine &machine = problem.machine;
  const std::vector<Operator> &ops = problem.graph.ops;
  std::vector<std::vector<int32_t>> parts;
  if (machine.nodes || machine.stagedThrough || ops.size() > manyOperators ||
      std::any_of(ops.begin(), ops.end(),
                  [](const Operator &op) { return op.pin.has_value(); }))
    return parts;
  for (const std::vector<int32_t> &set : equalDevices(machine)) {
    const std::string &kind = machine.devices[set.front()].kind;
    if (!std::all_of(ops.begin(), ops.end(), [&](const Operator &op) {
          return timeOn(op, kind).has_value();
        }))
      continue;
    std::vector<size_t> sizes;
    bool isFew = ops.size() <= fewOperators;
    for (size_t size : {2, 3, 4, 6, 8, 16, 32, 64, 128, 256, 512, 1024, 2048})
      if (size < set.size() && (isFew || (size != 3 && size != 6)))
        sizes.push_back(size);
    if (set.size() > 1 && set.size() < machine.devices.size())
      sizes.push_back(set.size());
    for (size_t size : sizes)
      parts.emplace_back(set.begin(),
                         set.begin() + static_cast<ptrdiff_t>(size));
  }
  return parts;
}

/// Whether what the other has may be better than what it has itself.
static bool mayGain(const Session &taker, const Session &giver) {
  return !taker.hasWinner() || taker.value() > giver.lowerBound();
}

Sessions::Sessions(const Problem &problem, const PlaceOptions &options,
                   Session &own, Help help)
    : problem(problem), options(options), own(own), help(help),
      numDevices(problem.machine.devices.size()),
      isOfOneKind(std::all_of(
          problem.machine.devices.begin(), problem.machine.devices.end(),
          [&](const Device &device) {
            return device.kind == problem.machine.devices.front().kind;
          })) {
  size_t size = problem.graph.ops.size();
  std::vector<LinkModel> models;
  if (help != Help::None && size <= manyOperators &&
      !problem.machine.stagedThrough && numDevices > 1)
    for (LinkModel less : {LinkModel::Sequential, LinkModel::Duplex,
                           LinkModel::Parallel, LinkModel::Unlimited}) {
      if (less == problem.machine.linkModel ||
          (!models.empty() && size > fewOperators))
        break;
      models.push_back(less);
    }
  models.push_back(problem.machine.linkModel);
  std::vector<std::vector<int32_t>> parts;
  if (help == Help::Searched)
    parts = partsOf(problem);
  std::vector<int32_t> &all = parts.emplace_back(numDevices);
  std::iota(all.begin(), all.end(), 0);
  for (const std::vector<int32_t> &devices : parts)
    for (LinkModel links : models)
      add(links, devices);
  for (Entry &entry : entries)
    connect(entry);
  begin(/*ofAllDevices=*/size > fewOperators);
}

void Sessions::add(LinkModel links, const std::vector<int32_t> &devices) {
  Entry entry;
  entry.links = links;
  entry.devices = devices;
  if (devices.size() < numDevices)
    entry.name = fmt::format("{} devices", devices.size());
  if (links != problem.machine.linkModel)
    entry.name += fmt::format("{}{} links", entry.name.empty() ? "" : ", ",
                              linkModelName(links));
  if (entry.name.empty()) {
    entry.name = "search";
    entry.session = &own;
    entry.isNeeded = true;
  }
  entries.push_back(std::move(entry));
}

/// It takes over from those right below: of the same devices with links that
/// do less, of the same links with fewer devices.
void Sessions::connect(Entry &taker) {
  auto isBelow = [](const Entry &less, const Entry &more) {
    auto isIn = [&](int32_t d) {
      return std::find(more.devices.begin(), more.devices.end(), d) !=
             more.devices.end();
    };
    return less.links == more.links &&
           less.devices.size() < more.devices.size() &&
           std::all_of(less.devices.begin(), less.devices.end(), isIn);
  };
  std::optional<size_t> lesser;
  for (size_t k = 0; &entries[k] != &taker; ++k) {
    if (entries[k].devices == taker.devices)
      lesser = k; // the last one does most
    if (isBelow(entries[k], taker) &&
        std::none_of(entries.begin(), entries.end(), [&](const Entry &other) {
          return isBelow(entries[k], other) && isBelow(other, taker);
        }))
      taker.from.push_back(k);
  }
  if (lesser)
    taker.from.push_back(*lesser);
}

bool Sessions::lackAnswer() const {
  return std::any_of(entries.begin(), entries.end(), [&](const Entry &entry) {
    return entry.isNeeded && entry.devices.size() == numDevices &&
           !entry.session->hasWinner();
  });
}

/// Whether a session can help the problem's own, by itself or through others.
/// Who helps whom depends on the two alone: a session goes the same way
/// whatever stands above it.
bool Sessions::canHelp(size_t giver) const {
  return std::any_of(entries.begin(), entries.end(), [&](const Entry &taker) {
    return taker.isNeeded &&
           std::find(taker.from.begin(), taker.from.end(), giver) !=
               taker.from.end() &&
           mayGain(*taker.session, *entries[giver].session);
  });
}

/// Calls \p visit for each of some sessions that is needed, once it has taken
/// over what those below it have.
template <typename Visit>
void Sessions::forEachNeeded(std::span<Entry> some, Visit visit) {
  for (Entry &taker : some) {
    if (!taker.isNeeded)
      continue;
    own.phase(taker.name);
    for (size_t from : taker.from) {
      const Entry &giver = entries[from];
      if (!giver.isNeeded || !mayGain(*taker.session, *giver.session))
        continue;
      // The taker's numbers of the giver's devices.
      std::vector<int32_t> numberOf;
      for (int32_t d : giver.devices)
        numberOf.push_back(static_cast<int32_t>(
            std::find(taker.devices.begin(), taker.devices.end(), d) -
            taker.devices.begin()));
      taker.session->takeOver(giver.name, *giver.session, numberOf);
    }
    visit(taker);
  }
}

/// Of these devices, if one has begun.
const Session *Sessions::sessionOf(const std::vector<int32_t> &devices) const {
  auto it = std::find_if(entries.begin(), entries.end(), [&](const Entry &e) {
    return e.session && e.devices == devices;
  });
  return it == entries.end() ? nullptr : it->session;
}

/// Begins a session if it can help.
void Sessions::start(size_t k) {
  Entry &entry = entries[k];
  Machine machine = reorder(problem.machine, entry.devices);
  machine.linkModel = entry.links;
  Weaker &added = weaker.emplace_back(problem, std::move(machine), options);
  if (const Session *alike = sessionOf(entry.devices))
    added.session.shareMemory(*alike);
  entry.session = &added.session;
  if (isOfOneKind)
    added.session.learnFrom(own);
  own.phase(entry.name);
  entry.isNeeded =
      entry.session->open() && canHelp(k) && entry.session->begin();
}

/// Begins what is of all devices, or all, those with more devices first; each
/// does what the problem's own has done, which decides whether fewer can help.
void Sessions::begin(bool ofAllDevices) {
  for (size_t first, last = entries.size(); last > 0; last = first) {
    bool isNew = false;
    const std::vector<int32_t> &devices = entries[last - 1].devices;
    if (ofAllDevices && devices.size() < numDevices)
      return;
    for (first = last; first > 0 && entries[first - 1].devices == devices;)
      if (!entries[--first].session) {
        start(first);
        isNew = true;
      }
    if (!isNew)
      continue;
    for (const search::Round &round : past)
      forEachNeeded(std::span(entries).subspan(first, last - first),
                    [&](const Entry &entry) {
                      if (isSearched(entry))
                        entry.session->search(round);
                    });
  }
}

/// Whether fewer devices may still have the better answer.
bool Sessions::mayTakeOver(const Entry &taker) const {
  return std::any_of(taker.from.begin(), taker.from.end(), [&](size_t from) {
    const Entry &giver = entries[from];
    return giver.isNeeded && giver.devices.size() < taker.devices.size() &&
           mayGain(*taker.session, *giver.session);
  });
}

/// What can help no more has no more rounds.
void Sessions::dismiss() {
  for (size_t k = entries.size() - 1; k-- > 0;)
    entries[k].isNeeded = entries[k].isNeeded && canHelp(k);
}

/// Whether it has one more round.
bool Sessions::isSearched(const Entry &entry) const {
  return (help == Help::Searched || entry.session == &own) &&
         entry.session->goesOn();
}

bool Sessions::search(const search::Round &round) {
  if (round.total >= lateEvaluations)
    begin(/*ofAllDevices=*/false);
  past.push_back(round);
  bool goesOn = false;
  // An automatic budget has no time to end with as much of each.
  search::Round less = round;
  constexpr int64_t lastShare = 4;
  if (round.isLast)
    less.evaluations = std::max<int64_t>(round.evaluations / lastShare, 1);
  dismiss();
  forEachNeeded(entries, [&](const Entry &entry) {
    Session &session = *entry.session;
    if (isSearched(entry))
      session.search(mayTakeOver(entry) ? less : round);
    goesOn |= isSearched(entry);
  });
  if (goesOn || own.isDone() || round.limit < lateEvaluations)
    return goesOn;
  // The search ends early: those that would have begun later are asked now.
  begin(/*ofAllDevices=*/false);
  return std::any_of(entries.begin(), entries.end(),
                     [this](const Entry &entry) {
                       return entry.isNeeded && isSearched(entry);
                     });
}

void Sessions::finish() {
  dismiss();
  forEachNeeded(entries,
                [](const Entry &entry) { entry.session->lastResort(); });
  own.finish();
}
