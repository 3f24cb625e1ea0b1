// RUN: baechi-opt %s --baechi-export-mpmd --split-input-file --verify-diagnostics

// expected-error @below {{no 'baechi.machine'; run --baechi-place}}
module {
  func.func @step(%x: tensor<4xf32> {baechi.device = "a"}) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1024>], link_model = sequential>} {
  // expected-error @below {{argument 0 is on no device; run --baechi-place}}
  func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1024>], link_model = sequential>} {
  // expected-error @below {{argument 0 has type 'f32', which no mesh holds; meshes hold tensors of static shape}}
  func.func @step(%x: f32 {baechi.device = "a"}) -> tensor<4xf32> {
    %y = tensor.splat %x {baechi.device = "a"} : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1024>], link_model = sequential>} {
  func.func @step(%x: tensor<4xf32> {baechi.device = "a"}) -> tensor<4xf32> {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'tensor.extract' has type 'f32', which no mesh holds}}
    %e = tensor.extract %x[%c0] {baechi.device = "a"} : tensor<4xf32>
    %y = tensor.splat %e {baechi.device = "a"} : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1024>], link_model = sequential>} {
  func.func @step(%x: tensor<4xf32> {baechi.device = "a"}) -> f32 {
    %c = arith.constant 1.0 : f32
    // expected-error @below {{result 0 has type 'f32', which no mesh holds}}
    return %c : f32
  }
}

// -----

module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1024>], link_model = sequential>} {
  func.func @step(%x: tensor<4xf32> {baechi.device = "a"}) -> tensor<4xf32> {
    // expected-error @below {{calls @asked, which has no body for a fragment to run}}
    %y = call @asked(%x) {baechi.device = "a"} : (tensor<4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
  func.func private @asked(tensor<4xf32>) -> tensor<4xf32>
}
