// A dialect that states costs, views and in-place updates to Baechi.
include "Baechi/Interfaces/OperatorInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Shop_Dialect : Dialect {
  let name = "shop";
  let cppNamespace = "::shop";
}

def Shop_MixOp : Op<Shop_Dialect, "mix", [Pure,
    DeclareOpInterfaceMethods<Baechi_CostOpInterface,
                              ["getTimeNs", "runsOn", "getScratchBytes"]>]> {
  let summary = "an operator that takes the time it is given, on hosts only";
  let arguments = (ins AnyRankedTensor:$a, AnyRankedTensor:$b,
                       I64Attr:$time, DefaultValuedAttr<StrAttr, "\"host\"">:$kind);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$a `,` $b `time` $time attr-dict `:` functional-type(operands, results)";
}

def Shop_MultiplyOp : Op<Shop_Dialect, "multiply", [Pure,
    DeclareOpInterfaceMethods<Baechi_CostOpInterface, ["getWork"]>]> {
  let summary = "an operator whose arithmetic is known";
  let arguments = (ins AnyRankedTensor:$a, AnyRankedTensor:$b);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$a `,` $b attr-dict `:` functional-type(operands, results)";
}

def Shop_ViewOp : Op<Shop_Dialect, "view", [Pure,
    DeclareOpInterfaceMethods<Baechi_BufferOpInterface, ["isView"]>]> {
  let summary = "a tensor under another type";
  let arguments = (ins Variadic<AnyRankedTensor>:$sources);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$sources attr-dict `:` functional-type(operands, results)";
}

def Shop_UpdateOp : Op<Shop_Dialect, "update", [Pure,
    DeclareOpInterfaceMethods<Baechi_BufferOpInterface, ["mayWriteInto"]>]> {
  let summary = "a parameter's next value, in the parameter's buffer";
  let arguments = (ins AnyRankedTensor:$parameter, AnyRankedTensor:$gradient);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$parameter `,` $gradient attr-dict `:` functional-type(operands, results)";
}
