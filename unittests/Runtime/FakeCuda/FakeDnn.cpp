//===- FakeDnn.cpp - cuDNN's graph interface without a GPU ----------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Graphs of one convolution, dense tensors. Several engines, of which the
// heuristics' first gives no certain result and some transform or round. Each
// has one knob, which must be as the heuristics say.
//
//===----------------------------------------------------------------------===//

#include "FakeCalls.h"
#include "PlainConvolution.h"

#include <array>
#include <cstring>
#include <map>
#include <thread>

using namespace fakecuda;

namespace {
// Numbers of cuDNN's.
constexpr int badParameter = 2000, unsupported = 3000;
enum Kind {
  ConvolutionKind = 1,
  EngineKind = 2,
  ConfigurationKind = 3,
  HeuristicsKind = 4,
  PlanKind = 5,
  KnobKind = 7,
  ForwardKind = 10,
  FiltersKind = 11,
  GraphKind = 15,
  PackKind = 16,
  TensorKind = 17
};
constexpr int descriptorType = 15;

struct EngineFacts {
  std::vector<int> notes;
  int64_t workspaceBytes;
};
const EngineFacts engines[] = {{{4}, 0},    {{0}, 1024}, {{}, 0},
                               {{9}, 4096}, {{5}, 0},    {{0, 1}, 0}};
/// As the heuristics propose them.
constexpr int order[] = {0, 5, 1, 4, 2, 3};
constexpr int knobType = 3;

struct State;
using Part = std::shared_ptr<State>;
struct Values {
  int type = 0;
  std::vector<char> bytes;
  std::vector<Part> parts;
};
/// What a descriptor is; descriptors that were given to others live on.
struct State {
  int kind;
  bool done = false;
  std::map<int, Values> values = {};

