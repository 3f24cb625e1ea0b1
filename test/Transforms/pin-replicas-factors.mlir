// RUN: baechi-opt %s --split-input-file --baechi-pin-replicas=factors --remarks-filter=baechi-pin-replicas 2>&1 | FileCheck %s
// RUN: baechi-opt %s --split-input-file --baechi-pin-replicas | FileCheck %s --check-prefix=NONE

// The gradient of w is 16 times its factors: each replica's is computed by the
// owner, a. What all of a product's factors are is sent, as that of replica 1;
// replica 0 has them there. The gradient of v is as large as its factors, and
// that of u is a result, too.

#machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000000>, <"b", kind = "host", memory = 1000000>], link_model = parallel>
module attributes {baechi.machine = #machine} {
  func.func private @outer(tensor<64xf32>, tensor<64xf32>) -> tensor<64x64xf32> attributes {baechi.kernel}
  func.func private @twice(tensor<64x64xf32>) -> tensor<64x64xf32> attributes {baechi.kernel}
  func.func private @own(tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel}
  func.func private @update(tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> attributes {baechi.kernel}

  // CHECK: remark: [Passed] factors-sent | Category:baechi-pin-replicas{{.*}}Factors=512, Product=16384
  // CHECK-NOT: remark
  // CHECK-LABEL: func.func @step(
  // CHECK: call @outer({{.*}}) {baechi.pin = "a", baechi.replica = 0 : i64}
  // CHECK: call @outer({{.*}}) {baechi.pin = "a", baechi.replica = 1 : i64}
  // CHECK: call @update({{.*}}) {baechi.pin = "a"}
  // CHECK-COUNT-2: call @twice({{.*}}) {baechi.pin = "{{a|b}}", baechi.replica = {{0|1}} : i64}
  // CHECK: call @twice({{.*}}) {baechi.pin = "a", baechi.replica = 0 : i64}
  // CHECK: call @twice({{.*}}) {baechi.pin = "b", baechi.replica = 1 : i64}
  // CHECK: call @update({{.*}}) {baechi.pin = "b"}
  // CHECK: call @outer({{.*}}) {baechi.pin = "b", baechi.replica = 1 : i64}
  // NONE: call @outer({{.*}}) {baechi.pin = "a", baechi.replica = 0 : i64}
  // NONE: call @outer({{.*}}) {baechi.pin = "b", baechi.replica = 1 : i64}
  func.func @step(%w: tensor<64x64xf32> {baechi.updated_by = 0 : i64}, %v: tensor<64x64xf32> {baechi.updated_by = 1 : i64}, %u: tensor<64x64xf32> {baechi.updated_by = 3 : i64},
                  %x: tensor<64xf32>, %y: tensor<64xf32>, %z: tensor<64x64xf32>)
      -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) attributes {baechi.replicas = 2 : i64} {
    %x0 = call @own(%x) {baechi.replica = 0 : i64} : (tensor<64xf32>) -> tensor<64xf32>
    %y0 = call @own(%y) {baechi.replica = 0 : i64} : (tensor<64xf32>) -> tensor<64xf32>
    %x1 = call @own(%x) {baechi.replica = 1 : i64} : (tensor<64xf32>) -> tensor<64xf32>
    %y1 = call @own(%y) {baechi.replica = 1 : i64} : (tensor<64xf32>) -> tensor<64xf32>
    %g0 = call @outer(%x0, %y0) {baechi.replica = 0 : i64} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64x64xf32>
    %g1 = call @outer(%x1, %y1) {baechi.replica = 1 : i64} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64x64xf32>
    %0 = call @update(%w, %g0, %g1) : (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %z0 = call @twice(%z) {baechi.replica = 0 : i64} : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %z1 = call @twice(%z) {baechi.replica = 1 : i64} : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %t0 = call @twice(%z0) {baechi.replica = 0 : i64} : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %t1 = call @twice(%z1) {baechi.replica = 1 : i64} : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %1 = call @update(%v, %t0, %t1) : (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %h1 = call @outer(%y1, %x1) {baechi.replica = 1 : i64} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64x64xf32>
    %2 = call @update(%u, %h1, %h1) : (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    return %0, %1, %h1, %2 : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
  }
}
