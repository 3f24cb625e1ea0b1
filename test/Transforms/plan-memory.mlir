// RUN: baechi-opt %s --split-input-file --baechi-plan-memory | FileCheck %s

#one = #baechi.machine<devices = [<"a", kind = "host", memory = 100000>], link_model = parallel>

// Arguments come first, each at a multiple of 64; a buffer is reused when its
// tensor's last reader has run; scratch is a buffer of its operator alone.
// CHECK-LABEL: module @offsets
module @offsets attributes {baechi.machine = #one} {
  func.func private @step(tensor<256xf32>, tensor<10xf32>) -> tensor<256xf32>
  // 1024 + 64 of arguments; %0 and %1 at once, later %1 with scratch and %2.
  // CHECK: module @a attributes {baechi.arena = #baechi.arena<bytes = 4160, resident = 1088, live = 4160, limit = 100000>
  module @a attributes {baechi.device = "a"} {
    // CHECK: func.func @step(%{{.*}}: tensor<256xf32> {baechi.argument = 0 : i64, baechi.offset = 0 : i64},
    // CHECK-SAME: %{{.*}}: tensor<10xf32> {baechi.argument = 1 : i64, baechi.offset = 1024 : i64})
    func.func @step(%x: tensor<256xf32> {baechi.argument = 0 : i64}, %y: tensor<10xf32> {baechi.argument = 1 : i64}) -> (tensor<256xf32> {baechi.result = 0 : i64}) {
      // CHECK: arith.addf {{.*}} {baechi.offset = array<i64: [[A:[0-9]+]]>}
      %0 = arith.addf %x, %x : tensor<256xf32>
      // CHECK: arith.mulf {{.*}} {baechi.offset = array<i64: [[B:[0-9]+]]>}
      %1 = arith.mulf %0, %0 : tensor<256xf32>
      // The result takes what %0 held; behind it lies 1000 bytes of scratch.
      // CHECK: arith.subf {{.*}}baechi.offset = array<i64: [[A]], {{[0-9]+}}>
      %2 = arith.subf %1, %1 {baechi.cost = #baechi.cost<time_ns = {host = 1}, scratch = 1000>} : tensor<256xf32>
      return %2 : tensor<256xf32>
    }
  }
}

// -----

#one = #baechi.machine<devices = [<"a", kind = "host", memory = 100000>], link_model = parallel>

// A kernel that may write into an operand's buffer does so when nothing reads
// the operand afterwards: here the parameter's update.
// CHECK-LABEL: module @in_place
module @in_place attributes {baechi.machine = #one} {
  func.func private @step(tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  // CHECK: #baechi.arena<bytes = 128, resident = 128, live = 128
  module @a attributes {baechi.device = "a"} {
    func.func private @update(tensor<16xf32>, tensor<16xf32>) -> (tensor<16xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel}
    func.func @step(%w: tensor<16xf32> {baechi.argument = 0 : i64, baechi.updated_by = 0 : i64}, %g: tensor<16xf32> {baechi.argument = 1 : i64}) -> (tensor<16xf32> {baechi.result = 0 : i64}) {
      // CHECK: call @update{{.*}}baechi.offset = array<i64: 0>
      // CHECK-NOT: baechi.copy
      // CHECK: return
      %0 = func.call @update(%w, %g) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
      return %0 : tensor<16xf32>
    }
  }
}

// -----

#one = #baechi.machine<devices = [<"a", kind = "host", memory = 100000>], link_model = parallel>

// The parameter is read after its next value was computed: a buffer of its
// own, and a copy at the end.
// CHECK-LABEL: module @copied
module @copied attributes {baechi.machine = #one} {
  func.func private @step(tensor<16xf32>, tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>)
  module @a attributes {baechi.device = "a"} {
    func.func private @update(tensor<16xf32>, tensor<16xf32>) -> (tensor<16xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel}
    // CHECK: func.func @step(%[[W:.*]]: tensor<16xf32> {{.*}}, %{{.*}}: tensor<16xf32>
    func.func @step(%w: tensor<16xf32> {baechi.argument = 0 : i64, baechi.updated_by = 0 : i64}, %g: tensor<16xf32> {baechi.argument = 1 : i64}) -> (tensor<16xf32> {baechi.result = 0 : i64}, tensor<16xf32> {baechi.result = 1 : i64}) {
      // CHECK: %[[NEXT:.*]] = call @update{{.*}}baechi.offset = array<i64: 128>
      %0 = func.call @update(%w, %g) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
      // CHECK: arith.addf {{.*}}baechi.offset = array<i64: 192>
      %1 = arith.addf %w, %0 : tensor<16xf32>
      // CHECK-NEXT: baechi.copy %[[NEXT]] into %[[W]] : tensor<16xf32>
      // CHECK-NEXT: return
      return %0, %1 : tensor<16xf32>, tensor<16xf32>
    }
  }
}

// -----

#one = #baechi.machine<devices = [<"a", kind = "host", memory = 100000>], link_model = parallel>

// In place of a temporary, too; never where the operand is read as another one.
// CHECK-LABEL: module @temporaries
module @temporaries attributes {baechi.machine = #one} {
  func.func private @step(tensor<16xf32>) -> tensor<16xf32>
  module @a attributes {baechi.device = "a"} {
    func.func private @relu(tensor<16xf32>) -> (tensor<16xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel}
    func.func private @add(tensor<16xf32>, tensor<16xf32>) -> (tensor<16xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel}
    func.func @step(%x: tensor<16xf32> {baechi.argument = 0 : i64}) -> (tensor<16xf32> {baechi.result = 0 : i64}) {
      // The argument is no temporary.
      // CHECK: call @relu{{.*}}baechi.offset = array<i64: [[A:64]]>
      %0 = func.call @relu(%x) : (tensor<16xf32>) -> tensor<16xf32>
      // CHECK: call @relu{{.*}}baechi.offset = array<i64: [[A]]>
      %1 = func.call @relu(%0) : (tensor<16xf32>) -> tensor<16xf32>
      // CHECK: call @add{{.*}}baechi.offset = array<i64: 128>
      %2 = func.call @add(%1, %1) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
      return %2 : tensor<16xf32>
    }
  }
}

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 100000>, <"b", kind = "host", memory = 100000>], link_model = parallel>

// The sent buffer is free once the transfer is planned to have ended; whoever
// reuses it waits for the send first. The other send is awaited at the end.
// CHECK-LABEL: module @sends
module @sends attributes {baechi.machine = #two} {
  func.func private @step(tensor<16xf32>) -> tensor<16xf32>
  module @a attributes {baechi.device = "a"} {
    func.func @step(%x: tensor<16xf32> {baechi.argument = 0 : i64}) -> (tensor<16xf32> {baechi.result = 0 : i64}) {
      // CHECK: arith.addf {{.*}}baechi.offset = array<i64: [[A:[0-9]+]]>
      %0 = arith.addf %x, %x {baechi.start = 0 : i64} : tensor<16xf32>
      // CHECK-NEXT: %[[T0:.*]] = baechi.send
      %t0 = baechi.send %0 to "b" queue 0 seq 0 start 10 end 20 : tensor<16xf32>
      // CHECK-NEXT: arith.mulf {{.*}}baechi.offset = array<i64: [[B:[0-9]+]]>
      %1 = arith.mulf %x, %x {baechi.start = 10 : i64} : tensor<16xf32>
      // CHECK-NEXT: %[[T1:.*]] = baechi.send
      %t1 = baechi.send %1 to "b" queue 0 seq 1 start 20 end 30 : tensor<16xf32>
      // CHECK-NEXT: baechi.await %[[T0]]
      // CHECK-NEXT: arith.subf {{.*}}baechi.offset = array<i64: [[A]]>
      %2 = arith.subf %x, %x {baechi.start = 20 : i64} : tensor<16xf32>
      // CHECK-NEXT: baechi.await %[[T1]]
      // CHECK-NEXT: return
      baechi.await %t0 : !baechi.token
      baechi.await %t1 : !baechi.token
      return %2 : tensor<16xf32>
    }
  }
  // A buffer is held from the moment it is posted, here twice at once.
  // CHECK: module @b attributes {baechi.arena = #baechi.arena<bytes = 128, resident = 0, live = 128
  module @b attributes {baechi.device = "b"} {
    func.func @step() {
      // CHECK: baechi.recv {{.*}}seq 0 {{.*}}baechi.offset = array<i64: [[A:[0-9]+]]>
      %0 = baechi.recv from "a" queue 0 seq 0 start 10 end 20 : !baechi.future<tensor<16xf32>>
      // CHECK: baechi.recv {{.*}}seq 1 {{.*}}baechi.offset = array<i64: [[B:[0-9]+]]>
      %1 = baechi.recv from "a" queue 0 seq 1 start 20 end 30 : !baechi.future<tensor<16xf32>>
      %2 = baechi.await %0 : !baechi.future<tensor<16xf32>>
      %3 = baechi.await %1 : !baechi.future<tensor<16xf32>>
      return
    }
  }
}

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 100000>, <"b", kind = "host", memory = 100000>], link_model = parallel>

// What nobody awaits may arrive at any time: its buffer is never reused.
// CHECK-LABEL: module @never_awaited
module @never_awaited attributes {baechi.machine = #two} {
  func.func private @step(tensor<16xf32>) -> tensor<16xf32>
  module @a attributes {baechi.device = "a"} {
    func.func @step(%x: tensor<16xf32> {baechi.argument = 0 : i64}) {
      %t0 = baechi.send %x to "b" queue 0 seq 0 : tensor<16xf32>
      return
    }
  }
  // CHECK-LABEL: module @b
  module @b attributes {baechi.device = "b"} {
    func.func @step(%x: tensor<16xf32> {baechi.argument = 1 : i64}) -> (tensor<16xf32> {baechi.result = 0 : i64}) {
      // CHECK: baechi.recv {{.*}}baechi.offset = array<i64: 64>
      // CHECK: arith.addf {{.*}}baechi.offset = array<i64: 128>
      %0 = baechi.recv from "a" queue 0 seq 0 : !baechi.future<tensor<16xf32>>
      %1 = arith.addf %x, %x : tensor<16xf32>
      return %1 : tensor<16xf32>
    }
  }
}
