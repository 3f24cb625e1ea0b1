// RUN: baechi-opt %s --split-input-file --baechi-partition --baechi-verify-partitioned | FileCheck %s
// RUN: baechi-opt %s --split-input-file --baechi-partition=copied-from=a --baechi-verify-partitioned | FileCheck %s --check-prefix=COPIED
// RUN: baechi-opt %s --split-input-file --baechi-partition --baechi-plan-memory --baechi-verify-partitioned | FileCheck %s --check-prefix=PLAN
// Devices of one GPU share a memory, too; what it lets go of rests where there
// is room.
// RUN: sed -e 's/"host"/"cuda"/g; s/{host = /{cuda = /g; 1,/^#two/s/memory = 1000/memory = 256/; 1,/^#two/s/memory = 1000/memory = 128/' %s | baechi-opt --split-input-file --baechi-partition --baechi-plan-memory --baechi-verify-partitioned | FileCheck %s --check-prefix=PLAN

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_default = <"" -> "", latency_ns = 1, bytes_per_us = 1000, lends>, link_model = parallel>

// The receiver reads the sender's tensor, through a view too, and gives it back
// after the last operator that does. The sender's buffer is free for the first
// operator that is planned after that and comes later in the global order, even
// though it would be free for the one before if the tensor were copied.
module @lends attributes {baechi.machine = #two} {
  func.func @step(%x: tensor<2x8xf32> {baechi.device = "a"}) -> (tensor<2x8xf32>, tensor<16xf32>) {
    %0 = math.exp %x {baechi.device = "a", baechi.start = 0 : i64, baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>, baechi.sends = [#baechi.transfer<result = 0, from = "a", to = "b", start = 10, end = 11>]} : tensor<2x8xf32>
    %v = tensor.collapse_shape %0 [[0, 1]] : tensor<2x8xf32> into tensor<16xf32>
    %1 = math.log %v {baechi.device = "b", baechi.start = 11 : i64, baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : tensor<16xf32>
    %2 = arith.addf %1, %v {baechi.device = "b", baechi.start = 21 : i64, baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : tensor<16xf32>
    %3 = math.sin %2 {baechi.device = "b", baechi.start = 31 : i64, baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : tensor<16xf32>
    %4 = math.cos %x {baechi.device = "a", baechi.start = 10 : i64, baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : tensor<2x8xf32>
    %5 = math.sin %4 {baechi.device = "a", baechi.start = 20 : i64, baechi.cost = #baechi.cost<time_ns = {host = 15}, scratch = 0>} : tensor<2x8xf32>
    %6 = math.tanh %5 {baechi.device = "a", baechi.start = 35 : i64, baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : tensor<2x8xf32>
    return %6, %3 : tensor<2x8xf32>, tensor<16xf32>
  }
}
// CHECK-LABEL: module @lends
// CHECK: module @a
// CHECK:   %[[E:.*]] = math.exp
// CHECK:   baechi.send %[[E]] to "b" queue 0 seq 0 lent start 10 end 31
// CHECK: module @b
// CHECK:   %[[F:.*]] = baechi.recv from "a" queue 0 seq 0 lent start 10 end 31
// CHECK-NEXT: %[[X:.*]] = baechi.await %[[F]]
// CHECK-NEXT: tensor.collapse_shape %[[X]]
// CHECK-NEXT: math.log
// CHECK-NEXT: arith.addf
// CHECK-NEXT: baechi.give_back %[[F]] : !baechi.future<tensor<2x8xf32>>
// CHECK-NEXT: math.sin

// COPIED-LABEL: module @lends
// COPIED-NOT: lent
// COPIED-NOT: give_back

// The borrower has no buffer for it; the lender's is taken by tanh's result,
// which is planned after 31, once it was given back.
// PLAN-LABEL: module @lends
// PLAN: module @a
// PLAN: math.exp {{.*}}baechi.offset = array<i64: 64>
// PLAN: %[[T:.*]] = baechi.send
// PLAN: math.sin {{.*}}baechi.offset = array<i64: 192>
// PLAN-NEXT: baechi.await %[[T]]
// PLAN-NEXT: math.tanh {{.*}}baechi.offset = array<i64: 64>
// PLAN: module @b attributes {baechi.arena = #baechi.arena<bytes = 128, resident = 0
// PLAN: baechi.recv from "a" queue 0 seq 0 lent start 10 end 31 : !baechi.future

// -----

#three = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>, <"c", kind = "host", memory = 1000>], links = [<"a" -> "b", latency_ns = 1, bytes_per_us = 1000, lends>, <"b" -> "c", latency_ns = 1, bytes_per_us = 1000, lends>], link_model = parallel>

// What is passed on is copied: the sender would not know when the last device
// gives it back.
module @passed_on attributes {baechi.machine = #three} {
  func.func @step(%x: tensor<4xf32> {baechi.device = "a", baechi.sends = [#baechi.transfer<result = 0, from = "a", to = "b", start = 0, end = 1>, #baechi.transfer<result = 0, from = "b", to = "c", start = 1, end = 2>]}) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = math.exp %x {baechi.device = "b", baechi.start = 1 : i64} : tensor<4xf32>
    %1 = math.log %x {baechi.device = "c", baechi.start = 2 : i64} : tensor<4xf32>
    return %0, %1 : tensor<4xf32>, tensor<4xf32>
  }
}
// CHECK-LABEL: module @passed_on
// CHECK-NOT: baechi.send {{.*}} lent
// CHECK-LABEL: module @update

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_default = <"" -> "", latency_ns = 1, bytes_per_us = 1000, lends>, link_model = parallel>

// An argument that is updated in place waits for who has borrowed its value.
module @update attributes {baechi.machine = #two} {
  func.func private @half(%x: tensor<16xf32>) -> (tensor<16xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel} {
    return %x : tensor<16xf32>
  }
  func.func @step(%w: tensor<16xf32> {baechi.device = "a", baechi.updated_by = 0 : i64, baechi.sends = [#baechi.transfer<result = 0, from = "a", to = "b", start = 0, end = 1>]}) -> (tensor<16xf32>, tensor<16xf32>) {
    %0 = math.exp %w {baechi.device = "b", baechi.start = 1 : i64, baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : tensor<16xf32>
    %1 = call @half(%w) {baechi.device = "a", baechi.start = 11 : i64, baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : (tensor<16xf32>) -> tensor<16xf32>
    return %1, %0 : tensor<16xf32>, tensor<16xf32>
  }
}
// PLAN-LABEL: module @update
// PLAN: module @a
// PLAN: %[[T:.*]] = baechi.send %{{.*}} lent
// PLAN-NEXT: baechi.await %[[T]]
// PLAN-NEXT: call @half{{.*}}baechi.offset = array<i64: 0>

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_default = <"" -> "", latency_ns = 1, bytes_per_us = 1000, lends>, link_model = parallel>

// What the last that reads it there makes a changed version of is copied, as
// two devices change what each has from the other: on loan it would be copied,
// too, while its sender waits. What is read beside it is lent.
module @changed attributes {baechi.machine = #two} {
  func.func private @put(%x: tensor<16xf32>, %row: tensor<4xf32>) -> (tensor<16xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel} {
    %0 = tensor.insert_slice %row into %x[4] [4] [1] : tensor<4xf32> into tensor<16xf32>
    return %0 : tensor<16xf32>
  }
  func.func @step(%x: tensor<16xf32> {baechi.device = "a"}, %y: tensor<16xf32> {baechi.device = "b"}, %row: tensor<4xf32> {baechi.device = "a"}) -> (tensor<16xf32>, tensor<16xf32>) {
    %r = math.exp %row {baechi.device = "a", baechi.start = 0 : i64, baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>, baechi.sends = [#baechi.transfer<result = 0, from = "a", to = "b", start = 10, end = 11>]} : tensor<4xf32>
    %0 = call @put(%x, %r) {baechi.device = "a", baechi.start = 10 : i64, baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>, baechi.sends = [#baechi.transfer<result = 0, from = "a", to = "b", start = 20, end = 21>]} : (tensor<16xf32>, tensor<4xf32>) -> tensor<16xf32>
    %1 = call @put(%y, %r) {baechi.device = "b", baechi.start = 11 : i64, baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>, baechi.sends = [#baechi.transfer<result = 0, from = "b", to = "a", start = 21, end = 22>]} : (tensor<16xf32>, tensor<4xf32>) -> tensor<16xf32>
    %2 = call @put(%1, %r) {baechi.device = "a", baechi.start = 22 : i64, baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : (tensor<16xf32>, tensor<4xf32>) -> tensor<16xf32>
    %3 = call @put(%0, %r) {baechi.device = "b", baechi.start = 21 : i64, baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : (tensor<16xf32>, tensor<4xf32>) -> tensor<16xf32>
    return %2, %3 : tensor<16xf32>, tensor<16xf32>
  }
}
// CHECK-LABEL: module @changed
// CHECK: module @a
// CHECK:   baechi.send %{{.*}} to "b" queue 0 seq 0 lent start 10 end 31
// CHECK:   baechi.send %{{.*}} to "b" queue 0 seq 1 start 20 end 21 {{.*}} : tensor<16xf32>
// CHECK:   baechi.recv from "b" queue 1 seq 0 start 21 end 22 {{.*}} : !baechi.future<tensor<16xf32>>
// CHECK: module @b

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_default = <"" -> "", latency_ns = 1, bytes_per_us = 1000, lends>, link_model = parallel>

// Read once more after that: a copy of the receiver's would be made anyway.
module @read_later attributes {baechi.machine = #two} {
  func.func private @put(%x: tensor<16xf32>, %row: tensor<4xf32>) -> (tensor<16xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel} {
    %0 = tensor.insert_slice %row into %x[4] [4] [1] : tensor<4xf32> into tensor<16xf32>
    return %0 : tensor<16xf32>
  }
  func.func @step(%x: tensor<16xf32> {baechi.device = "a"}, %row: tensor<4xf32> {baechi.device = "b"}) -> (tensor<16xf32>, tensor<16xf32>) {
    %0 = math.exp %x {baechi.device = "a", baechi.start = 0 : i64, baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>, baechi.sends = [#baechi.transfer<result = 0, from = "a", to = "b", start = 10, end = 11>]} : tensor<16xf32>
    %1 = call @put(%0, %row) {baechi.device = "b", baechi.start = 11 : i64, baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : (tensor<16xf32>, tensor<4xf32>) -> tensor<16xf32>
    %2 = math.sin %0 {baechi.device = "b", baechi.start = 21 : i64, baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : tensor<16xf32>
    return %1, %2 : tensor<16xf32>, tensor<16xf32>
  }
}
// CHECK-LABEL: module @read_later
// CHECK: baechi.send %{{.*}} to "b" queue 0 seq 0 lent
