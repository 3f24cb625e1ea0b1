// RUN: baechi-opt %s --split-input-file --baechi-export-mpmd | FileCheck %s --implicit-check-not=baechi.

#m = #baechi.machine<devices = [<"a", kind = "host", memory = 1024>, <"b", kind = "host", memory = 1024>, <"c d", kind = "host", memory = 1024>], link_model = sequential>

// Fragments stand in the order of their starts, and a value is moved once to
// each device, from where the plan has it by then.
// CHECK-LABEL: func.func @order(
// CHECK-SAME: %[[X:.*]]: !mpmd.mesh_tensor<"a", tensor<4xf32>>, %[[Y:.*]]: !mpmd.mesh_tensor<"b", tensor<4xf32>>)
// CHECK-SAME: -> (!mpmd.mesh_tensor<"b", tensor<4xf32>>, !mpmd.mesh_tensor<"c d", tensor<4xf32>>)
// CHECK-SAME: topology = #mpmd.topology<<"a" : <["x"=1]>>, <"b" : <["x"=1]>>, <"c d" : <["x"=1]>>>
// CHECK-NEXT: %[[L:.*]] = "mpmd.fragment"(%[[Y]]) <{mesh_name = "b", origin = [#mpmd.user_origin<"late">]}> ({
// CHECK: %[[E:.*]] = "mpmd.fragment"(%[[X]]) <{mesh_name = "a", origin = [#mpmd.user_origin<"exp">]}> ({
// CHECK-NEXT: ^bb0(%[[IN:.*]]: tensor<4xf32>):
// CHECK-NEXT: %[[R:.*]] = math.exp %[[IN]] : tensor<4xf32>
// CHECK-NEXT: "mpmd.return"(%[[R]])
// CHECK: %[[EB:.*]] = "mpmd.transfer"(%[[E]]) : (!mpmd.mesh_tensor<"a", tensor<4xf32>>) -> !mpmd.mesh_tensor<"b", tensor<4xf32>>
// CHECK-NEXT: %[[S:.*]] = "mpmd.fragment"(%[[L]], %[[EB]]) <{mesh_name = "b", origin = [#mpmd.user_origin<"sum">]}>
// CHECK: arith.addf
// CHECK: %[[EC:.*]] = "mpmd.transfer"(%[[EB]]) : (!mpmd.mesh_tensor<"b", tensor<4xf32>>) -> !mpmd.mesh_tensor<"c d", tensor<4xf32>>
// CHECK-NEXT: %[[T:.*]] = "mpmd.fragment"(%[[EC]]) <{mesh_name = "c d", origin = [#mpmd.user_origin<"twice">]}>
// CHECK-NOT: mpmd.transfer
// CHECK: return %[[S]], %[[T]]
module attributes {baechi.machine = #m} {
  func.func @order(%x: tensor<4xf32> {baechi.device = "a"}, %y: tensor<4xf32> {baechi.device = "b"}) -> (tensor<4xf32>, tensor<4xf32>) {
    %e = math.exp %x {baechi.name = "exp", baechi.device = "a", baechi.start = 10 : i64, baechi.sends = [#baechi.transfer<result = 0, from = "a", to = "b", start = 11, end = 12>, #baechi.transfer<result = 0, from = "b", to = "c d", start = 12, end = 13>]} : tensor<4xf32>
    %l = math.log %y {baechi.name = "late", baechi.device = "b", baechi.start = 0 : i64} : tensor<4xf32>
    %s = arith.addf %l, %e {baechi.name = "sum", baechi.device = "b", baechi.start = 12 : i64} : tensor<4xf32>
    %t = arith.addf %e, %e {baechi.name = "twice", baechi.device = "c d", baechi.start = 13 : i64} : tensor<4xf32>
    return %s, %t : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

#m = #baechi.machine<devices = [<"a", kind = "host", memory = 1024>, <"b", kind = "host", memory = 1024>], link_model = sequential>

// Constants and views are made in each fragment that reads them, what they are
// views of is moved; kernels stay, and what lies in regions is read from the
// fragment's arguments. A result in place of an argument is its alias.
// CHECK-LABEL: func.func @inside(
// CHECK-SAME: !mpmd.mesh_tensor<"a", tensor<2x3xf32>> {tf.aliasing_output = 1 : i32}
// CHECK: %[[MOVED:.*]] = "mpmd.transfer"(%arg0) : {{.*}} -> !mpmd.mesh_tensor<"b", tensor<2x3xf32>>
// CHECK: "mpmd.fragment"(%[[MOVED]])
// CHECK-NEXT: ^bb0(%[[IN:.*]]: tensor<2x3xf32>):
// CHECK-NEXT: %[[FLAT:.*]] = tensor.collapse_shape %[[IN]]
// CHECK-NEXT: %[[C:.*]] = arith.constant dense<1.000000e+00> : tensor<6xf32>
// CHECK-NEXT: %[[K:.*]] = func.call @kernel(%[[FLAT]], %[[C]])
// CHECK: "mpmd.fragment"(%arg0)
// CHECK-NEXT: ^bb0(%[[IN2:.*]]: tensor<2x3xf32>):
// CHECK-NEXT: %[[G:.*]] = tensor.generate
// CHECK: tensor.extract %[[IN2]]
// CHECK: "mpmd.fragment"(%arg0) <{mesh_name = "a", origin = [#mpmd.user_origin<"result2">]}>
// CHECK: tensor.collapse_shape
// CHECK: "mpmd.fragment"() <{mesh_name = "a", origin = [#mpmd.user_origin<"result3">]}>
// CHECK: arith.constant
// CHECK: func.func private @kernel
module attributes {baechi.machine = #m} {
  func.func @inside(%x: tensor<2x3xf32> {baechi.device = "a", baechi.updated_by = 1 : i64}) -> (tensor<6xf32>, tensor<2x3xf32>, tensor<6xf32>, tensor<6xf32>) {
    %c = arith.constant dense<1.0> : tensor<6xf32>
    %flat = tensor.collapse_shape %x [[0, 1]] : tensor<2x3xf32> into tensor<6xf32>
    %k = call @kernel(%flat, %c) {baechi.device = "b", baechi.start = 0 : i64} : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    %g = tensor.generate {
    ^bb0(%i: index, %j: index):
      %e = tensor.extract %x[%i, %j] : tensor<2x3xf32>
      tensor.yield %e : f32
    } {baechi.device = "a", baechi.start = 1 : i64} : tensor<2x3xf32>
    return %k, %g, %flat, %c : tensor<6xf32>, tensor<2x3xf32>, tensor<6xf32>, tensor<6xf32>
  }
  func.func private @kernel(%a: tensor<6xf32>, %b: tensor<6xf32>) -> tensor<6xf32> attributes {baechi.kernel} {
    %r = arith.addf %a, %b : tensor<6xf32>
    return %r : tensor<6xf32>
  }
}
