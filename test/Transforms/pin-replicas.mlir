// RUN: baechi-opt %s --split-input-file --verify-diagnostics --baechi-pin-replicas | FileCheck %s

// The largest first, a weight with its moment, to the device that owns least;
// what is pinned stays, and counts. Three replicas share two devices.

#machine = #baechi.machine<devices = [<"a", kind = "host", memory = 100000>, <"p", kind = "pool", memory = 100000>, <"b", kind = "host", memory = 100000>], link_model = parallel>
module attributes {baechi.machine = #machine} {
  func.func private @one(tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel}
  func.func private @join(tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel}
  func.func private @update(tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) attributes {baechi.kernel}
  func.func private @small(tensor<16xf32>) -> tensor<16xf32> attributes {baechi.kernel}

  // CHECK-LABEL: func.func @step(
  // CHECK-SAME: %arg0: tensor<64xf32> {baechi.pin = "b", baechi.updated_by = 0 : i64}
  // CHECK-SAME: %arg1: tensor<64xf32> {baechi.pin = "b", baechi.updated_by = 1 : i64}
  // CHECK-SAME: %arg2: tensor<16xf32> {baechi.pin = "a", baechi.updated_by = 2 : i64}
  // CHECK-SAME: %arg3: tensor<16xf32> {baechi.pin = "a", baechi.updated_by = 3 : i64}
  // CHECK: call @one({{.*}}) {baechi.pin = "a", baechi.replica = 0 : i64}
  // CHECK: call @one({{.*}}) {baechi.pin = "a", baechi.replica = 1 : i64}
  // CHECK: call @one({{.*}}) {baechi.pin = "b", baechi.replica = 2 : i64}
  // CHECK: call @join({{.*}}) {baechi.pin = "b"}
  // CHECK: call @join({{.*}}) {baechi.pin = "b"}
  // CHECK: call @update({{.*}}) {baechi.pin = "b"}
  // CHECK: call @small({{.*}}) {baechi.pin = "a"}
  // CHECK: call @small({{.*}}) {baechi.pin = "a"}
  func.func @step(%w: tensor<64xf32> {baechi.updated_by = 0 : i64}, %m: tensor<64xf32> {baechi.updated_by = 1 : i64},
                  %v: tensor<16xf32> {baechi.updated_by = 2 : i64}, %u: tensor<16xf32> {baechi.updated_by = 3 : i64, baechi.pin = "a"})
      -> (tensor<64xf32>, tensor<64xf32>, tensor<16xf32>, tensor<16xf32>) attributes {baechi.replicas = 3 : i64} {
    %0 = call @one(%w) {baechi.replica = 0 : i64} : (tensor<64xf32>) -> tensor<64xf32>
    %1 = call @one(%w) {baechi.replica = 1 : i64} : (tensor<64xf32>) -> tensor<64xf32>
    %2 = call @one(%w) {baechi.replica = 2 : i64} : (tensor<64xf32>) -> tensor<64xf32>
    %3 = call @join(%0, %1) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %4 = call @join(%3, %2) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %5:2 = call @update(%4, %w, %m) : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>)
    %6 = call @small(%v) : (tensor<16xf32>) -> tensor<16xf32>
    %7 = call @small(%u) : (tensor<16xf32>) -> tensor<16xf32>
    return %5#0, %5#1, %6, %7 : tensor<64xf32>, tensor<64xf32>, tensor<16xf32>, tensor<16xf32>
  }
}

// -----

#machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>, <"c", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #machine} {
  // expected-error@below {{the step has 2 replicas, and the machine 3 devices: give as many replicas as devices, or a multiple}}
  func.func @step(%x: tensor<4xf32> {baechi.batched}) -> tensor<4xf32> attributes {baechi.replicas = 2 : i64} {
    return %x : tensor<4xf32>
  }
}
