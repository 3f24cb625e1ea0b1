//===- BaechiTypes.td - Types of the baechi dialect -*- tablegen -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TYPES
#define BAECHI_TYPES

include "Baechi/Dialect/BaechiDialect.td"
include "mlir/IR/AttrTypeBase.td"

class Baechi_Type<string name, string typeMnemonic>
    : TypeDef<Baechi_Dialect, name> {
  let mnemonic = typeMnemonic;
}

/// What can cross devices.
def Baechi_Value : Type<CPred<"::baechi::isMovable($_self)">,
                        "tensor, vector or scalar">;

def Baechi_FutureType : Baechi_Type<"Future", "future"> {
  let summary = "a value that is on its way";
  let parameters = (ins "::mlir::Type":$valueType);
  let assemblyFormat = "`<` $valueType `>`";
  let genVerifyDecl = 1;
}

def Baechi_TokenType : Baechi_Type<"Token", "token"> {
  let summary = "a send that still reads its tensor";
}

#endif // BAECHI_TYPES
