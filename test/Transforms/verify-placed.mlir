// RUN: baechi-opt %s --split-input-file --verify-diagnostics --baechi-verify-placed

#host = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "cuda", memory = 1000>], link_default = <"" -> "", latency_ns = 1, bytes_per_us = 1000>, link_model = parallel>

// A program placed well.
module attributes {baechi.machine = #host} {
  func.func @step(%x: tensor<4xf32> {baechi.device = "a", baechi.updated_by = 0 : i64}) -> tensor<4xf32> {
    %0 = arith.addf %x, %x {baechi.device = "a", baechi.start = 0 : i64, baechi.pin = "a", baechi.cost = #baechi.cost<time_ns = {host = 1}, scratch = 0>} : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

// expected-error @+1 {{no machine: give the pass machine=host:2 or a machine file, or the module a 'baechi.machine' attribute}}
module {
  func.func @step() { return }
}

// -----

#host = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "cuda", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #host} {
  // expected-error @+1 {{'weights' is on no device; run --baechi-place}}
  func.func @step(%w: tensor<4xf32> {baechi.name = "weights"}, %x: tensor<4xf32> {baechi.device = "a"}) -> tensor<4xf32> {
    // expected-error @+1 {{'arith.addf' is on no device; run --baechi-place}}
    %0 = arith.addf %x, %x : tensor<4xf32>
    // expected-error @+1 {{'sum' is on 'c', which the machine does not have}}
    %1 = arith.addf %x, %w {baechi.name = "sum", baechi.device = "c"} : tensor<4xf32>
    // expected-error @+1 {{'pinned' is pinned to 'b' but placed on 'a'}}
    %2 = arith.addf %x, %w {baechi.name = "pinned", baechi.pin = "b", baechi.device = "a"} : tensor<4xf32>
    // expected-error @+1 {{'host only' cannot run on 'b': no time for kind 'cuda'}}
    %3 = arith.addf %x, %w {baechi.name = "host only", baechi.device = "b", baechi.cost = #baechi.cost<time_ns = {host = 1}, scratch = 0>} : tensor<4xf32>
    %4 = arith.addf %x, %w {baechi.name = "first", baechi.device = "a", baechi.group = "g"} : tensor<4xf32>
    // expected-error @+1 {{'second' is on 'b', but 'first' of its group is elsewhere}}
    %5 = arith.addf %x, %w {baechi.name = "second", baechi.device = "b", baechi.group = "g"} : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

// An update is its argument's group without being told.
#host = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "cuda", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #host} {
  func.func @step(%w: tensor<4xf32> {baechi.name = "weights", baechi.device = "a", baechi.updated_by = 0 : i64}) -> tensor<4xf32> {
    // expected-error @+1 {{'arith.addf' is on 'b', but 'weights' of its group is elsewhere}}
    %0 = arith.addf %w, %w {baechi.device = "b"} : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
