//===- CudaStepTest.cpp - Whole steps on CUDA devices without a GPU -------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Models are compiled for CUDA devices, alone and beside host devices, and run
/// on the fake driver (unittests/Runtime/FakeCuda): placement, partition,
/// memory plan, step functions and driver are the real ones; the blocks and
/// threads of kernels run one after the other on the host (emulateCudaKernels),
/// when their stream comes to them. The results are those of one host device,
/// and the same whether steps are replayed as graphs or not, and over two
/// ranks, which are threads here and exchange messages by the fake NCCL.
///
//===----------------------------------------------------------------------===//

#include "../Runtime/FakeCuda/FakeCuda.h"
#include "../Runtime/FakeCuda/PlainProduct.h"
#include "../Runtime/RankThreads.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Dialect/CudaBlocks.h"
#include "Baechi/Pipelines/HostCompiler.h"
#include "Baechi/Pipelines/InitialValues.h"
#include "Baechi/Pipelines/Pipelines.h"
#include "Baechi/Runtime/Abi.h"
#include "Baechi/Runtime/CudaAbi.h"
#include "Baechi/Runtime/Session.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>

using namespace baechi;
using namespace mlir;

namespace {
/// What runs a kernel: its function, how many pointers it takes, and those.
constexpr size_t kMostPointers = fakecuda::mostParameters - 2;

template <size_t> using PointerNumber = void *;

void runEmulated(void **parameters) {
  auto *function = *static_cast<void **>(parameters[0]);
  void *all[kMostPointers] = {};
  for (size_t i = 0; i < kMostPointers; ++i)
    all[i] = *static_cast<void **>(parameters[i + 2]);
  // Those that it does not take lie on the stack, untouched.
  [&]<size_t... I>(std::index_sequence<I...>) {
    reinterpret_cast<void (*)(PointerNumber<I>...)>(function)(all[I]...);
  }(std::make_index_sequence<kMostPointers>());
}

const fakecuda::FakeKernel emulated[] = {
    {"emulated", runEmulated, nullptr, 0, fakecuda::mostParameters}};
const fakecuda::FakeImage image{fakecuda::FakeImage::magicNumber, emulated, 1};

/// What the host code of each kernel calls here.
void enqueueEmulated(void *function, void **pointers, int32_t count,
                     const baechi_cuda_access *accesses) {
  std::array<void *, fakecuda::mostParameters> values{};
  values[0] = function;
  values[1] = reinterpret_cast<void *>(intptr_t(count));
  std::copy_n(pointers, count, values.begin() + 2);
  std::array<void *, fakecuda::mostParameters> parameters;
  for (size_t i = 0; i < values.size(); ++i)
    parameters[i] = &values[i];
  baechi_cuda_launch_accesses(&image, sizeof(image), "emulated", 1, 1, 1, 1, 1,
                              1, 0, parameters.data(),
                              uint32_t(parameters.size()), accesses);
}

constexpr size_t kAccessWords = sizeof(baechi_cuda_access) / sizeof(int64_t);

/// What a kernel on tensors does with the parameters of its emulation, as
/// words.
SmallVector<int64_t> accessesOf(func::FuncOp kernel) {
  SmallVector<int64_t> words(2 * kAccessWords);
  auto touch = [&](TypeRange types, int64_t uses) {
    for (Type type : types)
      words.append({0, *tensorBytes(type, /*aligned=*/false), 1, 0, uses});
  };
  touch(kernel.getArgumentTypes(), BAECHI_CUDA_READS);
  touch(kernel.getResultTypes(), BAECHI_CUDA_WRITES);
  return words;
}

/// NAME__cuda enqueues the emulated NAME, which is called NAME__emulated: the
/// host's code may be there, too.
LogicalResult emulate(ModuleOp module) {
  llvm::StringMap<SmallVector<int64_t>> accesses;
  for (auto kernel : module.getOps<func::FuncOp>())
    if (kernel->hasAttr(BaechiDialect::kKernel))
      accesses[kernel.getSymName()] = accessesOf(kernel);
  if (failed(emulateCudaKernels(module, /*descending=*/false)))
    return failure();
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  Type pointer = LLVM::LLVMPointerType::get(module.getContext());
  Type nothing = LLVM::LLVMVoidType::get(module.getContext());
  Location loc = module.getLoc();
  auto functions = llvm::to_vector(module.getOps<LLVM::LLVMFuncOp>());
  auto enqueue = LLVM::LLVMFuncOp::create(
      builder, loc, "enqueue_emulated",
      LLVM::LLVMFunctionType::get(
          nothing, {pointer, pointer, builder.getI32Type(), pointer}));
  for (LLVM::LLVMFuncOp function : functions) {
    if (function.isExternal() ||
        !function->hasAttr(BaechiDialect::kKernelScratch))
      continue;
    std::string name = function.getName().str();
    SmallVector<int64_t> words = accesses.lookup(name);
    auto scratch =
        function->getAttrOfType<IntegerAttr>(BaechiDialect::kKernelScratch);
    words.append({0, scratch.getInt(), 1, 0, BAECHI_CUDA_WRITES});
    words.resize(kAccessWords * fakecuda::mostParameters);
    auto known = LLVM::GlobalOp::create(
        builder, loc,
        LLVM::LLVMArrayType::get(builder.getI64Type(), words.size()),
        /*isConstant=*/true, LLVM::Linkage::Internal, name + "__accesses",
        builder.getI64TensorAttr(words));
    function.setName(name + "__emulated");
    auto stub = LLVM::LLVMFuncOp::create(builder, loc, name + "__cuda",
                                         function.getFunctionType());
    Block *entry = stub.addEntryBlock(builder);
    OpBuilder body = OpBuilder::atBlockEnd(entry);
    auto integer = [&](int64_t value) -> Value {
      return LLVM::ConstantOp::create(body, loc, body.getI32Type(),
                                      body.getI32IntegerAttr(value));
    };
    Value count = integer(entry->getNumArguments());
    Value list = LLVM::AllocaOp::create(body, loc, pointer, pointer, count);
    for (BlockArgument argument : entry->getArguments()) {
      Value place = LLVM::GEPOp::create(
          body, loc, pointer, pointer, list,
          ArrayRef<LLVM::GEPArg>{int32_t(argument.getArgNumber())});
      LLVM::StoreOp::create(body, loc, argument, place);
    }
    Value address = LLVM::AddressOfOp::create(body, loc, function);
    Value touched = LLVM::AddressOfOp::create(body, loc, known);
    LLVM::CallOp::create(body, loc, enqueue,
                         ValueRange{address, list, count, touched});
    LLVM::ReturnOp::create(body, loc, ValueRange());
  }
  return success();
}

struct Case {
  const char *model;
  std::vector<const char *> kinds;

