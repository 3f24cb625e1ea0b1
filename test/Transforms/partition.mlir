// RUN: baechi-opt %s --split-input-file --allow-unregistered-dialect --baechi-partition --baechi-verify-partitioned | FileCheck %s

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_default = <"" -> "", latency_ns = 1, bytes_per_us = 1000>, link_model = parallel>

// A tensor goes once to a device and is reused there; what it is computed from
// stays. The kernel is defined once outside and declared where it is called.
module @reuse attributes {baechi.machine = #two} {
  func.func private @kernel(%x: tensor<4xf32>) -> tensor<4xf32> attributes {baechi.kernel} {
    return %x : tensor<4xf32>
  }
  func.func @step(%x: tensor<4xf32> {baechi.device = "a", baechi.name = "x"}) -> (tensor<4xf32> {baechi.name = "y"}, tensor<4xf32>) {
    %0 = call @kernel(%x) {baechi.device = "a", baechi.start = 0 : i64, baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>, baechi.sends = [#baechi.transfer<result = 0, from = "a", to = "b", start = 10, end = 20>]} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = call @kernel(%0) {baechi.device = "b", baechi.start = 20 : i64, baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : (tensor<4xf32>) -> tensor<4xf32>
    %2 = arith.addf %0, %1 {baechi.device = "b", baechi.start = 30 : i64, baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : tensor<4xf32>
    %3 = arith.mulf %0, %x {baechi.device = "a", baechi.start = 10 : i64, baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : tensor<4xf32>
    return %3, %2 : tensor<4xf32>, tensor<4xf32>
  }
}
// What is left of the step is where its arguments and results live.
// CHECK-LABEL: module @reuse
// CHECK: func.func private @kernel(%{{.*}}: tensor<4xf32>) -> tensor<4xf32> attributes {baechi.kernel} {
// CHECK: func.func private @step(tensor<4xf32> {baechi.device = "a", baechi.name = "x"})
// CHECK-SAME: -> (tensor<4xf32> {baechi.device = "a", baechi.name = "y"}, tensor<4xf32> {baechi.device = "b"})
// CHECK: module @a attributes {baechi.device = "a"} {
// CHECK-NEXT: func.func private @kernel(tensor<4xf32>) -> tensor<4xf32> attributes {baechi.kernel}
// CHECK-NEXT: func.func @step(%[[X:.*]]: tensor<4xf32> {baechi.argument = 0 : i64, baechi.name = "x"}) -> (tensor<4xf32> {baechi.name = "y", baechi.result = 0 : i64}) {
// CHECK-NEXT:   %[[A:.*]] = call @kernel(%[[X]])
// CHECK-NEXT:   %[[T:.*]] = baechi.send %[[A]] to "b" queue 0 seq 0 start 10 end 20 {baechi.operator = 1 : i64}
// CHECK-NEXT:   %[[Y:.*]] = arith.mulf %[[A]], %[[X]]
// CHECK-NEXT:   baechi.await %[[T]]
// CHECK-NEXT:   return %[[Y]]
// CHECK: module @b attributes {baechi.device = "b"} {
// CHECK-NEXT: func.func private @kernel
// CHECK-NEXT: func.func @step() -> (tensor<4xf32> {baechi.result = 1 : i64}) {
// CHECK-NEXT:   %[[F:.*]] = baechi.recv from "a" queue 0 seq 0 start 10 end 20
// CHECK-NEXT:   %[[R:.*]] = baechi.await %[[F]]
// CHECK-NEXT:   %[[B:.*]] = call @kernel(%[[R]])
// CHECK-NEXT:   %[[S:.*]] = arith.addf %[[R]], %[[B]]
// CHECK-NEXT:   return %[[S]]

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_default = <"" -> "", latency_ns = 1, bytes_per_us = 1000>, link_model = parallel>

// Constants are made on every device that reads them; views are repeated on
// the receiver, it is the tensor behind them that moves. The parameter's next
// value is a result of its own device.
module @copies_of_views attributes {baechi.machine = #two} {
  func.func @step(%w: tensor<2x2xf32> {baechi.device = "b", baechi.updated_by = 1 : i64}, %x: tensor<2x2xf32> {baechi.device = "a", baechi.sends = [#baechi.transfer<result = 0, from = "a", to = "b", start = 0, end = 10>]}) -> (tensor<4xf32>, tensor<2x2xf32>) {
    %c = arith.constant dense<2.0> : tensor<4xf32>
    %v = tensor.collapse_shape %x [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>
    %0 = arith.addf %v, %c {baechi.device = "a", baechi.start = 5 : i64} : tensor<4xf32>
    %1 = arith.mulf %v, %c {baechi.device = "b", baechi.start = 10 : i64} : tensor<4xf32>
    %2 = tensor.expand_shape %1 [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>
    %3 = arith.subf %w, %2 {baechi.device = "b", baechi.start = 20 : i64} : tensor<2x2xf32>
    return %0, %3 : tensor<4xf32>, tensor<2x2xf32>
  }
}
// CHECK-LABEL: module @copies_of_views
// CHECK: module @a
// CHECK: func.func @step(%[[X:.*]]: tensor<2x2xf32> {baechi.argument = 1 : i64}) -> (tensor<4xf32> {baechi.result = 0 : i64}) {
// CHECK-NEXT: baechi.send %[[X]] to "b" {{.*}} : tensor<2x2xf32>
// CHECK-NEXT: %[[V:.*]] = tensor.collapse_shape %[[X]]
// CHECK-NEXT: %[[C:.*]] = arith.constant
// CHECK-NEXT: arith.addf %[[V]], %[[C]]
// CHECK: module @b
// CHECK: func.func @step(%[[W:.*]]: tensor<2x2xf32> {baechi.argument = 0 : i64, baechi.updated_by = 0 : i64}) -> (tensor<2x2xf32> {baechi.result = 1 : i64}) {
// CHECK: %[[R:.*]] = baechi.await
// CHECK: %[[V:.*]] = tensor.collapse_shape %[[R]]
// CHECK: %[[C:.*]] = arith.constant
// CHECK: %[[M:.*]] = arith.mulf %[[V]], %[[C]]
// CHECK: %[[E:.*]] = tensor.expand_shape %[[M]]
// CHECK: arith.subf %[[W]], %[[E]]

// -----

#three = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>, <"c", kind = "host", memory = 1000>],
  links = [<"a" -> "b", latency_ns = 1, bytes_per_us = 1000>, <"b" -> "c", latency_ns = 1, bytes_per_us = 1000>], link_model = parallel>

// A device that received a tensor may send it on.
module @forwarding attributes {baechi.machine = #three} {
  func.func @step(%x: tensor<4xf32> {baechi.device = "a", baechi.sends = [
      #baechi.transfer<result = 0, from = "a", to = "b", start = 0, end = 10>,
      #baechi.transfer<result = 0, from = "b", to = "c", start = 10, end = 20>]}) -> tensor<4xf32> {
    %0 = arith.addf %x, %x {baechi.device = "c", baechi.start = 20 : i64} : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
// CHECK-LABEL: module @forwarding
// CHECK: module @a
// CHECK: baechi.send {{.*}} to "b" queue 0 seq 0
// CHECK: module @b
// CHECK: %[[F:.*]] = baechi.recv from "a" queue 0 seq 0
// CHECK-NEXT: %[[R:.*]] = baechi.await %[[F]]
// CHECK-NEXT: %[[T:.*]] = baechi.send %[[R]] to "c" queue 1 seq 0
// CHECK-NEXT: baechi.await %[[T]]
// CHECK: module @c
// CHECK: baechi.recv from "b" queue 1 seq 0

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_default = <"" -> "", latency_ns = 1, bytes_per_us = 1000>, link_model = parallel>

// A value that only a region reads is moved like any other.
module @regions attributes {baechi.machine = #two} {
  func.func @step(%x: tensor<4xf32> {baechi.device = "a"}, %p: tensor<i1> {baechi.device = "b"}) -> tensor<4xf32> {
    %0 = arith.addf %x, %x {baechi.device = "a", baechi.start = 0 : i64, baechi.sends = [#baechi.transfer<result = 0, from = "a", to = "b", start = 10, end = 20>]} : tensor<4xf32>
    %1 = scf.execute_region -> tensor<4xf32> {
      %2 = arith.mulf %0, %0 : tensor<4xf32>
      scf.yield %2 : tensor<4xf32>
    } {baechi.device = "b", baechi.start = 0 : i64}
    return %1 : tensor<4xf32>
  }
}
// CHECK-LABEL: module @regions
// CHECK: module @b
// CHECK: %[[F:.*]] = baechi.recv
// CHECK-NEXT: %[[R:.*]] = baechi.await %[[F]]
// CHECK-NEXT: scf.execute_region
// CHECK-NEXT: arith.mulf %[[R]], %[[R]]

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_default = <"" -> "", latency_ns = 1, bytes_per_us = 1000>, link_model = parallel>

// Names are the whole program's: of two operators called "sub" the second stays
// "sub#1", on whatever device it is.
// CHECK-LABEL: module @names
module @names attributes {baechi.machine = #two} {
  // CHECK: module @a
  // CHECK: arith.subf {{.*}}baechi.name = "sub"
  // CHECK: module @b
  // CHECK: arith.subf {{.*}}baechi.name = "sub#1"
  // CHECK: arith.addf %{{[^{]*}} {baechi.cost = {{[^>]*>}}, baechi.operator = 4 : i64, baechi.start
  func.func @step(%x: tensor<4xf32> {baechi.device = "a"}, %y: tensor<4xf32> {baechi.device = "b"}) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = arith.subf %x, %x {baechi.name = "sub", baechi.device = "a", baechi.start = 0 : i64, baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : tensor<4xf32>
    %1 = arith.subf %y, %y {baechi.name = "sub", baechi.device = "b", baechi.start = 0 : i64, baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : tensor<4xf32>
    %2 = arith.addf %1, %y {baechi.device = "b", baechi.start = 10 : i64, baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : tensor<4xf32>
    return %0, %2 : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_default = <"" -> "", latency_ns = 1, bytes_per_us = 1000>, link_model = parallel>

// Where a result is follows from the program, whatever an earlier placement says.
// CHECK-LABEL: module @stale
module @stale attributes {baechi.machine = #two} {
  // CHECK: func.func private @step({{.*}}) -> (tensor<4xf32> {baechi.device = "a"}, tensor<4xf32>)
  // CHECK: module @a
  // CHECK: func.func @step({{.*}}) -> (tensor<4xf32> {baechi.result = 0 : i64}, tensor<4xf32> {baechi.result = 1 : i64})
  // CHECK: module @b
  func.func @step(%x: tensor<4xf32> {baechi.device = "a"}) -> (tensor<4xf32> {baechi.device = "b"}, tensor<4xf32> {baechi.device = "b"}) {
    %0 = arith.subf %x, %x {baechi.device = "a", baechi.start = 0 : i64, baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : tensor<4xf32>
    %1 = arith.constant dense<1.0> : tensor<4xf32>
    return %0, %1 : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_default = <"" -> "", latency_ns = 1, bytes_per_us = 1000>, link_model = parallel>

// Where the properties of an unregistered operation hold them, too.
// CHECK-LABEL: module @properties
module @properties attributes {baechi.machine = #two} {
  // CHECK: module @a
  // CHECK: "other.make"(%{{.*}}) <{kept = 1 : i64}> {{.*}}: (tensor<4xf32>) -> tensor<4xf32>
  func.func @step(%x: tensor<4xf32> {baechi.device = "a"}) -> tensor<4xf32> {
    %0 = "other.make"(%x) <{baechi.device = "a", kept = 1 : i64}> {baechi.start = 0 : i64, baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_default = <"" -> "", latency_ns = 1, bytes_per_us = 1000>, link_model = parallel>

// What a constant names goes where the constant is used.
module @named_by_a_constant attributes {baechi.machine = #two} {
  func.func private @h(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
  func.func @step(%x: tensor<4xf32> {baechi.device = "b"}) -> tensor<4xf32> {
    %f = func.constant @h : (tensor<4xf32>) -> tensor<4xf32>
    %0 = func.call_indirect %f(%x) {baechi.device = "b", baechi.start = 0 : i64, baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
// CHECK-LABEL: module @named_by_a_constant
// CHECK: module @b attributes
// CHECK-NEXT: func.func private @h(
// CHECK: func.func @step
// CHECK: constant @h

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_default = <"" -> "", latency_ns = 1, bytes_per_us = 1000>, link_model = parallel>

// A message says what it carries by numbers: which operator's, after the
// arguments, and which of its results.
// CHECK-LABEL: module @numbers
// CHECK: module @a
// CHECK: "other.two"
// CHECK-SAME: baechi.operator = 2 : i64
// CHECK: baechi.send %arg0 to "b" {{.*}} {baechi.name = "twin", baechi.operator = 0 : i64}
// CHECK: baechi.send %{{.*}}#0 to "b" {{.*}}baechi.operator = 2 : i64} :
// CHECK: baechi.send %{{.*}}#1 to "b" {{.*}}baechi.operator = 2 : i64, baechi.output = 1 : i64} :
module @numbers attributes {baechi.machine = #two} {
  func.func @step(%x: tensor<4xf32> {baechi.name = "twin", baechi.device = "a", baechi.sends = [#baechi.transfer<result = 0, from = "a", to = "b", start = 10, end = 20>]}, %y: tensor<4xf32> {baechi.name = "twin", baechi.device = "b"}) -> tensor<4xf32> {
    %0:2 = "other.two"(%x) {baechi.name = "twin", baechi.device = "a", baechi.start = 0 : i64, baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>, baechi.sends = [#baechi.transfer<result = 0, from = "a", to = "b", start = 20, end = 30>, #baechi.transfer<result = 1, from = "a", to = "b", start = 30, end = 40>]} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %1 = "other.three"(%0#0, %0#1, %x) {baechi.device = "b", baechi.start = 40 : i64, baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}
