//===- LoopAttrs.td - Attributes of serial loops -*- tablegen -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LOOP_ATTRS
#define BAECHI_LOOP_ATTRS

include "Baechi/Dialect/BaechiDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Baechi_LoopScheme : I32Enum<"LoopScheme", "what of a loop may run at once", [
  I32EnumCase<"Independent", 0, "independent">,
  I32EnumCase<"Disjoint", 1, "disjoint">,
  I32EnumCase<"Wavefront", 2, "wavefront">,
  I32EnumCase<"Skewed", 3, "skewed">,
  I32EnumCase<"Timed", 4, "timed">,
  I32EnumCase<"Serial", 5, "serial">]> {
  let cppNamespace = "::baechi";
}

def Baechi_DependenceAttr : AttrDef<Baechi_Dialect, "Dependence"> {
  let mnemonic = "dependence";
  let summary = "an access of a loop's entry that a later entry depends on";
  let description = [{
    `array` is the number of the array in the loop's `arrays`, or how many there
    are for memory that is none of them. Of every two entries that depend on
    each other so, the later one's keys (by their order) are `distances` ahead:
    a number, `1 to 3`, `from 1`, `to -1` or `any`, one for each key.

    ```mlir
    #baechi.dependence<array = 0, from = "W[i] is written", to = "W[i] is read", distances = (0, from 1)>
    ```
  }];
  let parameters = (ins "int64_t":$array, StringRefParameter<"from">:$from,
                        StringRefParameter<"to">:$to,
                        "::mlir::DenseI64ArrayAttr":$least,
                        "::mlir::DenseI64ArrayAttr":$most);
  let assemblyFormat = [{
    `<` `array` `=` $array `,` `from` `=` $from `,` `to` `=` $to `,`
        `distances` `=` custom<Distances>($least, $most) `>`
  }];
  let genVerifyDecl = 1;
}

def Baechi_LoopVerdictAttr : AttrDef<Baechi_Dialect, "LoopVerdict"> {
  let mnemonic = "loop_verdict";
  let summary = "what of a loop may run at once, and why no more";
  let description = [{
    Entries that have all keys in common stay together, in their order. Beside
    them run at once

    - `independent`: all entries.
    - `disjoint`: entries that differ in all of `keys`; the first is spread over
      workers, the others rotate.
    - `wavefront`: as `disjoint`, but blocks follow each other in both keys.
    - `skewed`: entries that differ in the sum `form`, coefficients of the keys.
    - `timed`: entries that have the sum `form` in common.
    - `serial`: none.

    Each block makes sums of its own of the arrays `sums`, which are combined
    afterwards.

    ```mlir
    #baechi.loop_verdict<scheme = skewed, form = [1, -1], dependences = [#baechi.dependence<array = 0, from = "a[i, j] is written", to = "a[i - 1, j - 1] is read", distances = (1, 1)>]>
    ```
  }];
  let parameters = (ins "LoopScheme":$scheme,
                        OptionalParameter<"::mlir::DenseI64ArrayAttr">:$keys,
                        OptionalParameter<"::mlir::DenseI64ArrayAttr">:$form,
                        OptionalParameter<"::mlir::DenseI64ArrayAttr">:$sums,
                        OptionalParameter<"::mlir::ArrayAttr">:$dependences);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

#endif // BAECHI_LOOP_ATTRS
