// RUN: not baechi-opt %s --baechi-constrain="pins=summ=host1" 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not baechi-opt %s --baechi-constrain="pins=sum" 2>&1 | FileCheck %s --check-prefix=SHAPE
// RUN: not baechi-opt %s --baechi-constrain="groups==g" 2>&1 | FileCheck %s --check-prefix=GROUP-SHAPE
// RUN: not baechi-opt %s --baechi-constrain="pins=@other.py*=host0" 2>&1 | FileCheck %s --check-prefix=LOCATION
// RUN: not baechi-opt %s --baechi-constrain="pins=@[=host0" 2>&1 | FileCheck %s --check-prefix=GLOB
// RUN: not baechi-opt %s --baechi-constrain="pins=sum=gpu7 machine=host:2" 2>&1 | FileCheck %s --check-prefix=DEVICE
// RUN: not baechi-opt %s --baechi-constrain="pins=sum=host0 machine=host:x" 2>&1 | FileCheck %s --check-prefix=MACHINE
// RUN: not baechi-opt %s --baechi-constrain="pins=sum=host0,*=host1" 2>&1 | FileCheck %s --check-prefix=PINNED
// RUN: not baechi-opt %s --baechi-constrain="groups=sum=g,s*=h" 2>&1 | FileCheck %s --check-prefix=GROUPED
// RUN: not baechi-opt %s --baechi-constrain="splits=sum=2" 2>&1 | FileCheck %s --check-prefix=CUT-SHAPE
// RUN: not baechi-opt %s --baechi-constrain="splits=sum=0:1" 2>&1 | FileCheck %s --check-prefix=CUT-SHAPE
// RUN: not baechi-opt %s --baechi-constrain="splits=sum=-1:2" 2>&1 | FileCheck %s --check-prefix=CUT-SHAPE
// RUN: not baechi-opt %s --baechi-constrain="splits=sum=1:2" 2>&1 | FileCheck %s --check-prefix=CUT-DIM
// RUN: not baechi-opt %s --baechi-constrain="splits=sum=0:5" 2>&1 | FileCheck %s --check-prefix=CUT-PIECES
// RUN: not baechi-opt %s --baechi-constrain="splits=sum=0:2,s*=whole" 2>&1 | FileCheck %s --check-prefix=CUT-TWICE
// RUN: not baechi-opt %s --baechi-constrain="splits=arg0=0:2,arg0=whole" 2>&1 | FileCheck %s --check-prefix=CUT-WHOLE
// RUN: not baechi-opt %s --baechi-constrain="splits=arg0=whole,arg0=0:2" 2>&1 | FileCheck %s --check-prefix=CUT-WHOLE
// RUN: not baechi-opt %s --baechi-constrain="splits=room=0:2" 2>&1 | FileCheck %s --check-prefix=CUT-NOTHING

// NAME: error: pins: no operator is called 'summ': did you mean 'sum'?
// SHAPE: error: pins: 'sum' must be PATTERN=DEVICE
// GROUP-SHAPE: error: groups: '=g' must be PATTERN=GROUP
// LOCATION: error: pins: no operator's location matches 'other.py*'; print them with --mlir-print-debuginfo
// GLOB: error: pins: '@[': invalid glob pattern, unmatched '['
// DEVICE: error: pins: 'sum=gpu7': the machine has no device 'gpu7'; its devices are host0, host1
// MACHINE: error: machine 'host:x': 'x' is not a number of devices
// PINNED: model.py:3:1: error: 'sum' is to be pinned to 'host1', but it is pinned to 'host0' already
// CUT-SHAPE: error: splits: '{{.*}}' must be PATTERN=DIM:PIECES or PATTERN=whole
// CUT-DIM: model.py:3:1: error: splits: 'sum=1:2': 'sum' is 'tensor<4xf32>', which has no dimension 1
// CUT-PIECES: model.py:3:1: error: splits: 'sum=0:5': 'sum' has 4 elements along dimension 0, too few for 5 pieces
// CUT-TWICE: model.py:3:1: error: splits: 's*=whole': 'sum' is to be cut as #baechi.split<dim = 0, sizes = [4]>, and as #baechi.split<dim = 0, sizes = [2, 2]> already
// CUT-WHOLE: error: splits: 'arg0={{.*}}': 'arg0' is to be cut, and to be whole
// CUT-NOTHING: error: splits: 'room=0:2' names nothing but constants, buffers and paddings, which are cut with what reads them
// GROUPED: model.py:3:1: error: 'sum' is to be in group 'h', but it is in group 'g' already
func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = arith.addf %x, %x {baechi.name = "sum"} : tensor<4xf32> loc("model.py":3:1)
  %room = tensor.empty() {baechi.name = "room"} : tensor<4xf32>
  return %a : tensor<4xf32>
}