  std::string name() const {
    std::string text = model;
    for (const char *kind : kinds)
      text += std::string("_") + kind;
    return text;
  }
  friend void PrintTo(const Case &value, std::ostream *os) {
    *os << value.name();
  }
};

class CudaStep : public testing::TestWithParam<Case> {
protected:
  using Arrays = std::vector<std::vector<char>>;

  void SetUp() override {
    setenv("BAECHI_CUDA_LIBRARY", fakecuda::path(), 1);
    setenv("BAECHI_NCCL_LIBRARY", fakecuda::path(), 1);
    reset(/*gpus=*/2);
    DialectRegistry registry;
    registerAllDialects(registry);
    context = std::make_unique<MLIRContext>(registry,
                                            MLIRContext::Threading::DISABLED);
    compiler = compilerOf(nullptr);
    ASSERT_TRUE(compiler);
  }

  std::unique_ptr<HostCompiler> compilerOf(const CudaProductOptions *products) {
    auto model = parseSourceFile<ModuleOp>(std::string(BAECHI_SOURCE_DIR) +
                                               "/test/fixtures/" +
                                               GetParam().model + ".mlir",
                                           context.get());
    if (!model)
      return nullptr;
    HostJitOptions jit;
    for (const runtime::AbiSymbol &symbol : runtime::abiSymbols())
      jit.symbols[symbol.name] = symbol.address;
    // Emulated kernels multiply where they run.
    jit.symbols["baechi_cuda_multiply"] =
        reinterpret_cast<void *>(&fakecuda::multiplyPlainly);
    jit.symbols["enqueue_emulated"] =
        reinterpret_cast<void *>(&enqueueEmulated);
    auto created = HostCompiler::create(std::move(model), jit, products);
    if (failed(created))
      return nullptr;
    (*created)->setCudaLowering(emulate);
    return succeeded((*created)->annotate(nullptr)) ? std::move(*created)
                                                    : nullptr;
  }