  template <typename T> std::vector<T> all(int attribute) const {
    auto found = values.find(attribute);
    if (found == values.end())
      return {};
    std::vector<T> all(found->second.bytes.size() / sizeof(T));
    std::memcpy(all.data(), found->second.bytes.data(), all.size() * sizeof(T));
    return all;
  }
  template <typename T> T one(int attribute, T missing = {}) const {
    std::vector<T> values = all<T>(attribute);
    return values.size() == 1 ? values[0] : missing;
  }
  template <typename T> void put(int attribute, std::vector<T> given) {
    values[attribute].bytes.assign(
        reinterpret_cast<char *>(given.data()),
        reinterpret_cast<char *>(given.data() + given.size()));
  }
  std::vector<Part> parts(int attribute) const {
    auto found = values.find(attribute);
    return found == values.end() ? std::vector<Part>() : found->second.parts;
  }
  Part part(int attribute) const {
    std::vector<Part> all = parts(attribute);
    return all.size() == 1 ? all[0] : nullptr;
  }
};
struct Descriptor {
  Part state;
};
State &stateOf(void *descriptor) {
  return *static_cast<Descriptor *>(descriptor)->state;
}

struct Handle {
  FakeStream *stream = nullptr;
};

size_t sizeOf(int type) {
  switch (type) {
  case 3:
  case 5:
  case 6:
  case 0:
    return 8;
  default:
    return 4;
  }
}

/// The convolution of an operation; whether it is one that is known.
bool read(const State &operation, baechi_cuda_convolution &to,
          int64_t (&names)[3], int64_t (&alignments)[3]) {
  bool ofFilters = operation.kind == FiltersKind;
  int base = ofFilters ? 712 : 700;
  Part how = operation.part(base + 2);
  Part filters = operation.part(base + 3), images = operation.part(base + 4),
       results = operation.part(base + 5);
  if (!how || !filters || !images || !results ||
      operation.one<float>(base) != 1 || operation.one<float>(base + 1) != 0)
    return false;
  to = {};
  to.of_filters = ofFilters;
  to.spaces = how->one<int64_t>(106);
  if (to.spaces < 2 || to.spaces > 3 || how->one<int>(101) != 1)
    return false;
  auto copy = [&](const State &from, int attribute, int64_t *values,
                  size_t count) {
    std::vector<int64_t> given = from.all<int64_t>(attribute);
    if (given.size() != count)
      return false;
    std::copy(given.begin(), given.end(), values);
    return true;
  };
  auto spaces = size_t(to.spaces);
  int64_t before[3] = {}, after[3] = {};
  if (!copy(*how, 103, to.steps, spaces) ||
      !copy(*how, 102, to.dilations, spaces) ||
      !copy(*how, 105, before, spaces) || !copy(*how, 104, after, spaces))
    return false;
  auto tensor = [&](const State &from, baechi_cuda_space_tensor &into) {
    return copy(from, 902, into.sizes, 2 + spaces) &&
           copy(from, 903, into.strides, 2 + spaces);
  };
  if (!tensor(*images, to.images) || !tensor(*filters, to.filters) ||
      !tensor(*results, to.results))
    return false;
  for (size_t i = 0; i < spaces; ++i) {
    int64_t window = (to.filters.sizes[2 + i] - 1) * to.dilations[i] + 1;
    if (before[i] || after[i] ||
        (to.images.sizes[2 + i] - window) / to.steps[i] + 1 !=
            to.results.sizes[2 + i])
      return false;
  }
  if (to.images.sizes[0] != to.results.sizes[0] ||
      to.filters.sizes[0] != to.results.sizes[1] ||
      to.images.sizes[1] % to.filters.sizes[1] != 0)
    return false;
  int type = images->one<int>(901, -1);
  if (filters->one<int>(901, -1) != type || results->one<int>(901, -1) != type)
    return false;
  to.type = type == 0   ? BAECHI_CUDA_F32
            : type == 9 ? BAECHI_CUDA_BF16
                        : BAECHI_CUDA_F16;
  const Part operands[] = {images, ofFilters ? results : filters,
                           ofFilters ? filters : results};
  for (size_t i = 0; i < 3; ++i) {
    names[i] = operands[i]->one<int64_t>(906);
    alignments[i] = operands[i]->one<int64_t>(900);
  }
  return true;
}

/// Whether elements lie densely, channels innermost or outside the space.
bool isDense(const baechi_cuda_space_tensor &tensor, int64_t spaces,
             bool innermost) {
  int64_t next = 1;
  bool dense = true;
  auto look = [&](int64_t dim) {
    dense &= tensor.sizes[dim] == 1 || tensor.strides[dim] == next;
    next *= tensor.sizes[dim];
  };
  if (innermost)
    look(1);
  for (int64_t dim = 1 + spaces; dim >= 2; --dim)
    look(dim);
  if (!innermost)
    look(1);
  look(0);
  return dense;
}

int finalize(State &state) {
  switch (state.kind) {
  case GraphKind: {
    baechi_cuda_convolution convolution;
    int64_t names[3], alignments[3];
    Part operation = state.part(801);
    if (!operation || !read(*operation, convolution, names, alignments))
      return badParameter;
    for (bool innermost : {false, true})
      if (isDense(convolution.images, convolution.spaces, innermost) &&
          isDense(convolution.filters, convolution.spaces, innermost) &&
          isDense(convolution.results, convolution.spaces, innermost))
        return 0;
    return unsupported;
  }
  case EngineKind: {
    auto index = state.one<int64_t>(1301, -1);
    if (index < 0 || index >= int64_t(std::size(engines)) || !state.part(1300))
      return badParameter;
    state.put(1303, engines[index].notes);
    return 0;
  }
  case ConfigurationKind: {
    Part engine = state.part(300), knob = state.part(302);
    if (!engine || !knob || knob->one<int>(600) != knobType ||
        knob->one<int64_t>(601) != 10 * engine->one<int64_t>(1301))
      return badParameter;
    return 0;
  }
  case PlanKind: {
    Part configuration = state.part(401);
    if (!configuration || !configuration->done)
      return badParameter;
    state.put(402, std::vector<int64_t>{
                       engines[configuration->part(300)->one<int64_t>(1301)]
                           .workspaceBytes});
    return 0;
  }
  case HeuristicsKind: {
    if (!state.part(201))
      return badParameter;
    if (Engine::get().options.refusesConvolutions)
      return 0;
    for (int index : order) {
      auto engine = std::make_shared<State>(State{EngineKind});
      engine->values[1300].parts = {state.part(201)};
      engine->put(1301, std::vector<int64_t>{index});
      auto knob = std::make_shared<State>(State{KnobKind});
      knob->put(600, std::vector<int>{knobType});
      knob->put(601, std::vector<int64_t>{10 * index});
      auto configuration = std::make_shared<State>(State{ConfigurationKind});
      configuration->values[300].parts = {engine};
      configuration->values[302].parts = {knob};
      for (const Part &part : {engine, knob, configuration})
        if (int wrong = finalize(*part))
          return wrong;
        else
          part->done = true;
      state.values[202].parts.push_back(configuration);
    }
    return 0;
  }
  default:
    return 0;
  }
}

bool isAligned(const void *address, int64_t alignment) {
  return reinterpret_cast<uintptr_t>(address) % uintptr_t(alignment) == 0;
}
} // namespace

