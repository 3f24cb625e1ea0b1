// RUN: baechi-opt %s --split-input-file --verify-diagnostics --baechi-export-sdy
// RUN: not baechi-opt %S/export-sdy.mlir --baechi-export-sdy="machine=host:2 plan=%t/no/such/folder" 2>&1 | FileCheck %s
// CHECK: error: cannot write the plan to '{{.*}}folder': No such file or directory

#m = #baechi.machine<devices = [<"a", kind = "host", memory = 1024>, <"b", kind = "host", memory = 1024>], link_model = sequential>

module attributes {baechi.machine = #m} {
  func.func @uneven(%x: tensor<5xf32> {baechi.split = #baechi.split<dim = 0, sizes = [3, 2]>}) -> tensor<5xf32> {
    // expected-error @below {{is cut into 3+2 elements; the devices of an SPMD program have equal pieces, 2 here}}
    %y = math.exp %x : tensor<5xf32>
    return %y : tensor<5xf32>
  }
}

// -----

#m = #baechi.machine<devices = [<"a", kind = "host", memory = 1024>, <"b", kind = "host", memory = 1024>], link_model = sequential>

module attributes {baechi.machine = #m} {
  func.func @more(%x: tensor<9xf32> {baechi.split = #baechi.split<dim = 0, sizes = [3, 3, 3]>}) -> tensor<9xf32> {
    // expected-error @below {{is cut into 3+3+3 elements; the devices of an SPMD program have equal pieces, 2 here}}
    %y = math.exp %x : tensor<9xf32>
    return %y : tensor<9xf32>
  }
}

// -----

#m = #baechi.machine<devices = [<"a", kind = "host", memory = 1024>, <"b", kind = "host", memory = 1024>], link_model = sequential>

module attributes {baechi.machine = #m} {
  // An odd extent is not chosen, and nothing else is there.
  // expected-error @below {{nothing is cut: no class of dimensions saves time in 2 equal pieces; say what is to be cut (baechi.split)}}
  func.func @nothing(%x: tensor<1000001xf32>) -> tensor<1000001xf32> {
    %y = math.exp %x : tensor<1000001xf32>
    return %y : tensor<1000001xf32>
  }
}

// -----

#m = #baechi.machine<devices = [<"a", kind = "host", memory = 1024>, <"b", kind = "host", memory = 1024>], link_model = sequential>

module attributes {baechi.machine = #m} {
  func.func @pinned(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @below {{'math.exp' is on "b" alone, and an SPMD program computes what is not cut on every device; --baechi-export-mpmd says where each operator is}}
    %y = math.exp %x {baechi.pin = "b"} : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

#m = #baechi.machine<devices = [<"a", kind = "host", memory = 1024>, <"b", kind = "host", memory = 1024>], link_model = sequential>

module attributes {baechi.machine = #m} {
  // expected-error @below {{argument 0 is on "b" alone}}
  func.func @placed(%x: tensor<4xf32> {baechi.device = "b"}) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1024>], link_model = sequential>} {
  // expected-error @below {{the machine has one device, 'a'; shardings are for two and more}}
  func.func @alone(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1024>, <"b", kind = "cuda", memory = 1024>], link_model = sequential>} {
  // expected-error @below {{device 'a' is of kind 'host' and 'b' of kind 'cuda'; an SPMD program gives every device the same work}}
  func.func @unequal(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

#m = #baechi.machine<devices = [<"a", kind = "host", memory = 1024>, <"b", kind = "host", memory = 1024>], link_model = sequential>

module attributes {baechi.machine = #m} {
  // expected-error @below {{has the name of the mesh of devices; rename it}}
  func.func @mesh(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}
