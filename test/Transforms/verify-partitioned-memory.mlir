// Offsets broken by hand: who reuses a buffer before its await, with both ends
// of the message; who reads what is gone.
// RUN: baechi-opt %s --split-input-file --verify-diagnostics --baechi-verify-partitioned

// The plan that holds: reuse after both awaits, an update in place, a copy.
#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 192, resident = 0, live = 192, limit = 1000>} {
    func.func @step(%x: tensor<16xf32> {baechi.argument = 0 : i64, baechi.updated_by = 0 : i64, baechi.offset = 0 : i64}) -> tensor<16xf32> {
      %0 = arith.addf %x, %x {baechi.offset = array<i64: 64>} : tensor<16xf32>
      %t = baechi.send %0 to "b" queue 0 seq 0 : tensor<16xf32>
      baechi.await %t : !baechi.token
      %1 = arith.mulf %x, %x {baechi.offset = array<i64: 64>} : tensor<16xf32>
      %2 = arith.subf %x, %1 {baechi.offset = array<i64: 128>} : tensor<16xf32>
      baechi.copy %2 into %x : tensor<16xf32>
      return %2 : tensor<16xf32>
    }
  }
  module @b attributes {baechi.device = "b", baechi.arena = #baechi.arena<bytes = 128, resident = 0, live = 128, limit = 1000>} {
    func.func @step() {
      %f = baechi.recv from "a" queue 0 seq 0 {baechi.offset = array<i64: 0>} : !baechi.future<tensor<16xf32>>
      %0 = baechi.await %f : !baechi.future<tensor<16xf32>>
      %1 = arith.addf %0, %0 {baechi.offset = array<i64: 64>} : tensor<16xf32>
      %2 = arith.addf %1, %1 {baechi.offset = array<i64: 0>} : tensor<16xf32>
      return
    }
  }
}

// -----

// A sent buffer is reused before the token is awaited.
#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 192, resident = 0, live = 192, limit = 1000>} {
    func.func @step(%x: tensor<16xf32> {baechi.argument = 0 : i64, baechi.offset = 0 : i64}) {
      %0 = arith.addf %x, %x {baechi.offset = array<i64: 64>} : tensor<16xf32>
      // expected-note @+1 {{sent here}}
      %t = baechi.send %0 to "b" queue 0 seq 0 {baechi.name = "enc/y"} : tensor<16xf32>
      // expected-error @+1 {{'enc/z' on 'a' writes over the buffer that queue 0 seq 0 ('enc/y') from 'a' to 'b' still reads: its token was not awaited}}
      %1 = arith.mulf %x, %x {baechi.name = "enc/z", baechi.offset = array<i64: 64>} : tensor<16xf32>
      baechi.await %t : !baechi.token
      return
    }
  }
  module @b attributes {baechi.device = "b", baechi.arena = #baechi.arena<bytes = 128, resident = 0, live = 128, limit = 1000>} {
    func.func @step() {
      // expected-note @+1 {{the other end}}
      %f = baechi.recv from "a" queue 0 seq 0 {baechi.offset = array<i64: 0>} : !baechi.future<tensor<16xf32>>
      return
    }
  }
}

// -----

// A posted buffer is used before the future is awaited: partly is enough.
#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 192, resident = 0, live = 192, limit = 1000>} {
    func.func @step(%x: tensor<16xf32> {baechi.argument = 0 : i64, baechi.offset = 0 : i64}) {
      // expected-note @+1 {{the other end}}
      %t = baechi.send %x to "b" queue 0 seq 0 : tensor<16xf32>
      return
    }
  }
  module @b attributes {baechi.device = "b", baechi.arena = #baechi.arena<bytes = 256, resident = 0, live = 256, limit = 1000>} {
    func.func @step(%y: tensor<32xf32> {baechi.argument = 1 : i64, baechi.offset = 128 : i64}) {
      // expected-note @+1 {{received here}}
      %f = baechi.recv from "a" queue 0 seq 0 {baechi.offset = array<i64: 64>} : !baechi.future<tensor<16xf32>>
      // expected-error @+1 {{'arith.addf' on 'b' writes over the buffer that queue 0 seq 0 from 'a' to 'b' still fills: its future was not awaited}}
      %1 = arith.addf %y, %y {baechi.offset = array<i64: 0>} : tensor<32xf32>
      %0 = baechi.await %f : !baechi.future<tensor<16xf32>>
      return
    }
  }
}

