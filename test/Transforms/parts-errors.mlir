// RUN: baechi-opt %s --baechi-verify-partitioned --split-input-file --verify-diagnostics

// Parts stay readable in the whole, and what is lent of them may be read on.
#machine = #baechi.machine<devices = [<"a", kind = "host", memory = 4096>], link_model = parallel>
module attributes {baechi.machine = #machine} {
  module @a attributes {baechi.arena = #baechi.arena<bytes = 256, resident = 64, live = 256, limit = 4096>, baechi.device = "a"} {
    func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {baechi.kernel}
    func.func private @join(tensor<16xf32>, tensor<16xf32>) -> (tensor<32xf32> {baechi.parts = array<i64: 0, 64>}) attributes {baechi.kernel}
    func.func @step(%x: tensor<16xf32> {baechi.offset = 0 : i64}) -> (tensor<32xf32>, tensor<16xf32>) {
      %0 = call @k(%x) {baechi.offset = array<i64: 64>} : (tensor<16xf32>) -> tensor<16xf32>
      %1 = call @k(%0) {baechi.offset = array<i64: 128>} : (tensor<16xf32>) -> tensor<16xf32>
      %2 = call @join(%0, %1) {baechi.offset = array<i64: 64>} : (tensor<16xf32>, tensor<16xf32>) -> tensor<32xf32>
      %3 = call @k(%1) {baechi.offset = array<i64: 192>} : (tensor<16xf32>) -> tensor<16xf32>
      return %2, %3 : tensor<32xf32>, tensor<16xf32>
    }
  }
}

// -----

#machine = #baechi.machine<devices = [<"a", kind = "host", memory = 4096>], link_model = parallel>
module attributes {baechi.machine = #machine} {
  module @a attributes {baechi.arena = #baechi.arena<bytes = 256, resident = 64, live = 256, limit = 4096>, baechi.device = "a"} {
    func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {baechi.kernel}
    func.func private @join(tensor<16xf32>, tensor<16xf32>) -> (tensor<32xf32> {baechi.parts = array<i64: 0, 64>}) attributes {baechi.kernel}
    func.func @step(%x: tensor<16xf32> {baechi.offset = 0 : i64}) -> (tensor<32xf32>, tensor<16xf32>) {
      // expected-note @+1 {{the tensor}}
      %0 = call @k(%x) {baechi.offset = array<i64: 64>} : (tensor<16xf32>) -> tensor<16xf32>
      // expected-note @+1 {{'k#1' holds its bytes}}
      %1 = call @k(%x) {baechi.offset = array<i64: 64>} : (tensor<16xf32>) -> tensor<16xf32>
      // expected-error @+1 {{'join' on 'a' needs a tensor that is overwritten before}}
      %2 = call @join(%0, %1) {baechi.offset = array<i64: 64>} : (tensor<16xf32>, tensor<16xf32>) -> tensor<32xf32>
      return %2, %1 : tensor<32xf32>, tensor<16xf32>
    }
  }
}

// -----

// The part that is copied must not lie where another is put.
#machine = #baechi.machine<devices = [<"a", kind = "host", memory = 4096>], link_model = parallel>
module attributes {baechi.machine = #machine} {
  module @a attributes {baechi.arena = #baechi.arena<bytes = 256, resident = 64, live = 256, limit = 4096>, baechi.device = "a"} {
    func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {baechi.kernel}
    func.func private @join(tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<48xf32> {baechi.parts = array<i64: 0, 64, 128>}) attributes {baechi.kernel}
    func.func @step(%x: tensor<16xf32> {baechi.offset = 0 : i64}) -> tensor<48xf32> {
      %0 = call @k(%x) {baechi.offset = array<i64: 64>} : (tensor<16xf32>) -> tensor<16xf32>
      %1 = call @k(%x) {baechi.offset = array<i64: 128>} : (tensor<16xf32>) -> tensor<16xf32>
      // expected-error @+1 {{'join' on 'a' writes result 0 over an operand that it still reads}}
      %2 = call @join(%0, %x, %1) {baechi.offset = array<i64: 64>} : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<48xf32>
      return %2 : tensor<48xf32>
    }
  }
}

// -----

// The first part of a whole that nobody reads any more may be written over while
// the second is still sent; the second may not.
#two = #baechi.machine<devices = [<"a", kind = "host", memory = 4096>, <"b", kind = "host", memory = 4096>], link_model = parallel>
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.arena = #baechi.arena<bytes = 256, resident = 64, live = 256, limit = 4096>, baechi.device = "a"} {
    func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {baechi.kernel}
    func.func private @join(tensor<16xf32>, tensor<16xf32>) -> (tensor<32xf32> {baechi.parts = array<i64: 0, 64>}) attributes {baechi.kernel}
    func.func @step(%x: tensor<16xf32> {baechi.offset = 0 : i64}) -> tensor<16xf32> {
      %0 = call @k(%x) {baechi.offset = array<i64: 64>} : (tensor<16xf32>) -> tensor<16xf32>
      %1 = call @k(%x) {baechi.offset = array<i64: 128>} : (tensor<16xf32>) -> tensor<16xf32>
      // expected-note @+1 {{sent here}}
      %t = baechi.send %1 to "b" queue 0 seq 0 {baechi.name = "y"} : tensor<16xf32>
      %2 = call @join(%0, %1) {baechi.offset = array<i64: 64>} : (tensor<16xf32>, tensor<16xf32>) -> tensor<32xf32>
      %3 = call @k(%x) {baechi.offset = array<i64: 64>} : (tensor<16xf32>) -> tensor<16xf32>
      // expected-error @+1 {{'k#3' on 'a' writes over the buffer that queue 0 seq 0 ('y') from 'a' to 'b' still reads: its token was not awaited}}
      %4 = call @k(%3) {baechi.offset = array<i64: 128>} : (tensor<16xf32>) -> tensor<16xf32>
      baechi.await %t : !baechi.token
      return %4 : tensor<16xf32>
    }
  }
  module @b attributes {baechi.device = "b", baechi.arena = #baechi.arena<bytes = 128, resident = 0, live = 128, limit = 4096>} {
    func.func @step() {
      // expected-note @+1 {{the other end}}
      %f = baechi.recv from "a" queue 0 seq 0 {baechi.offset = array<i64: 0>} : !baechi.future<tensor<16xf32>>
      return
    }
  }
}

