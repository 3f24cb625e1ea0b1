//===- LoopOps.td - Operations of serial loops -*- tablegen -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LOOP_OPS
#define BAECHI_LOOP_OPS

include "Baechi/Dialect/LoopAttrs.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Baechi_ForeachOp
    : Op<Baechi_Dialect, "foreach",
         [AffineScope, AttrSizedOperandSegments, RecursiveMemoryEffects, SingleBlock,
          DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
          DeclareOpInterfaceMethods<OpAsmOpInterface,
                                    ["getAsmBlockArgumentNames"]>]> {
  let summary = "a serial loop over keys, whose entries share arrays";
  let description = [{
    An entry is a vector of keys. Keys are the values of ranges, all of them
    (or, with `where`, those in an integer set), or the elements of key arrays,
    of which entry `n` has the `n`th of each; several entries may have the same
    keys. Key arrays lie in their ranges and are read only. Ranges are below
    2^40, also where they are not constant.

    ```mlir
    // Matrix factorisation: an entry is a rating %r of item %j by user %i.
    baechi.foreach unordered (%i = %rows : memref<20000xi32> in 0 to 600,
                              %j = %columns : memref<20000xi32> in 0 to 300)
        values(%r = %ratings : memref<20000xf32>)
        arrays(%u = %users : memref<600x8xf32>, %v = %items : memref<300x8xf32>) {
      ...
      baechi.yield
    }
    // Each row from the one before.
    baechi.foreach ordered (%i in 1 to 100, %j in 0 to %n) arrays(%a = %m : memref<100x?xf32>) {
      ...
      baechi.yield
    }
    ```

    The body runs once for each entry. `ordered` says that it runs in the order
    of the keys, lexicographically, or with key arrays in the order of the
    entries; `unordered` that any order is right. `values` are one element an
    entry, which the body is given, and may yield anew (all or none). `arrays`
    are all the memory that entries share: they do not overlap each other, key
    arrays or values, and the body uses no other memory but what it allocates.
    Positions that are sums of keys with factors, of values from outside, of
    counters of loops in the body, and of numbers are understood by
    `--baechi-analyse-loops`; others depend on data.

    Writes of arrays that are `buffered` may be seen late by other entries, in
    `unordered` loops only. With `reassociate` sums of floating-point numbers
    over entries may be made in any order.
  }];
  let arguments = (ins Variadic<MemRefRankOf<[AnySignlessInteger, Index], [1]>>:$keyArrays,
                       Variadic<Index>:$bounds,
                       Variadic<AnyMemRef>:$values,
                       Variadic<AnyMemRef>:$arrays,
                       DenseI64ArrayAttr:$lowers, DenseI64ArrayAttr:$uppers,
                       UnitAttr:$ordered, UnitAttr:$reassociate,
                       OptionalAttr<IntegerSetAttr>:$where,
                       OptionalAttr<DenseI64ArrayAttr>:$buffered,
                       OptionalAttr<Baechi_LoopVerdictAttr>:$verdict);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// Bounds of keys are beyond neither.
    static constexpr int64_t kMostOfKey = int64_t(1) << 40;

    unsigned getNumKeys() { return getLowers().size(); }
    bool isSparse() { return !getKeyArrays().empty(); }
    ::mlir::ValueRange getKeys();
    ::mlir::ValueRange getEntryValues();
    ::mlir::ValueRange getBodyArrays();
    /// The bound of a key: a number, or the operand that has it.
    ::mlir::OpFoldResult getLower(unsigned key);
    ::mlir::OpFoldResult getUpper(unsigned key);
    bool isBuffered(unsigned array);
    /// What messages call the keys: i, j, k, l, m, key5, ...
    static std::string nameOfKey(unsigned key);
  }];
}

def Baechi_YieldOp
    : Op<Baechi_Dialect, "yield",
         [Pure, Terminator, HasParent<"ForeachOp">]> {
  let summary = "ends a loop's entry, with its new values if there are any";
  let arguments = (ins Variadic<AnyType>:$operands);
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
  let builders = [OpBuilder<(ins), "build($_builder, $_state, ::mlir::ValueRange());">];
}

#endif // BAECHI_LOOP_OPS