// -----

// Two posted buffers at one place.
#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 192, resident = 0, live = 192, limit = 1000>} {
    func.func @step(%x: tensor<16xf32> {baechi.argument = 0 : i64, baechi.offset = 0 : i64}) {
      %t = baechi.send %x to "b" queue 0 seq 0 : tensor<16xf32>
      // expected-note @-1 {{the other end}}
      %u = baechi.send %x to "b" queue 0 seq 1 : tensor<16xf32>
      return
    }
  }
  module @b attributes {baechi.device = "b", baechi.arena = #baechi.arena<bytes = 256, resident = 0, live = 256, limit = 1000>} {
    func.func @step() {
      // expected-note @+1 {{received here}}
      %f = baechi.recv from "a" queue 0 seq 0 {baechi.offset = array<i64: 64>} : !baechi.future<tensor<16xf32>>
      // expected-error @+1 {{'baechi.recv' on 'b' writes over the buffer that queue 0 seq 0 from 'a' to 'b' still fills}}
      %g = baechi.recv from "a" queue 0 seq 1 {baechi.offset = array<i64: 64>} : !baechi.future<tensor<16xf32>>
      return
    }
  }
}

// -----

// A tensor is read after another took its bytes.
#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 192, resident = 0, live = 192, limit = 1000>} {
    func.func @step(%x: tensor<16xf32> {baechi.argument = 0 : i64, baechi.offset = 0 : i64}) {
      // expected-note @+1 {{the tensor}}
      %0 = arith.addf %x, %x {baechi.offset = array<i64: 64>} : tensor<16xf32>
      // expected-note @+1 {{'taker' holds its bytes}}
      %1 = arith.mulf %x, %x {baechi.name = "taker", baechi.offset = array<i64: 64>} : tensor<16xf32>
      // expected-error @+1 {{'arith.subf' on 'a' needs a tensor that is overwritten before}}
      %2 = arith.subf %0, %1 {baechi.offset = array<i64: 128>} : tensor<16xf32>
      return
    }
  }
  module @b attributes {baechi.device = "b", baechi.arena = #baechi.arena<bytes = 0, resident = 0, live = 0, limit = 1000>} {
    func.func @step() {
      return
    }
  }
}

// -----

// Two results, or a result and scratch, at one place.
#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 192, resident = 0, live = 192, limit = 1000>} {
    func.func @step(%x: tensor<16xi32> {baechi.argument = 0 : i64, baechi.offset = 0 : i64}) {
      // expected-note @+2 {{the tensor}}
      // expected-error @+1 {{'arith.addui_extended' on 'a' needs a tensor that is overwritten before}}
      %0, %1 = arith.addui_extended %x, %x {baechi.offset = array<i64: 64, 64>} : tensor<16xi32>, tensor<16xi1>
      // expected-note @-1 {{'arith.addui_extended' holds its bytes}}
      return
    }
  }
  module @b attributes {baechi.device = "b", baechi.arena = #baechi.arena<bytes = 0, resident = 0, live = 0, limit = 1000>} {
    func.func @step() {
      return
    }
  }
}

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 192, resident = 0, live = 192, limit = 1000>} {
    func.func @step(%x: tensor<16xf32> {baechi.argument = 0 : i64, baechi.offset = 0 : i64}) {
      // expected-error @+2 {{needs a tensor that is overwritten before}}
      // expected-note @+1 {{the tensor}}
      %0 = arith.addf %x, %x {baechi.cost = #baechi.cost<time_ns = {host = 1}, scratch = 64>, baechi.offset = array<i64: 64, 64>} : tensor<16xf32>
      // expected-note @-1 {{'arith.addf' holds its bytes}}
      return
    }
  }
  module @b attributes {baechi.device = "b", baechi.arena = #baechi.arena<bytes = 0, resident = 0, live = 0, limit = 1000>} {
    func.func @step() {
      return
    }
  }
}

// -----

