// RUN: baechi-opt %s --split-input-file --verify-diagnostics --baechi-partition

// expected-error @+1 {{no 'baechi.machine'; run --baechi-place}}
module {
  func.func @step() { return }
}

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  func.func @step(%x: tensor<4xf32> {baechi.device = "a"}) -> tensor<4xf32> {
    // expected-error @+1 {{is on no device; run --baechi-place}}
    %0 = arith.addf %x, %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  // expected-error @+1 {{argument 0 is on no device; run --baechi-place}}
  func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  func.func @step(%x: tensor<4xf32> {baechi.device = "a"}) -> tensor<4xf32> {
    // expected-error @+1 {{is on 'c', which the machine does not have}}
    %0 = arith.addf %x, %x {baechi.device = "c"} : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  func.func @step(%x: tensor<4xf32> {baechi.device = "a"}) -> tensor<4xf32> {
    // expected-error @+1 {{reads a tensor on 'b' that no planned transfer brings there; run --baechi-place}}
    %0 = arith.addf %x, %x {baechi.device = "b"} : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  func.func @step(%x: tensor<4xf32> {baechi.device = "a"}) -> tensor<4xf32> {
    // expected-error @+1 {{a transfer of result 1, there are 1}}
    %0 = arith.addf %x, %x {baechi.device = "a", baechi.sends = [#baechi.transfer<result = 1, from = "a", to = "b", start = 0, end = 1>]} : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  func.func @step(%x: tensor<4xf32> {baechi.device = "a"}) -> tensor<4xf32> {
    // expected-error @+1 {{a transfer names 'c', which the machine does not have}}
    %0 = arith.addf %x, %x {baechi.device = "a", baechi.sends = [#baechi.transfer<result = 0, from = "a", to = "c", start = 0, end = 1>]} : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  func.func @step(%x: tensor<4xf32> {baechi.device = "a"}) -> tensor<4xf32> {
    // expected-error @+1 {{result 0 is moved to 'b' twice}}
    %0 = arith.addf %x, %x {baechi.device = "a", baechi.sends = [#baechi.transfer<result = 0, from = "a", to = "b", start = 0, end = 1>, #baechi.transfer<result = 0, from = "a", to = "b", start = 1, end = 2>]} : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

// Each of two devices would forward what it gets from the other.
#three = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>, <"c", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #three} {
  // expected-error @+1 {{the planned transfers wait for each other in a circle}}
  func.func @step(%x: tensor<4xf32> {baechi.device = "a", baechi.sends = [#baechi.transfer<result = 0, from = "b", to = "c", start = 0, end = 1>, #baechi.transfer<result = 0, from = "c", to = "b", start = 0, end = 1>]}) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  ml_program.global private mutable @state(dense<0> : tensor<4xi32>) : tensor<4xi32>
  func.func @step(%x: tensor<4xi32> {baechi.device = "a"}) -> tensor<4xi32> {
    // expected-note @+1 {{the other operator}}
    ml_program.global_store @state = %x : tensor<4xi32> {baechi.device = "a"}
    // expected-error @+1 {{'ml_program.global_load' op has side effects, as an operator on another device; place the program with --baechi-place}}
    %0 = ml_program.global_load @state : tensor<4xi32> {baechi.device = "b"}
    return %0 : tensor<4xi32>
  }
}
