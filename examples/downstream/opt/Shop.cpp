// What the dialect's operations say of themselves.
#include "Shop.h"
#include "mlir/IR/Builders.h"

#include "ShopDialect.cpp.inc"
#define GET_OP_CLASSES
#include "Shop.cpp.inc"

using namespace mlir;
using namespace shop;

void ShopDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "Shop.cpp.inc"
      >();
}

std::optional<int64_t> MixOp::getTimeNs(StringRef) { return getTime(); }
bool MixOp::runsOn(StringRef kind) { return kind == getKind(); }
int64_t MixOp::getScratchBytes() { return 4096; }

std::optional<baechi::Work> MultiplyOp::getWork() {
  auto type = cast<RankedTensorType>(getResult().getType());
  return baechi::Work{.flops = 1e6 * type.getNumElements(), .bytes = 0};
}

bool ViewOp::isView() { return true; }

bool UpdateOp::mayWriteInto(unsigned, unsigned operand) { return operand == 0; }