// An operator that may not work in place.
#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 192, resident = 0, live = 192, limit = 1000>} {
    func.func @step(%x: tensor<16xf32> {baechi.argument = 0 : i64, baechi.offset = 0 : i64}) {
      %0 = arith.addf %x, %x {baechi.offset = array<i64: 64>} : tensor<16xf32>
      // expected-error @+1 {{'arith.mulf' on 'a' writes result 0 over an operand that it still reads}}
      %1 = arith.mulf %0, %0 {baechi.offset = array<i64: 64>} : tensor<16xf32>
      return
    }
  }
  module @b attributes {baechi.device = "b", baechi.arena = #baechi.arena<bytes = 0, resident = 0, live = 0, limit = 1000>} {
    func.func @step() {
      return
    }
  }
}

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 192, resident = 0, live = 192, limit = 1000>} {
    func.func @step(%x: tensor<16xf32> {baechi.argument = 0 : i64, baechi.offset = 0 : i64}) {
      // expected-error @+1 {{'arith.addf' on 'a' has its scratch over an operand that it reads}}
      %0 = arith.addf %x, %x {baechi.cost = #baechi.cost<time_ns = {host = 1}, scratch = 64>, baechi.offset = array<i64: 64, 0>} : tensor<16xf32>
      return
    }
  }
  module @b attributes {baechi.device = "b", baechi.arena = #baechi.arena<bytes = 0, resident = 0, live = 0, limit = 1000>} {
    func.func @step() {
      return
    }
  }
}

// -----

// A parameter that is gone at the end, and one without its next value.
#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 192, resident = 0, live = 192, limit = 1000>} {
    func.func @step(
      // expected-error @+1 {{argument 0 on 'a' does not hold its value at the end of the step}}
      %x: tensor<16xf32> {baechi.argument = 0 : i64, baechi.offset = 0 : i64}, %y: tensor<16xf32> {baechi.argument = 1 : i64, baechi.offset = 64 : i64}) {
      // expected-note @+1 {{'arith.addf' holds its bytes}}
      %0 = arith.addf %y, %y {baechi.offset = array<i64: 0>} : tensor<16xf32>
      return
    }
  }
  module @b attributes {baechi.device = "b", baechi.arena = #baechi.arena<bytes = 0, resident = 0, live = 0, limit = 1000>} {
    func.func @step() {
      return
    }
  }
}

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 192, resident = 0, live = 192, limit = 1000>} {
    func.func @step(
      // expected-error @+2 {{argument 0 on 'a' does not hold its next value at the end of the step}}
      // expected-note @-2 {{'func.func' holds its bytes}}
      %x: tensor<16xf32> {baechi.argument = 0 : i64, baechi.updated_by = 0 : i64, baechi.offset = 0 : i64}) -> tensor<16xf32> {
      %0 = arith.addf %x, %x {baechi.offset = array<i64: 64>} : tensor<16xf32>
      return %0 : tensor<16xf32>
    }
  }
  module @b attributes {baechi.device = "b", baechi.arena = #baechi.arena<bytes = 0, resident = 0, live = 0, limit = 1000>} {
    func.func @step() {
      return
    }
  }
}

// -----