  static void reset(int gpus) {
    fakecuda::FakeOptions options;
    options.devices = gpus;
    options.memoryBytes = size_t(1) << 30;
    fakeCudaReset(&options);
  }

  placement::Machine machineOf(ArrayRef<const char *> kinds, bool lends) {
    placement::Machine machine;
    for (auto [i, kind] : llvm::enumerate(kinds))
      machine.devices.push_back(
          {kind + std::to_string(i), kind, int64_t(1) << 28});
    machine.links.assign(kinds.size() * kinds.size(),
                         placement::Link{1000, 10000, lends});
    machine.linkModel = placement::LinkModel::Parallel;
    return machine;
  }

  /// The results of some steps on such devices.
  Arrays run(ArrayRef<const char *> kinds, StringRef prefix,
             bool lends = false) {
    CompileOptions options;
    // Cut in the middle, so that every device has something to do.
    options.placer = "mtopo";
    options.budget = "0";
    auto compiled = compiler->compile(machineOf(kinds, lends), options, prefix);
    if (failed(compiled)) {
      ADD_FAILURE() << "the model cannot be compiled";
      return {};
    }
    auto program = runtime::Program::parse(compiled->manifestText());
    EXPECT_TRUE(program) << program.error().message();
    for (const runtime::DeviceInfo &device : program->devices)
      EXPECT_FALSE(device.operators.empty()) << device.name;
    EXPECT_EQ(lends, lendsAny(*program));
    int before = fakeCudaGraphLaunches();
    Arrays results = step(*program, /*timeline=*/true);
    EXPECT_EQ(before, fakeCudaGraphLaunches());
    EXPECT_TRUE(results == step(*program, /*timeline=*/false))
        << "a replayed step differs";
    // The first device has several kernels in a row, here.
    EXPECT_EQ(StringRef(kinds.front()) == "cuda",
              fakeCudaGraphLaunches() > before);
    for (const runtime::BufferInfo &result : program->results)
      types.push_back(result.type);
    if (kinds.size() > 1 && !lends)
      for (bool timeline : {true, false})
        EXPECT_TRUE(results == step(*program, timeline, /*ranks=*/2))
            << "a step over two ranks differs";
    return results;
  }

  static bool lendsAny(const runtime::Program &program) {
    return llvm::any_of(program.queues, [](const runtime::QueueInfo &queue) {
      return llvm::any_of(queue.messages,
                          [](const auto &message) { return message.lent; });
    });
  }

  /// The results of some steps of a program. Without a timeline, the last ones
  /// are replayed as graphs.
  Arrays step(const runtime::Program &program, bool timeline,
              int32_t ranks = 1) {
    runtime::test::RankThreads threads;
    threads.options.timeline = timeline;
    threads.program = program;
    threads.resolve = [&](const std::string &name) -> void * {
      return cantFail(compiler->jit().lookup(name));
    };
    if (ranks > 1)
      threads.build(ranks);
    auto session = ranks > 1 ? threads.begin()
                             : runtime::Session::create(
                                   program, threads.resolve, threads.options);
    Arrays results;
    if (session)
      results = steps(program, **session);
    else
      ADD_FAILURE() << session.error().message();
    if (session)
      session->reset();
    if (ranks > 1)
      threads.end();
    return results;
  }