// -----

// Arguments that are read as a whole where they lie, until the first of them
// has its next value; that of the second is computed of its own.
#machine = #baechi.machine<devices = [<"a", kind = "host", memory = 4096>], link_model = parallel>
module attributes {baechi.machine = #machine} {
  module @a attributes {baechi.arena = #baechi.arena<bytes = 256, resident = 128, live = 256, limit = 4096>, baechi.device = "a"} {
    func.func private @next(tensor<16xf32>) -> (tensor<16xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel}
    func.func private @use(tensor<32xf32>) -> tensor<16xf32> attributes {baechi.kernel}
    func.func private @join(tensor<16xf32>, tensor<16xf32>) -> (tensor<32xf32> {baechi.parts = array<i64: 0, 64>}) attributes {baechi.kernel}
    func.func @step(%x: tensor<16xf32> {baechi.offset = 0 : i64, baechi.updated_by = 0 : i64}, %y: tensor<16xf32> {baechi.offset = 64 : i64, baechi.updated_by = 1 : i64}) -> (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) {
      %0 = call @join(%x, %y) {baechi.joined, baechi.offset = array<i64: 0>} : (tensor<16xf32>, tensor<16xf32>) -> tensor<32xf32>
      %1 = call @use(%0) {baechi.offset = array<i64: 128>} : (tensor<32xf32>) -> tensor<16xf32>
      %2 = call @next(%x) {baechi.offset = array<i64: 0>} : (tensor<16xf32>) -> tensor<16xf32>
      %3 = call @next(%y) {baechi.offset = array<i64: 64>} : (tensor<16xf32>) -> tensor<16xf32>
      return %2, %3, %1 : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
    }
  }
}

// -----

#machine = #baechi.machine<devices = [<"a", kind = "host", memory = 4096>], link_model = parallel>
module attributes {baechi.machine = #machine} {
  module @a attributes {baechi.arena = #baechi.arena<bytes = 256, resident = 128, live = 256, limit = 4096>, baechi.device = "a"} {
    func.func private @next(tensor<16xf32>) -> (tensor<16xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel}
    func.func private @use(tensor<32xf32>) -> tensor<16xf32> attributes {baechi.kernel}
    func.func private @join(tensor<16xf32>, tensor<16xf32>) -> (tensor<32xf32> {baechi.parts = array<i64: 0, 64>}) attributes {baechi.kernel}
    func.func @step(%x: tensor<16xf32> {baechi.offset = 0 : i64}, %y: tensor<16xf32> {baechi.offset = 64 : i64, baechi.updated_by = 0 : i64}) -> (tensor<16xf32>, tensor<16xf32>) {
      %0 = call @join(%x, %y) {baechi.joined, baechi.offset = array<i64: 0>} : (tensor<16xf32>, tensor<16xf32>) -> tensor<32xf32>
      // expected-note @+1 {{'next' holds its bytes}}
      %1 = call @next(%y) {baechi.offset = array<i64: 64>} : (tensor<16xf32>) -> tensor<16xf32>
      // expected-error @+1 {{'use' on 'a' needs a tensor that is overwritten before}}
      %2 = call @use(%0) {baechi.offset = array<i64: 128>} : (tensor<32xf32>) -> tensor<16xf32>
      return %1, %2 : tensor<16xf32>, tensor<16xf32>
    }
  }
}

// -----

#machine = #baechi.machine<devices = [<"a", kind = "host", memory = 4096>], link_model = parallel>
module attributes {baechi.machine = #machine} {
  module @a attributes {baechi.arena = #baechi.arena<bytes = 256, resident = 192, live = 256, limit = 4096>, baechi.device = "a"} {
    func.func private @join(tensor<16xf32>, tensor<16xf32>) -> (tensor<32xf32> {baechi.parts = array<i64: 0, 64>}) attributes {baechi.kernel}
    func.func @step(%x: tensor<16xf32> {baechi.offset = 0 : i64}, %y: tensor<16xf32> {baechi.offset = 128 : i64}) -> tensor<32xf32> {
      // expected-error @+1 {{'join' on 'a' is joined, and its operands do not lie behind each other where its result does; run --baechi-plan-memory}}
      %0 = call @join(%x, %y) {baechi.joined, baechi.offset = array<i64: 0>} : (tensor<16xf32>, tensor<16xf32>) -> tensor<32xf32>
      return %0 : tensor<32xf32>
    }
  }
}
