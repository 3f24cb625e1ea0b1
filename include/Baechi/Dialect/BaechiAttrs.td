//===- BaechiAttrs.td - Attributes of the baechi dialect -*- tablegen -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_ATTRS
#define BAECHI_ATTRS

include "Baechi/Dialect/BaechiDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class Baechi_Attr<string name, string attrMnemonic>
    : AttrDef<Baechi_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def Baechi_LinkModel : I32Enum<"LinkModel", "which transfers may not overlap", [
  I32EnumCase<"Unlimited", 0, "unlimited">,
  I32EnumCase<"Parallel", 1, "parallel">,
  I32EnumCase<"Duplex", 2, "duplex">,
  I32EnumCase<"Sequential", 3, "sequential">]> {
  let cppNamespace = "::baechi";
}

def Baechi_DeviceSpecAttr : Baechi_Attr<"DeviceSpec", "device_spec"> {
  let summary = "a device: its name, its kind, its memory in bytes";
  let parameters = (ins StringRefParameter<"name">:$name,
                        StringRefParameter<"kind">:$kind,
                        "int64_t":$memory);
  let assemblyFormat = [{
    `<` $name `,` `kind` `=` $kind `,` `memory` `=` $memory `>`
  }];
  let genVerifyDecl = 1;
}

def Baechi_LinkAttr : Baechi_Attr<"Link", "link"> {
  let summary = "a directed link between two devices";
  let description = [{
    A copy takes `latency_ns + ceil(bytes * 1000 / bytes_per_us)`. Where the
    devices share one address space and the link `lends`, a transfer takes
    `latency_ns`: the receiver reads the sender's tensor where it lies. The
    names are empty in a machine's default link.

    ```mlir
    #baechi.link<"host0" -> "host1", latency_ns = 600, bytes_per_us = 8000, lends>
    ```
  }];
  let parameters = (ins StringRefParameter<"from">:$from,
                        StringRefParameter<"to">:$to, "int64_t":$latencyNs,
                        "int64_t":$bytesPerUs,
                        DefaultValuedParameter<"bool", "false">:$lends);
  let assemblyFormat = [{
    `<` $from `->` $to `,` `latency_ns` `=` $latencyNs `,` `bytes_per_us` `=`
        $bytesPerUs `` custom<Lends>($lends) `>`
  }];
  let genVerifyDecl = 1;
}

