//===- BaechiOps.td - Operations of the baechi dialect -*- tablegen -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_OPS
#define BAECHI_OPS

include "Baechi/Dialect/BaechiAttrs.td"
include "Baechi/Dialect/BaechiTypes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Baechi_Op<string mnemonic, list<Trait> traits = []>
    : Op<Baechi_Dialect, mnemonic, traits>;

def Baechi_SendOp : Baechi_Op<"send"> {
  let summary = "offers a tensor to another device";
  let description = [{
    Message `seq` of `queue`, a FIFO of the directed pair of devices. Does not
    wait; the tensor's buffer is not reused before the token was awaited.
    `start` and `end` are the planned transfer's, ns.

    A tensor that is `lent` is not copied: the receiver, which shares the
    sender's address space, reads it where it lies, and the token waits until
    the receiver has given it back (`baechi.give_back`), for which `end` stands.

    ```mlir
    %t = baechi.send %0 to "gpu0" queue 0 seq 7 start 41000 end 52000 : tensor<128x512xf32>
    %u = baechi.send %1 to "host1" queue 1 seq 0 lent start 41000 end 93000 : tensor<128x512xf32>
    ```
  }];
  let arguments = (ins Baechi_Value:$value, StrAttr:$to,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$queue,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$seq,
                       UnitAttr:$lent,
                       DefaultValuedAttr<I64Attr, "0">:$start,
                       DefaultValuedAttr<I64Attr, "0">:$end);
  let results = (outs Baechi_TokenType:$token);
  let assemblyFormat = [{
    $value `to` $to `queue` custom<Integer>($queue) `seq`
        custom<Integer>($seq) (`lent` $lent^)?
        (`start` custom<Integer>($start) `end`
        custom<Integer>($end)^)? attr-dict `:` type($value)
  }];
}

def Baechi_RecvOp : Baechi_Op<"recv"> {
  let summary = "offers a buffer for another device's tensor";
  let description = [{
    Does not wait: `baechi.await` makes the consumer wait. There is no buffer
    for a tensor that is `lent`, and it is given back after its last use:

    ```mlir
    %f = baechi.recv from "gpu0" queue 0 seq 3 start 41000 end 52000 : !baechi.future<tensor<128x512xf32>>
    %l = baechi.recv from "host0" queue 1 seq 0 lent start 41000 end 93000 : !baechi.future<tensor<128x512xf32>>
    %x = baechi.await %l : !baechi.future<tensor<128x512xf32>>
    baechi.give_back %l : !baechi.future<tensor<128x512xf32>>
    ```
  }];
  let arguments = (ins StrAttr:$from,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$queue,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$seq,
                       UnitAttr:$lent,
                       DefaultValuedAttr<I64Attr, "0">:$start,
                       DefaultValuedAttr<I64Attr, "0">:$end);
  let results = (outs Baechi_FutureType:$future);
  let assemblyFormat = [{
    `from` $from `queue` custom<Integer>($queue) `seq` custom<Integer>($seq)
        (`lent` $lent^)? (`start` custom<Integer>($start) `end` custom<Integer>($end)^)?
        attr-dict `:` qualified(type($future))
  }];
}

def Baechi_AwaitOp
    : Baechi_Op<"await", [DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "waits for a received tensor, or for a send to be done with one";
  let description = [{
    ```mlir
    %x = baechi.await %future : !baechi.future<tensor<128x512xf32>>
    baechi.await %token : !baechi.token
    ```
  }];
  let arguments = (ins AnyTypeOf<[Baechi_FutureType, Baechi_TokenType]>:$source);
  let results = (outs Optional<Baechi_Value>:$value);
  let assemblyFormat = "$source attr-dict `:` qualified(type($source))";
}

def Baechi_GiveBackOp : Baechi_Op<"give_back"> {
  let summary = "gives a lent tensor back to its sender";
  let description = [{
    The receiver reads it no more; the sender, which awaits the token of its
    send, may overwrite it.

    ```mlir
    baechi.give_back %future : !baechi.future<tensor<128x512xf32>>
    ```
  }];
  let arguments = (ins Baechi_FutureType:$source);
  let assemblyFormat = "$source attr-dict `:` qualified(type($source))";
}

def Baechi_CopyOp
    : Baechi_Op<"copy", [AllTypesMatch<["source", "target"]>]> {
  let summary = "writes a tensor into an argument's buffer";
  let description = [{
    Ends the step of an argument whose next value could not be computed in
    place (memory planning inserts it).

    ```mlir
    baechi.copy %next into %argument : tensor<512xf32>
    ```
  }];
  let arguments = (ins Baechi_Value:$source, Baechi_Value:$target);
  let assemblyFormat = "$source `into` $target attr-dict `:` type($source)";
}

#endif // BAECHI_OPS