  Arrays steps(const runtime::Program &program, runtime::Session &session) {
    func::FuncOp function = *findFuncStep(compiler->module());
    auto arguments = *borderArguments(function);
    for (unsigned i = 0; i < program.arguments.size(); ++i) {
      bool invented = false;
      FailureOr<Array> value = initialValue(function, arguments[i], invented);
      EXPECT_TRUE(succeeded(value));
      auto error =
          session.setArgument(i, value->data.data(), value->data.size());
      EXPECT_FALSE(error) << error.message();
    }
    for (int i = 0; i < 3; ++i) {
      runtime::Error error = session.step();
      EXPECT_FALSE(error) << error.message();
      if (error)
        return {};
    }
    Arrays results;
    for (auto [i, result] : llvm::enumerate(program.results)) {
      auto &bytes = results.emplace_back(result.bytes);
      auto error = session.getResult(i, bytes.data(), bytes.size());
      EXPECT_FALSE(error) << error.message();
    }
    return results;
  }

  std::unique_ptr<MLIRContext> context;
  std::unique_ptr<HostCompiler> compiler;
  std::vector<runtime::ElementType> types;
};

/// Three steps of training let differences in the last bits grow.
bool near(float a, float b) {
  return std::abs(a - b) <= 1e-3f * std::max(1.0f, std::abs(b));
}
} // namespace

TEST_P(CudaStep, GivesTheHostsResults) {
  Arrays expected = run({"host"}, "alone");
  Arrays actual = run(GetParam().kinds, "placed");
  ASSERT_EQ(expected.size(), actual.size());
  size_t numbers = 0;
  for (auto [i, want] : llvm::enumerate(expected)) {
    ASSERT_EQ(want.size(), actual[i].size());
    if (types[i] != runtime::ElementType::F32) {
      EXPECT_EQ(want, actual[i]) << "result " << i;
      continue;
    }
    for (size_t at = 0; at < want.size(); at += sizeof(float)) {
      float a, b;
      std::memcpy(&a, actual[i].data() + at, sizeof(a));
      std::memcpy(&b, want.data() + at, sizeof(b));
      ASSERT_TRUE(near(a, b)) << "result " << i << ": " << a << " for " << b;
      ++numbers;
    }
  }
  EXPECT_GT(numbers, 100u);
  // The first device and the last are of two ranks.
  bool meet = StringRef(GetParam().kinds.front()) == "cuda" &&
              StringRef(GetParam().kinds.back()) == "cuda";
  EXPECT_EQ(meet, fakeNcclLog()[0] != 0);
  EXPECT_STREQ("", fakeCudaMisuse());
}

/// Small updates are few launches, also in place of what they update.
TEST_P(CudaStep, JoinedUpdatesGiveTheSameBits) {
  Arrays apart = run({"cuda"}, "apart");
  CudaProductOptions products;
  products.updates = true;
  compiler = compilerOf(&products);
  ASSERT_TRUE(compiler);
  size_t joined = 0;
  for (auto kernel : compiler->module().getOps<func::FuncOp>())
    if (kernel->hasAttr(kCudaTogether))
      joined += kernel.getNumResults();
  EXPECT_GT(joined, 1u);
  EXPECT_TRUE(apart == run({"cuda"}, "joined"));
  EXPECT_STREQ("", fakeCudaMisuse());
}

TEST_P(CudaStep, LendsTheSameBits) {
  if (llvm::any_of(GetParam().kinds,
                   [](StringRef kind) { return kind != "cuda"; }))
    GTEST_SKIP() << "all devices are on one GPU";
  reset(/*gpus=*/1);
  Arrays copied = run(GetParam().kinds, "copied");
  EXPECT_TRUE(copied == run(GetParam().kinds, "lent", /*lends=*/true));
  EXPECT_STREQ("", fakeCudaMisuse());
}

INSTANTIATE_TEST_SUITE_P(
    Fixtures, CudaStep,
    testing::Values(Case{"mlp_tiny", {"cuda", "cuda"}},
                    Case{"mlp_tiny", {"host", "cuda"}},
                    Case{"transformer_tiny", {"cuda", "cuda"}},
                    Case{"transformer_tiny", {"cuda", "host", "cuda"}}),
    [](const auto &info) { return info.param.name(); });
