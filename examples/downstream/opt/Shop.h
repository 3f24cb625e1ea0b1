// The dialect of Shop.td.
#ifndef SHOP_H
#define SHOP_H

#include "Baechi/Interfaces/OperatorInterfaces.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "ShopDialect.h.inc"
#define GET_OP_CLASSES
#include "Shop.h.inc"

#endif // SHOP_H
