// What the generic form of an unregistered operation writes as properties.
// RUN: baechi-opt %s --allow-unregistered-dialect --baechi-strip | FileCheck %s
// CHECK: "other.op"(%{{.*}}) <{kept = 1 : i64}> {also = 2 : i64} : (tensor<4xf32>) -> ()
func.func @step(%x: tensor<4xf32>) {
  "other.op"(%x) <{baechi.cost = #baechi.cost<time_ns = {host = 1}, scratch = 0>, kept = 1 : i64}> {also = 2 : i64, baechi.device = "a"} : (tensor<4xf32>) -> ()
  return
}
