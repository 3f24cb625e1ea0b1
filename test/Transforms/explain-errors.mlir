// RUN: baechi-opt %s --split-input-file --verify-diagnostics --baechi-explain=sum

#host = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_default = <"" -> "", latency_ns = 1, bytes_per_us = 1000>, link_model = parallel>
module attributes {baechi.machine = #host} {
  // expected-error @+1 {{no operator is called 'sum': no name is like it; there are 'arg0', 'add'}}
  func.func @step(%x: tensor<4xf32> {baechi.device = "a"}) -> tensor<4xf32> {
    %0 = arith.addf %x, %x {baechi.name = "add", baechi.device = "a", baechi.start = 0 : i64, baechi.cost = #baechi.cost<time_ns = {host = 1}, scratch = 0>} : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

#host = #baechi.machine<devices = [<"a", kind = "host", memory = 10>], link_model = parallel>
module attributes {baechi.machine = #host} {
  // expected-error-re @+1 {{the placement is not valid: {{.*}}; run --baechi-place again}}
  func.func @step(%x: tensor<4xf32> {baechi.device = "a"}) -> tensor<4xf32> {
    %0 = arith.addf %x, %x {baechi.name = "sum", baechi.device = "a", baechi.start = 0 : i64, baechi.cost = #baechi.cost<time_ns = {host = 1}, scratch = 0>} : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

#host = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #host} {
  func.func @step(%x: tensor<4xf32> {baechi.device = "a"}) -> tensor<4xf32> {
    // expected-error @+1 {{'sum' is on no device; run --baechi-place}}
    %0 = arith.addf %x, %x {baechi.name = "sum", baechi.cost = #baechi.cost<time_ns = {host = 1}, scratch = 0>} : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

// expected-error @+1 {{no machine: give the pass machine=host:2}}
module {
  func.func @step() { return }
}

// -----

#host = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_default = <"" -> "", latency_ns = 1, bytes_per_us = 1000>, link_model = parallel>
module attributes {baechi.machine = #host} {
  func.func @step(%x: tensor<4xf32> {baechi.device = "a"}) -> tensor<4xf32> {
    // expected-error @+1 {{'sum' has a transfer of result 1, which it does not have}}
    %0 = arith.addf %x, %x {baechi.name = "sum", baechi.device = "a", baechi.start = 0 : i64, baechi.sends = [#baechi.transfer<result = 1, from = "a", to = "b", start = 0, end = 1>], baechi.cost = #baechi.cost<time_ns = {host = 1}, scratch = 0>} : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
