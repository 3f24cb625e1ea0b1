// Over links what cannot be cut in one piece a device is cut in half as many beside it.
// RUN: echo '{"format": "baechi-machine", "version": 1, "link_model": "duplex", "devices": [{"name": "a", "kind": "host", "memory": 1000000000}, {"name": "b", "kind": "host", "memory": 1000000000}, {"name": "c", "kind": "host", "memory": 1000000000}, {"name": "d", "kind": "host", "memory": 1000000000}], "link_default": {"latency_ns": 1000, "bytes_per_us": 50000}}' > %t.json
// RUN: baechi-run %s --machine=%t.json --costs=roofline --splits=any --steps=1 --check-single | FileCheck %s

// CHECK: pieces 6 operations cut along 2 classes of dimensions
// CHECK-NEXT: dimension 0 of argument 0: 4 pieces of 1, 3 operations
// CHECK-NEXT: it saves the most of what is left: estimated to save {{[0-9.]+}} ms of {{[0-9.]+}} ms{{$}}
// CHECK-NEXT: dimension 0 of argument 1: 2 pieces of 1, 3 operations
// CHECK: equal the single device's, bit for bit
func.func @step(%x: tensor<4x900000xf32>, %y: tensor<2x600000xf32>) -> (tensor<4xf32>, tensor<2xf32>) {
  %zero = arith.constant 0.0 : f32
  %ex = tensor.empty() : tensor<4xf32>
  %zx = linalg.fill ins(%zero : f32) outs(%ex : tensor<4xf32>) -> tensor<4xf32>
  %a = linalg.reduce ins(%x : tensor<4x900000xf32>) outs(%zx : tensor<4xf32>) dimensions = [1]
    (%in: f32, %acc: f32) {
      %d = arith.subf %in, %acc : f32
      linalg.yield %d : f32
    }
  %ey = tensor.empty() : tensor<2xf32>
  %zy = linalg.fill ins(%zero : f32) outs(%ey : tensor<2xf32>) -> tensor<2xf32>
  %b = linalg.reduce ins(%y : tensor<2x600000xf32>) outs(%zy : tensor<2xf32>) dimensions = [1]
    (%in: f32, %acc: f32) {
      %d = arith.subf %in, %acc : f32
      linalg.yield %d : f32
    }
  return %a, %b : tensor<4xf32>, tensor<2xf32>
}
