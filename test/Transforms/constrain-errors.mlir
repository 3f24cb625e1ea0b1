// RUN: not baechi-opt %s --baechi-constrain="pins=summ=host1" 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not baechi-opt %s --baechi-constrain="pins=sum" 2>&1 | FileCheck %s --check-prefix=SHAPE
// RUN: not baechi-opt %s --baechi-constrain="groups==g" 2>&1 | FileCheck %s --check-prefix=GROUP-SHAPE
// RUN: not baechi-opt %s --baechi-constrain="pins=@other.py*=host0" 2>&1 | FileCheck %s --check-prefix=LOCATION
// RUN: not baechi-opt %s --baechi-constrain="pins=@[=host0" 2>&1 | FileCheck %s --check-prefix=GLOB
// RUN: not baechi-opt %s --baechi-constrain="pins=sum=gpu7 machine=host:2" 2>&1 | FileCheck %s --check-prefix=DEVICE
// RUN: not baechi-opt %s --baechi-constrain="pins=sum=host0 machine=host:x" 2>&1 | FileCheck %s --check-prefix=MACHINE
// RUN: not baechi-opt %s --baechi-constrain="pins=sum=host0,*=host1" 2>&1 | FileCheck %s --check-prefix=PINNED
// RUN: not baechi-opt %s --baechi-constrain="groups=sum=g,s*=h" 2>&1 | FileCheck %s --check-prefix=GROUPED

// NAME: error: pins: no operator is called 'summ': did you mean 'sum'?
// SHAPE: error: pins: 'sum' must be PATTERN=DEVICE
// GROUP-SHAPE: error: groups: '=g' must be PATTERN=GROUP
// LOCATION: error: pins: no operator's location matches 'other.py*'; print them with --mlir-print-debuginfo
// GLOB: error: pins: '@[': invalid glob pattern, unmatched '['
// DEVICE: error: pins: 'sum=gpu7': the machine has no device 'gpu7'; its devices are host0, host1
// MACHINE: error: machine 'host:x': 'x' is not a number of devices
// PINNED: model.py:3:1: error: 'sum' is to be pinned to 'host1', but it is pinned to 'host0' already
// GROUPED: model.py:3:1: error: 'sum' is to be in group 'h', but it is in group 'g' already
func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = arith.addf %x, %x {baechi.name = "sum"} : tensor<4xf32> loc("model.py":3:1)
  return %a : tensor<4xf32>
}