// Offsets that are missing, too few, or beyond the arena.
#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 192, resident = 0, live = 192, limit = 1000>} {
    func.func @step(
      // expected-error @+1 {{argument 0 on 'a' has no 'baechi.offset'; run --baechi-plan-memory}}
      %x: tensor<16xf32> {baechi.argument = 0 : i64}) {
      return
    }
  }
  module @b attributes {baechi.device = "b", baechi.arena = #baechi.arena<bytes = 0, resident = 0, live = 0, limit = 1000>} {
    func.func @step() {
      return
    }
  }
}

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 192, resident = 0, live = 192, limit = 1000>} {
    func.func @step(%x: tensor<16xf32> {baechi.argument = 0 : i64, baechi.offset = 0 : i64}) {
      // expected-error @+1 {{'arith.addf' on 'a' has 0 offsets in 'baechi.offset', its results and scratch need 1; run --baechi-plan-memory}}
      %0 = arith.addf %x, %x : tensor<16xf32>
      return
    }
  }
  module @b attributes {baechi.device = "b", baechi.arena = #baechi.arena<bytes = 0, resident = 0, live = 0, limit = 1000>} {
    func.func @step() {
      return
    }
  }
}

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 100, resident = 0, live = 100, limit = 1000>} {
    func.func @step(%x: tensor<16xf32> {baechi.argument = 0 : i64, baechi.offset = 0 : i64}) {
      // expected-error @+1 {{'arith.addf' on 'a' needs 64 bytes at 64, its arena has 100}}
      %0 = arith.addf %x, %x {baechi.offset = array<i64: 64>} : tensor<16xf32>
      return
    }
  }
  module @b attributes {baechi.device = "b", baechi.arena = #baechi.arena<bytes = 0, resident = 0, live = 0, limit = 1000>} {
    func.func @step() {
      return
    }
  }
}

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 192, resident = 0, live = 192, limit = 1000>} {
    func.func @step(%x: tensor<16xf32> {baechi.argument = 0 : i64, baechi.offset = 0 : i64}) {
      %c = arith.constant dense<0.0> : tensor<16xf32>
      // expected-error @+1 {{writes into a constant}}
      baechi.copy %x into %c : tensor<16xf32>
      return
    }
  }
  module @b attributes {baechi.device = "b", baechi.arena = #baechi.arena<bytes = 0, resident = 0, live = 0, limit = 1000>} {
    func.func @step() {
      return
    }
  }
}

// -----

// An offset near the end of all numbers.
#one = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #one} {
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 192, resident = 0, live = 192, limit = 1000>} {
    func.func @step(%x: tensor<16xf32> {baechi.argument = 0 : i64, baechi.offset = 0 : i64}) {
      // expected-error @+1 {{'arith.addf' on 'a' needs 64 bytes at 9223372036854775744, its arena has 192}}
      %0 = arith.addf %x, %x {baechi.offset = array<i64: 9223372036854775744>} : tensor<16xf32>
      return
    }
  }
}

// -----

// Buffers are aligned.
#one = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #one} {
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 192, resident = 0, live = 192, limit = 1000>} {
    func.func @step(%x: tensor<16xf32> {baechi.argument = 0 : i64, baechi.offset = 0 : i64}) {
      // expected-error @+1 {{'arith.addf' on 'a' has a buffer at byte 68, which is no multiple of 64}}
      %0 = arith.addf %x, %x {baechi.offset = array<i64: 68>} : tensor<16xf32>
      return
    }
  }
}

// -----

// A plan for a larger device.
#one = #baechi.machine<devices = [<"a", kind = "host", memory = 10>], link_model = parallel>
module attributes {baechi.machine = #one} {
  // expected-error @+1 {{the arena of 'a' may take 1000 bytes, the machine gives the device 10; run --baechi-plan-memory}}
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 192, resident = 0, live = 192, limit = 1000>} {
    func.func @step(%x: tensor<16xf32> {baechi.argument = 0 : i64, baechi.offset = 0 : i64}) { return }
  }
}

// -----

// Calls have their kernel's name, counted where it comes again.
#one = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #one} {
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 192, resident = 0, live = 192, limit = 1000>} {
    func.func private @double(tensor<16xf32>) -> tensor<16xf32> attributes {baechi.kernel}
    func.func @step(%x: tensor<16xf32> {baechi.argument = 0 : i64, baechi.offset = 0 : i64}) {
      %0 = call @double(%x) {baechi.offset = array<i64: 64>} : (tensor<16xf32>) -> tensor<16xf32>
      // expected-error @+1 {{'double#1' on 'a' writes result 0 over an operand that it still reads}}
      %1 = call @double(%0) {baechi.offset = array<i64: 64>} : (tensor<16xf32>) -> tensor<16xf32>
      return
    }
  }
}

// -----

#one = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #one} {
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 192, resident = 0, live = 192, limit = 1000>} {
    // expected-error @+1 {{'weights' on 'a' has a buffer at byte 1, which is no multiple of 64}}
    func.func @step(%x: tensor<16xf32> {baechi.name = "weights", baechi.argument = 0 : i64, baechi.offset = 1 : i64}) { return }
  }
}
