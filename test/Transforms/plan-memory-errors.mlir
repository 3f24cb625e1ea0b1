// RUN: baechi-opt %s --split-input-file --verify-diagnostics --baechi-plan-memory

// The bytes, the limit, and the tensors at the peak, the largest first.
#one = #baechi.machine<devices = [<"a", kind = "host", memory = 10000>], link_model = parallel>
module attributes {baechi.machine = #one} {
  module @a attributes {baechi.device = "a"} {
    // expected-error @+1 {{device 'a' has 10000 bytes (9.77 KiB), the plan needs 14336 (14.00 KiB): 4096 of parameters and inputs, at most 10240 of other tensors at once}}
    func.func @step(%x: tensor<1024xf32> {baechi.argument = 0 : i64}) -> (tensor<1024xf32> {baechi.result = 0 : i64}, tensor<1024xf32> {baechi.result = 1 : i64}) {
      // expected-note @+1 {{4096 bytes at the peak: first}}
      %0 = arith.addf %x, %x {baechi.name = "first"} : tensor<1024xf32>
      // expected-note @+2 {{4096 bytes at the peak: second}}
      // expected-note @+1 {{2048 bytes at the peak: second}}
      %1 = arith.mulf %x, %0 {baechi.name = "second", baechi.cost = #baechi.cost<time_ns = {host = 1}, scratch = 2000>} : tensor<1024xf32>
      return %0, %1 : tensor<1024xf32>, tensor<1024xf32>
    }
  }
}

// -----

#one = #baechi.machine<devices = [<"a", kind = "host", memory = 10000>], link_model = parallel>
module attributes {baechi.machine = #one} {
  module @a attributes {baechi.device = "a"} {
    // expected-error @+1 {{argument 0 has type 'tensor<?xf32>'; memory needs static shapes}}
    func.func @step(%x: tensor<?xf32>) { return }
  }
}

// -----

#one = #baechi.machine<devices = [<"a", kind = "host", memory = 10000>], link_model = parallel>
module attributes {baechi.machine = #one} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%x: tensor<4xf32>) {
      // expected-error @+1 {{has a result of type 'memref<4xf32>'; memory needs tensors of static shape}}
      %0 = memref.alloc() : memref<4xf32>
      return
    }
  }
}

// -----

// Two parameters that swap values need an operator that copies.
#one = #baechi.machine<devices = [<"a", kind = "host", memory = 10000>], link_model = parallel>
module attributes {baechi.machine = #one} {
  module @a attributes {baechi.device = "a"} {
    // expected-error @+1 {{result 0 is argument 0's value before its update; run --baechi-form-kernels, which copies it}}
    func.func @step(%x: tensor<4xf32> {baechi.updated_by = 1 : i64}, %y: tensor<4xf32> {baechi.updated_by = 0 : i64}) -> (tensor<4xf32>, tensor<4xf32>) {
      return %x, %y : tensor<4xf32>, tensor<4xf32>
    }
  }
}

// -----

// Results are read when the step has ended.
#one = #baechi.machine<devices = [<"a", kind = "host", memory = 10000>], link_model = parallel>
module attributes {baechi.machine = #one} {
  module @a attributes {baechi.device = "a"} {
    // expected-error @+1 {{result 1 is argument 0's value before its update; run --baechi-form-kernels, which copies it}}
    func.func @step(%x: tensor<4xf32> {baechi.updated_by = 0 : i64}) -> (tensor<4xf32>, tensor<4xf32>) {
      %0 = arith.addf %x, %x : tensor<4xf32>
      return %0, %x : tensor<4xf32>, tensor<4xf32>
    }
  }
}

// -----

#one = #baechi.machine<devices = [<"a", kind = "host", memory = 10000>], link_model = parallel>
module attributes {baechi.machine = #one} {
  module @a attributes {baechi.device = "a"} {
    func.func @step() -> tensor<4xf32> {
      // expected-error @+1 {{result 0 is a constant; run --baechi-form-kernels, which makes it an operator}}
      %0 = arith.constant dense<1.0> : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
  }
}

// -----

#one = #baechi.machine<devices = [<"a", kind = "host", memory = 10000>], link_model = parallel>
module attributes {baechi.machine = #one} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%x: tensor<4x16xf32>) -> tensor<16xf32> {
      // expected-error @+1 {{result 0 is a part of another tensor's buffer; take 'baechi.view' off its slice, which is an operator then}}
      %0 = tensor.extract_slice %x[3, 0] [1, 16] [1, 1] {baechi.view} : tensor<4x16xf32> to tensor<16xf32>
      return %0 : tensor<16xf32>
    }
  }
}

// -----

// What is joined is arguments, each in one whole alone.
#one = #baechi.machine<devices = [<"a", kind = "host", memory = 10000>], link_model = parallel>
module attributes {baechi.machine = #one} {
  module @a attributes {baechi.device = "a"} {
    func.func private @join(tensor<16xf32>, tensor<16xf32>) -> (tensor<32xf32> {baechi.parts = array<i64: 0, 64>}) attributes {baechi.kernel}
    func.func @step(%x: tensor<16xf32> {baechi.argument = 0 : i64}) -> (tensor<32xf32> {baechi.result = 0 : i64}) {
      %0 = arith.addf %x, %x : tensor<16xf32>
      // expected-error @+1 {{is joined and does not put whole arguments together, each in one result alone; take 'baechi.joined' off}}
      %1 = call @join(%x, %0) {baechi.joined} : (tensor<16xf32>, tensor<16xf32>) -> tensor<32xf32>
      return %1 : tensor<32xf32>
    }
  }
}
