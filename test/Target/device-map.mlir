// Prefixes of names to devices: as short as they can be, ending where components do.
// RUN: split-file %s %t
// RUN: baechi-translate %t/step.mlir --baechi-to-device-map | FileCheck %s --check-prefix=STEP --strict-whitespace --match-full-lines
// RUN: baechi-translate %t/one.mlir --baechi-to-device-map | FileCheck %s --check-prefix=ONE --strict-whitespace --match-full-lines

//      STEP:{
// STEP-NEXT:  "decoder.l1": "b",
// STEP-NEXT:  "decoder.l10": "a",
// STEP-NEXT:  "encoder": "a",
// STEP-NEXT:  "loss": "b",
// STEP-NEXT:  "loss/mean": "a",
// STEP-NEXT:  "x": "b"
// STEP-NEXT:}
//      ONE:{
// ONE-NEXT:  "": "a"
// ONE-NEXT:}

//--- step.mlir
func.func @step(%x: tensor<4xf32> {baechi.name = "x", baechi.device = "b"}) -> tensor<4xf32> {
  %0 = arith.addf %x, %x {baechi.name = "encoder/l0/add", baechi.device = "a"} : tensor<4xf32>
  %1 = arith.addf %0, %x {baechi.name = "encoder/l1/add", baechi.device = "a"} : tensor<4xf32>
  %2 = arith.addf %1, %x {baechi.name = "decoder.l1/add", baechi.device = "b"} : tensor<4xf32>
  %3 = arith.addf %2, %x {baechi.name = "decoder.l1/mul", baechi.device = "b"} : tensor<4xf32>
  %4 = arith.addf %3, %x {baechi.name = "decoder.l10", baechi.device = "a"} : tensor<4xf32>
  %5 = arith.addf %4, %x {baechi.name = "loss", baechi.device = "b"} : tensor<4xf32>
  %6 = arith.addf %5, %x {baechi.name = "loss/mean", baechi.device = "a"} : tensor<4xf32>
  return %6 : tensor<4xf32>
}
//--- one.mlir
func.func @step(%x: tensor<4xf32> {baechi.name = "x", baechi.device = "a"}) -> tensor<4xf32> {
  %0 = arith.addf %x, %x {baechi.name = "encoder/add", baechi.device = "a"} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