extern "C" {
int cudnnCreate(void **handle) {
  *handle = new Handle();
  return 0;
}
int cudnnDestroy(void *handle) {
  delete static_cast<Handle *>(handle);
  return 0;
}
size_t cudnnGetVersion() { return 91900; }
const char *cudnnGetErrorString(int status) {
  return status == unsupported ? "CUDNN_STATUS_NOT_SUPPORTED"
                               : "CUDNN_STATUS_BAD_PARAM";
}
int cudnnSetStream(void *handle, FakeStream *stream) {
  static_cast<Handle *>(handle)->stream = stream;
  return 0;
}

int cudnnBackendCreateDescriptor(int kind, void **descriptor) {
  *descriptor = new Descriptor{std::make_shared<State>(State{kind})};
  return 0;
}
int cudnnBackendDestroyDescriptor(void *descriptor) {
  delete static_cast<Descriptor *>(descriptor);
  return 0;
}
int cudnnBackendFinalize(void *descriptor) {
  State &state = stateOf(descriptor);
  if (state.done)
    return badParameter;
  int status = finalize(state);
  state.done = status == 0;
  return status;
}

int cudnnBackendSetAttribute(void *descriptor, int attribute, int type,
                             int64_t count, const void *given) {
  State &state = stateOf(descriptor);
  if (state.done || count < 1)
    return badParameter;
  Values values;
  values.type = type;
  if (type == descriptorType) {
    for (int64_t i = 0; i < count; ++i) {
      auto *part = static_cast<Descriptor *const *>(given)[i];
      if (!part->state->done)
        return badParameter;
      values.parts.push_back(part->state);
    }
  } else {
    const char *bytes = static_cast<const char *>(given);
    values.bytes.assign(bytes, bytes + size_t(count) * sizeOf(type));
  }
  state.values[attribute] = std::move(values);
  return 0;
}

int cudnnBackendGetAttribute(void *descriptor, int attribute, int type,
                             int64_t most, int64_t *count, void *to) {
  const State &state = stateOf(descriptor);
  auto found = state.values.find(attribute);
  if (!state.done)
    return badParameter;
  *count = 0;
  if (found == state.values.end())
    return 0;
  const Values &values = found->second;
  if (type == descriptorType) {
    *count = int64_t(values.parts.size());
    for (int64_t i = 0; i < std::min(most, *count); ++i)
      static_cast<Descriptor **>(to)[i]->state = values.parts[size_t(i)];
    return 0;
  }
  *count = int64_t(values.bytes.size() / sizeOf(type));
  std::copy_n(values.bytes.begin(),
              size_t(std::min(most, *count)) * sizeOf(type),
              static_cast<char *>(to));
  return 0;
}

int cudnnBackendExecute(void *handle, void *plan, void *pack) {
  const State &packed = stateOf(pack);
  Part configuration = stateOf(plan).part(401);
  if (!configuration || !packed.done)
    return badParameter;
  Part engine = configuration->part(300);
  baechi_cuda_convolution convolution;
  int64_t names[3], alignments[3];
  read(*engine->part(1300)->part(801), convolution, names, alignments);
  auto given = packed.all<int64_t>(1000);
  auto pointers = packed.all<char *>(1001);
  std::array<char *, 3> operands{};
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < std::min(given.size(), pointers.size()); ++j)
      if (given[j] == names[i])
        operands[i] = pointers[j];
    if (!operands[i] || !isAligned(operands[i], alignments[i]))
      return badParameter;
  }
  auto index = engine->one<int64_t>(1301);
  const EngineFacts &facts = engines[index];
  char *workspace = packed.one<char *>(1003);
  if (facts.workspaceBytes > 0 && !isAligned(workspace, 256))
    return badParameter;
  convolution.workspace_bytes = facts.workspaceBytes;
  bool rounds = std::count(facts.notes.begin(), facts.notes.end(), 0) > 0;
  convolution.math = rounds ? BAECHI_CUDA_MATH_TF32 : BAECHI_CUDA_MATH_FP32;

  Engine &fake = Engine::get();
  std::lock_guard<std::mutex> guard(fake.mutex);
  FakeStream &stream = *static_cast<Handle *>(handle)->stream;
  return fake.issue(stream, [=, &fake](FakeStream &on) {
    beginStep(fake, on);
    auto use = [&](const void *at, int64_t bytes, bool writes) {
      fake.checker.use(on.timeline, reinterpret_cast<uintptr_t>(at),
                       size_t(bytes), writes, "a convolution");
    };
    auto bytes = [&](const baechi_cuda_space_tensor &tensor) {
      int64_t last = 0;
      for (int64_t dim = 0; dim < 2 + convolution.spaces; ++dim)
        last += (tensor.sizes[dim] - 1) * tensor.strides[dim];
      return (last + 1) * (convolution.type == BAECHI_CUDA_F32 ? 4 : 2);
    };
    bool filters = convolution.of_filters != 0;
    use(operands[0], bytes(convolution.images), false);
    use(operands[1], bytes(filters ? convolution.results : convolution.filters),
        false);
    use(operands[2], bytes(filters ? convolution.filters : convolution.results),
        true);
    use(workspace, facts.workspaceBytes, true);
    int fast = fake.options.fastAlgorithm;
    fake.enqueue(on,
                 {nullptr, 0, [=] {
                    if (fast >= 0 && index != fast)
                      std::this_thread::sleep_for(std::chrono::milliseconds(2));
                    convolvePlainly(&convolution, operands[0], operands[1],
                                    operands[2], workspace);
                  }});
  });
}
}