def Baechi_RuntimeCostsAttr : Baechi_Attr<"RuntimeCosts", "runtime"> {
  let summary = "what the runtime itself costs on a machine";
  let description = [{
    As `baechi-run --query-machine` and `--calibrate` measure it
    (docs/formats.md): starting a step, beginning and ending an operator, waking
    a device that sleeps over a message, and what operators take while several
    devices share memory, in percent of what they take alone. `alone_ns`, which
    may be left out, is starting a step that one device computes; `cores`, which
    may be left out, how many processors host devices share that outnumber them.

    ```mlir
    #baechi.runtime<step_ns = 9000, operator_ns = 150, wake_ns = 12000, shared_percent = 104>
    ```
  }];
  let parameters = (ins "int64_t":$step_ns, "int64_t":$operator_ns,
                        "int64_t":$wake_ns, "int64_t":$shared_percent,
                        DefaultValuedParameter<"int64_t", "-1">:$alone_ns,
                        DefaultValuedParameter<"int64_t", "0">:$cores);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Baechi_MachineAttr : Baechi_Attr<"Machine", "machine"> {
  let summary = "the devices and links that a program is placed on";
  let description = [{
    The typed form of a machine file (docs/formats.md):

    ```mlir
    #baechi.machine<devices = [<"gpu0", kind = "cuda", memory = 8589934592>],
                    links = [<"gpu0" -> "gpu1", latency_ns = 134000, bytes_per_us = 5701>],
                    link_default = <"" -> "", latency_ns = 134000, bytes_per_us = 5701>,
                    link_model = sequential, staged_through = "cpu",
                    runtime = <step_ns = 9000, operator_ns = 150, wake_ns = 12000, shared_percent = 104>>
    ```

    `links` and `link_default` may be left out; a pair of devices with neither
    cannot talk. So may `staged_through` (a kind of devices) and `runtime`.
  }];
  let parameters = (ins ArrayRefParameter<"DeviceSpecAttr">:$devices,
                        OptionalArrayRefParameter<"LinkAttr">:$links,
                        OptionalParameter<"LinkAttr">:$linkDefault,
                        "LinkModel":$linkModel,
                        OptionalParameter<"::mlir::StringAttr">:$stagedThrough,
                        OptionalParameter<"RuntimeCostsAttr">:$runtime);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Baechi_CostAttr : Baechi_Attr<"Cost", "cost"> {
  let summary = "what an operator costs";
  let description = [{
    Compute time in ns per device kind (a kind that is missing cannot run the
    operator) and scratch bytes held while it runs. Where a profile was used,
    `estimated` names the kinds that it has no row for:

    ```mlir
    #baechi.cost<time_ns = {cuda = 41000, host = 910000}, scratch = 0>
    #baechi.cost<time_ns = {cuda = 41000, host = 910000}, scratch = 0, estimated = ["cuda"]>
    ```
  }];
  let parameters = (ins "::mlir::DictionaryAttr":$timeNs, "int64_t":$scratch,
                        OptionalParameter<"::mlir::ArrayAttr">:$estimated);
  let assemblyFormat = [{
    `<` `time_ns` `=` custom<TimePerKind>($timeNs) `,` `scratch` `=` $scratch
        (`,` `estimated` `=` $estimated^)? `>`
  }];
  let genVerifyDecl = 1;
}

def Baechi_TransferAttr : Baechi_Attr<"Transfer", "transfer"> {
  let summary = "a planned transfer of a tensor to another device";
  let description = [{
    Stands in the `baechi.sends` of the operation (or argument) that the tensor
    is a result of; start and end are ns in the step.

    ```mlir
    #baechi.transfer<result = 0, from = "gpu0", to = "gpu1", start = 41000, end = 180000>
    ```
  }];
  let parameters = (ins "int64_t":$result, StringRefParameter<"from">:$from,
                        StringRefParameter<"to">:$to, "int64_t":$start,
                        "int64_t":$end);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Baechi_PlacementCertificateAttr
    : Baechi_Attr<"PlacementCertificate", "placement_certificate"> {
  let summary = "what is known about a placement";
  let description = [{
    The placer that was asked for, the candidate that won, the predicted
    makespan, a valid lower bound on every placement's makespan with its name,
    and the best single device's makespan (0: none can hold the program). ns.
    `peaks`, where there is one, has the bytes that the placement promises each
    device of the machine to hold at most, by its timeline.
  }];
  let parameters = (ins StringRefParameter<"placer">:$placer,
                        StringRefParameter<"winner">:$winner,
                        "int64_t":$makespan, "int64_t":$lower_bound,
                        StringRefParameter<"bound">:$bound,
                        "int64_t":$single_device, "int64_t":$operators,
                        "int64_t":$groups,
                        OptionalParameter<"::mlir::DenseI64ArrayAttr">:$peaks);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Baechi_ArenaAttr : Baechi_Attr<"Arena", "arena"> {
  let summary = "the planned memory of a device";
  let description = [{
    `bytes` is the arena's exact size, `resident` the part that parameters and
    inputs hold, `live` the most bytes that are live at once (a lower bound of
    `bytes`), `limit` the device's memory, `promised` the most bytes by the
    placement's certificate (left out where that says nothing).
  }];
  let parameters = (ins "int64_t":$bytes, "int64_t":$resident,
                        "int64_t":$live, "int64_t":$limit,
                        DefaultValuedParameter<"int64_t", "0">:$promised);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Baechi_SplitAttr : Baechi_Attr<"Split", "split"> {
  let summary = "how a person wants an operation to be cut";
  let description = [{
    Dimension `dim` of an argument, or of an operation's first result, is cut
    into pieces of `sizes` elements, which need not be equal. All that the cut
    can follow without communication follows it (`--baechi-split`). An operation
    with one size stays whole.

    ```mlir
    func.func @step(%x: tensor<7x8xf32> {baechi.split = #baechi.split<dim = 0, sizes = [4, 3]>})
    ```
  }];
  let parameters = (ins "int64_t":$dim, ArrayRefParameter<"int64_t">:$sizes);
  let assemblyFormat = [{
    `<` `dim` `=` $dim `,` `sizes` `=` `[` $sizes `]` `>`
  }];
  let genVerifyDecl = 1;
}

def Baechi_CudaProductAttr : Baechi_Attr<"CudaProduct", "cuda_product"> {
  let summary = "how GPUs compute a kernel that is a product";
  let description = [{
    Stands on kernels whose GPU code calls cuBLASLt. `math` says what
    single-precision factors may be rounded to: nothing (fp32), tf32, bf16 or
    fp16; sums are in single precision. `workspace` is how many bytes the library
    may use beside its operands, `algorithm` what it is told to run, from a
    profile; without it the library chooses.

    ```mlir
    #baechi.cuda_product<math = "tf32", workspace = 65536>
    ```
  }];
  let parameters = (ins StringRefParameter<"fp32, tf32, bf16 or fp16">:$math,
                        "int64_t":$workspace,
                        OptionalParameter<"::mlir::DenseI64ArrayAttr">:$algorithm);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// What `math` may be, in the order of BAECHI_CUDA_MATH_*.
    static ::llvm::ArrayRef<::llvm::StringRef> knownMath();
    /// What a profile calls this way of computing: cublaslt, or cublaslt-tf32.
    std::string getImplementation() const;
  }];
}

def Baechi_CudaConvolutionAttr
    : Baechi_Attr<"CudaConvolution", "cuda_convolution"> {
  let summary = "how GPUs compute a kernel that is a convolution";
  let description = [{
    Stands on kernels that cuDNN can compute in the place of generated code. It
    does with `engine`, what a profile found to be faster, or with `always`.
    `math` says what single-precision factors may be rounded to, `workspace` how
    many bytes the library may use beside its operands, `engine` what it is told
    to run; without it the library chooses.

    ```mlir
    #baechi.cuda_convolution<math = "tf32", workspace = 65536, always = true>
    ```
  }];
  let parameters = (ins StringRefParameter<"fp32, tf32, bf16 or fp16">:$math,
                        "int64_t":$workspace,
                        DefaultValuedParameter<"bool", "false">:$always,
                        OptionalParameter<"::mlir::DenseI64ArrayAttr">:$engine);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Whether cuDNN computes it; else generated code does.
    bool callsLibrary() const { return getAlways() || getEngine(); }
    /// What a profile calls cuDNN's way: cudnn, or cudnn-tf32.
    std::string getLibraryImplementation() const;
    /// What a profile calls the way that is chosen.
    std::string getImplementation() const {
      return callsLibrary() ? getLibraryImplementation() : "generated";
    }
  }];
}

#endif // BAECHI_ATTRS
