//===- CarriedOps.td - Messages across the step's border -*- tablegen -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_CARRIED_OPS
#define BAECHI_CARRIED_OPS

include "Baechi/Dialect/BaechiDialect.td"
include "mlir/IR/CommonAttrConstraints.td"

def Baechi_AwaitCarriedOp : Op<Baechi_Dialect, "await_carried"> {
  let summary = "waits for a message that the step before has offered";
  let description = [{
    A message is carried where its ends say `baechi.carried`, the number of the
    device's argument that it fills or that its value lies in. Each end waits
    for the step before's before it uses that argument: the receiver before it
    reads it, the sender before it overwrites it. In the first step there is
    nothing to wait for.

    ```mlir
    baechi.await_carried queue 0 seq 4
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$queue,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$seq);
  let assemblyFormat = [{
    `queue` custom<CarriedNumber>($queue) `seq` custom<CarriedNumber>($seq)
        attr-dict
  }];
}

#endif // BAECHI_CARRIED_OPS
