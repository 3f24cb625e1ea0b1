// RUN: baechi-opt %s --split-input-file --allow-unregistered-dialect --baechi-partition | FileCheck %s

#one = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>

// Counted loops, branches and what is called of them end.
module @counted attributes {baechi.machine = #one} {
  func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> attributes {baechi.kernel} {
    %0 = func.call @once(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = func.call @once(%0) : (tensor<4xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
  func.func private @once(%x: tensor<4xf32>) -> tensor<4xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %0 = scf.for %i = %c0 to %c4 step %c1 iter_args(%y = %x) -> tensor<4xf32> {
      %element = tensor.extract %y[%i] : tensor<4xf32>
      %test = arith.cmpf ogt, %element, %element : f32
      %chosen = scf.if %test -> f32 {
        scf.yield %element : f32
      } else {
        %negative = arith.negf %element : f32
        scf.yield %negative : f32
      }
      %next = tensor.insert %chosen into %y[%i] : tensor<4xf32>
      scf.yield %next : tensor<4xf32>
    }
    %1 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%0 : tensor<4xf32>) outs(%x : tensor<4xf32>) {
    ^bb0(%e: f32, %out: f32):
      %sum = arith.addf %e, %e : f32
      linalg.yield %sum : f32
    } -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
  func.func @step(%x: tensor<4xf32> {baechi.device = "a"}) -> tensor<4xf32> {
    %0 = call @twice(%x) {baechi.device = "a", baechi.start = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
// CHECK-LABEL: module @counted
// CHECK: func.func private @step(
// CHECK-SAME: attributes {baechi.ends}

// -----

#one = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>

// A loop that asks whether to go on may not end; what an earlier pass has said
// does not stand.
module @asks attributes {baechi.machine = #one} {
  func.func private @until(%x: tensor<i32>) -> tensor<i32> attributes {baechi.kernel} {
    %0 = scf.while (%y = %x) : (tensor<i32>) -> tensor<i32> {
      %element = tensor.extract %y[] : tensor<i32>
      %zero = arith.constant 0 : i32
      %more = arith.cmpi ne, %element, %zero : i32
      scf.condition(%more) %y : tensor<i32>
    } do {
    ^bb0(%y: tensor<i32>):
      scf.yield %y : tensor<i32>
    }
    return %0 : tensor<i32>
  }
  func.func @step(%x: tensor<i32> {baechi.device = "a"}) -> tensor<i32> attributes {baechi.ends} {
    %0 = call @until(%x) {baechi.device = "a", baechi.start = 0 : i64} : (tensor<i32>) -> tensor<i32>
    return %0 : tensor<i32>
  }
}
// CHECK-LABEL: module @asks
// CHECK-NOT: baechi.ends

// -----

#one = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>

// A step that is not known to lead on.
module @stands attributes {baechi.machine = #one} {
  func.func private @strides(%x: tensor<4xf32>, %by: tensor<index>) -> tensor<4xf32> attributes {baechi.kernel} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %step = tensor.extract %by[] : tensor<index>
    %0 = scf.for %i = %c0 to %c4 step %step iter_args(%y = %x) -> tensor<4xf32> {
      scf.yield %y : tensor<4xf32>
    }
    return %0 : tensor<4xf32>
  }
  func.func @step(%x: tensor<4xf32> {baechi.device = "a"}, %by: tensor<index> {baechi.device = "a"}) -> tensor<4xf32> {
    %0 = call @strides(%x, %by) {baechi.device = "a", baechi.start = 0 : i64} : (tensor<4xf32>, tensor<index>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
// CHECK-LABEL: module @stands
// CHECK-NOT: baechi.ends

// -----

#one = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>

// Another program's functions take as long as they like.
module @asked attributes {baechi.machine = #one} {
  func.func private @solve(tensor<4xf32>) -> tensor<4xf32> attributes {baechi.host_call = {effects = "pure", ns = 70000 : i64}, baechi.kernel}
  func.func @step(%x: tensor<4xf32> {baechi.device = "a"}) -> tensor<4xf32> {
    %0 = call @solve(%x) {baechi.device = "a", baechi.start = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
// CHECK-LABEL: module @asked
// CHECK-NOT: baechi.ends

// -----

#one = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>

// A function that comes back to itself, by blocks or by a call, and operations
// that nobody knows.
module @returns attributes {baechi.machine = #one} {
  func.func private @again(%x: tensor<4xf32>) -> tensor<4xf32> attributes {baechi.kernel} {
    %0 = func.call @again(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @step(%x: tensor<4xf32> {baechi.device = "a"}) -> tensor<4xf32> {
    %0 = call @again(%x) {baechi.device = "a", baechi.start = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
// CHECK-LABEL: module @returns
// CHECK-NOT: baechi.ends

// -----

#one = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>

module @blocks attributes {baechi.machine = #one} {
  func.func private @round(%x: tensor<4xf32>) -> tensor<4xf32> attributes {baechi.kernel} {
    cf.br ^bb1
  ^bb1:
    cf.br ^bb1
  }
  func.func @step(%x: tensor<4xf32> {baechi.device = "a"}) -> tensor<4xf32> {
    %0 = call @round(%x) {baechi.device = "a", baechi.start = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
// CHECK-LABEL: module @blocks
// CHECK-NOT: baechi.ends

// -----

#one = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>

module @unknown attributes {baechi.machine = #one} {
  func.func @step(%x: tensor<4xf32> {baechi.device = "a"}) -> tensor<4xf32> {
    %0 = "other.op"(%x) {baechi.device = "a", baechi.start = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
// CHECK-LABEL: module @unknown
// CHECK-NOT: baechi.ends

// -----

#one = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>

// Bounds may follow from counters of loops around them, and from numbers.
module @triangle attributes {baechi.machine = #one} {
  func.func private @kernel(%x: tensor<4xf32>) -> tensor<4xf32> attributes {baechi.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %0 = scf.for %i = %c0 to %c4 step %c1 iter_args(%y = %x) -> tensor<4xf32> {
      %end = arith.addi %i, %c1 : index
      %1 = scf.for %j = %i to %end step %c1 iter_args(%z = %y) -> tensor<4xf32> {
        %2 = math.tanh %z : tensor<4xf32>
        scf.yield %2 : tensor<4xf32>
      }
      scf.yield %1 : tensor<4xf32>
    }
    return %0 : tensor<4xf32>
  }
  func.func @step(%x: tensor<4xf32> {baechi.device = "a"}) -> tensor<4xf32> {
    %0 = call @kernel(%x) {baechi.device = "a", baechi.start = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
// CHECK-LABEL: module @triangle
// CHECK: func.func private @step(
// CHECK-SAME: attributes {baechi.ends}

// -----

#one = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>

// Data may say any bound, also by what a loop carries.
module @data attributes {baechi.machine = #one} {
  func.func private @kernel(%x: tensor<4xf32>, %n: tensor<index>) -> tensor<4xf32> attributes {baechi.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %end = tensor.extract %n[] : tensor<index>
    %0 = scf.for %i = %c0 to %end step %c1 iter_args(%y = %x) -> tensor<4xf32> {
      %1 = math.tanh %y : tensor<4xf32>
      scf.yield %1 : tensor<4xf32>
    }
    return %0 : tensor<4xf32>
  }
  func.func @step(%x: tensor<4xf32> {baechi.device = "a"}, %n: tensor<index> {baechi.device = "a"}) -> tensor<4xf32> {
    %0 = call @kernel(%x, %n) {baechi.device = "a", baechi.start = 0 : i64} : (tensor<4xf32>, tensor<index>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
// CHECK-LABEL: module @data
// CHECK-NOT: baechi.ends

// -----

#one = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>

module @carried attributes {baechi.machine = #one} {
  func.func private @kernel(%x: tensor<4xf32>) -> tensor<4xf32> attributes {baechi.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c40 = arith.constant 40 : index
    %0:2 = scf.for %i = %c0 to %c40 step %c1 iter_args(%y = %x, %n = %c1) -> (tensor<4xf32>, index) {
      %1 = scf.for %j = %c0 to %n step %c1 iter_args(%z = %y) -> tensor<4xf32> {
        %3 = math.tanh %z : tensor<4xf32>
        scf.yield %3 : tensor<4xf32>
      }
      %2 = arith.addi %n, %n : index
      scf.yield %1, %2 : tensor<4xf32>, index
    }
    return %0#0 : tensor<4xf32>
  }
  func.func @step(%x: tensor<4xf32> {baechi.device = "a"}) -> tensor<4xf32> {
    %0 = call @kernel(%x) {baechi.device = "a", baechi.start = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
// CHECK-LABEL: module @carried
// CHECK-NOT: baechi.ends

// -----

#one = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>

// The counter goes from 2^62 to -2^63, and on.
module @overflows attributes {baechi.machine = #one} {
  func.func private @kernel(%x: tensor<4xf32>) -> tensor<4xf32> attributes {baechi.kernel} {
    %c0 = arith.constant 0 : index
    %end = arith.constant 9223372036854775807 : index
    %by = arith.constant 4611686018427387904 : index
    %0 = scf.for %i = %c0 to %end step %by iter_args(%y = %x) -> tensor<4xf32> {
      %1 = math.tanh %y : tensor<4xf32>
      scf.yield %1 : tensor<4xf32>
    }
    return %0 : tensor<4xf32>
  }
  func.func @step(%x: tensor<4xf32> {baechi.device = "a"}) -> tensor<4xf32> {
    %0 = call @kernel(%x) {baechi.device = "a", baechi.start = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
// CHECK-LABEL: module @overflows
// CHECK-NOT: baechi.ends
