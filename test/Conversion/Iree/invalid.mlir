// RUN: baechi-opt %s --baechi-export-iree --split-input-file --verify-diagnostics --allow-unregistered-dialect
// RUN: not baechi-opt %s --baechi-export-iree=devices=host --split-input-file --allow-unregistered-dialect 2>&1 | FileCheck %s --check-prefix=OPTION
// OPTION: error: 'host' in 'devices' is not KIND=TARGET, as host=local

#m = #baechi.machine<devices = [<"host0", kind = "host", memory = 1024>, <"host1", kind = "host", memory = 1024>], link_default = <"" -> "", latency_ns = 1, bytes_per_us = 1>, link_model = sequential>

module attributes {baechi.machine = #m} {
  func.func @fine(%x: tensor<4xf32> {baechi.device = "host0"}) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

// expected-error @below {{no 'baechi.machine'; run --baechi-place}}
module {
  func.func @step(%x: tensor<4xf32> {baechi.device = "host0"}) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

// expected-error @below {{a program needs one public function, its step; this module has none}}
module attributes {baechi.machine = #baechi.machine<devices = [<"host0", kind = "host", memory = 1024>], link_model = sequential>} {
}

// -----

module attributes {baechi.machine = #baechi.machine<devices = [<"host0", kind = "host", memory = 1024>], link_model = sequential>} {
  // expected-error @below {{argument 0 is on no device; run --baechi-place}}
  func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

module attributes {baechi.machine = #baechi.machine<devices = [<"host0", kind = "host", memory = 1024>], link_model = sequential>} {
  func.func @step(%x: tensor<4xf32> {baechi.device = "host0"}) -> tensor<4xf32> {
    // expected-error @below {{'arith.addf' is on 'host7', which the machine does not have}}
    %y = arith.addf %x, %x {baechi.device = "host7"} : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

module attributes {baechi.machine = #baechi.machine<devices = [<"host0", kind = "host", memory = 1024>], link_model = sequential>} {
  // expected-error @below {{argument 0 has type 'tensor<4xindex>', which crosses no call of IREE; it takes tensors of static shape of integers or floats (use i64 for index)}}
  func.func @step(%x: tensor<4xindex> {baechi.device = "host0"}) -> tensor<4xindex> {
    return %x : tensor<4xindex>
  }
}

// -----

module attributes {baechi.machine = #baechi.machine<devices = [<"host0", kind = "host", memory = 1024>], link_model = sequential>} {
  func.func @step(%x: tensor<4xf32> {baechi.device = "host0"}) -> f32 {
    %c = arith.constant 1.0 : f32
    // expected-error @below {{result 0 has type 'f32', which crosses no call of IREE}}
    return %c : f32
  }
}

// -----

module attributes {baechi.machine = #baechi.machine<devices = [<"host0", kind = "host", memory = 1024>], link_model = sequential>} {
  func.func @step(%x: tensor<4xf32> {baechi.device = "host0"}) -> tensor<4xf32> {
    // expected-error @below {{'mystery.op' op is unknown to IREE; lower it to linalg on tensors before --baechi-export-iree}}
    %y = "mystery.op"(%x) {baechi.device = "host0"} : (tensor<4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

module attributes {baechi.machine = #baechi.machine<devices = [<"host0", kind = "host", memory = 1024>], link_model = sequential>} {
  func.func @step(%x: tensor<4xf32> {baechi.device = "host0"}) -> tensor<4xf32> {
    %y = call @kernel(%x) {baechi.device = "host0"} : (tensor<4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
  func.func private @kernel(%x: tensor<4xf32>) -> tensor<4xf32> attributes {baechi.kernel} {
    // expected-error @below {{calls @blas, which has no body for IREE to compile}}
    %y = call @blas(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
  func.func private @blas(tensor<4xf32>) -> tensor<4xf32>
}

// -----

module attributes {baechi.machine = #baechi.machine<devices = [<"host0", kind = "host", memory = 1024>, <"host1", kind = "host", memory = 1024>], link_model = sequential>} {
  func.func @step(%x: tensor<4xf32> {baechi.device = "host0"}, %c: tensor<i1> {baechi.device = "host0"}) -> tensor<4xf32> {
    %y = tensor.generate {
    ^bb0(%i: index):
      // expected-error @below {{is on 'host1' inside of an operator on 'host0'; exports keep an operator with regions on one device}}
      %e = tensor.extract %x[%i] {baechi.device = "host1"} : tensor<4xf32>
      tensor.yield %e : f32
    } {baechi.device = "host0"} : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

// expected-error @below {{no IREE target for devices of kind 'tpu'; name it: --baechi-export-iree=devices=tpu=TARGET}}
module attributes {baechi.machine = #baechi.machine<devices = [<"d0", kind = "tpu", memory = 1024>], link_model = sequential>} {
  func.func @step(%x: tensor<4xf32> {baechi.device = "d0"}) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

module attributes {baechi.machine = #baechi.machine<devices = [<"step", kind = "host", memory = 1024>], link_model = sequential>} {
  // expected-error @below {{has the name of device 'step'; rename one of them}}
  func.func @step(%x: tensor<4xf32> {baechi.device = "step"}) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

module attributes {baechi.machine = #baechi.machine<devices = [<"host0", kind = "host", memory = 1024>], link_model = sequential>} {
  func.func @step(%x: tensor<4xf32> {baechi.device = "host0"}) -> tensor<4xf32> {
    %y = call @kernel(%x) {baechi.device = "host0"} : (tensor<4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
  func.func private @kernel(%x: tensor<4xf32>) -> tensor<4xf32> attributes {baechi.kernel} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c1 = arith.constant 1 : index
    // expected-error @below {{is a loop in a kernel, which IREE would run as a dispatch an iteration; form the kernels with --baechi-form-kernels=row-loops=false}}
    %y = scf.for %i = %c0 to %c4 step %c1 iter_args(%it = %x) -> tensor<4xf32> {
      %z = arith.addf %it, %it : tensor<4xf32>
      scf.yield %z : tensor<4xf32>
    }
    return %y : tensor<4xf32>
  }
}

// -----

#one = #baechi.machine<devices = [<"host0", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #one} {
  // expected-error @+1 {{the step is a 'llvm.func', this takes a 'func.func' only}}
  llvm.func @step(%x: i32 {baechi.device = "host0"}) -> i32 {
    llvm.return %x : i32
  }
}

// -----

#two = #baechi.machine<devices = [<"host0", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  // expected-error @+1 {{argument 0 is a piece of 'w', which callers of IREE's module would have to cut and put together; cut with --baechi-split=stored=false}}
  func.func @step(%x: tensor<2xf32> {baechi.device = "host0", baechi.piece = #baechi.piece<of = "w", whole = tensor<4xf32>, dim = 0, start = 0, size = 2>},
                  %y: tensor<2xf32> {baechi.device = "host0", baechi.piece = #baechi.piece<of = "w", whole = tensor<4xf32>, dim = 0, start = 2, size = 2>}) -> tensor<2xf32> {
    %z = arith.addf %x, %y {baechi.device = "host0"} : tensor<2xf32>
    return %z : tensor<2xf32>
  }
}

// -----

module attributes {baechi.machine = #baechi.machine<devices = [<"host0", kind = "host", memory = 1000>], link_model = parallel>} {
  // expected-error @+1 {{result 0 is a piece of 'y', which callers of IREE's module would have to cut and put together}}
  func.func @step(%x: tensor<2xf32> {baechi.device = "host0"})
      -> (tensor<2xf32> {baechi.piece = #baechi.piece<of = "y", whole = tensor<4xf32>, dim = 0, start = 0, size = 2>},
          tensor<2xf32> {baechi.piece = #baechi.piece<of = "y", whole = tensor<4xf32>, dim = 0, start = 2, size = 2>}) {
    %z = arith.addf %x, %x {baechi.device = "host0"} : tensor<2xf32>
    return %z, %z : tensor<2xf32>, tensor<2xf32>
  }
}
