// RUN: split-file %s %t
// RUN: not baechi-opt %t/good.mlir --baechi-lower="target=tpu" 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not baechi-opt %t/unplanned.mlir --baechi-lower 2>&1 | FileCheck %s --check-prefix=UNPLANNED
// RUN: not baechi-opt %t/unplaced.mlir --baechi-lower 2>&1 | FileCheck %s --check-prefix=UNPLACED
// RUN: not baechi-opt %t/no-kernel.mlir --baechi-lower 2>&1 | FileCheck %s --check-prefix=NO-KERNEL
// RUN: not baechi-opt %t/no-place.mlir --baechi-lower 2>&1 | FileCheck %s --check-prefix=NO-PLACE
// RUN: not baechi-opt %t/no-whole.mlir --baechi-lower 2>&1 | FileCheck %s --check-prefix=NO-WHOLE
// RUN: not baechi-opt %t/nowhere.mlir --baechi-lower 2>&1 | FileCheck %s --check-prefix=NOWHERE
// RUN: not baechi-opt %t/reads.mlir --baechi-lower 2>&1 | FileCheck %s --check-prefix=READS
// RUN: not baechi-opt %t/kernel.mlir --baechi-lower 2>&1 | FileCheck %s --check-prefix=KERNEL
// RUN: not baechi-opt %t/argument.mlir --baechi-lower 2>&1 | FileCheck %s --check-prefix=ARGUMENT
// RUN: not baechi-opt %t/result.mlir --baechi-lower 2>&1 | FileCheck %s --check-prefix=RESULT
// RUN: not baechi-opt %t/send.mlir --baechi-lower 2>&1 | FileCheck %s --check-prefix=SEND
// RUN: not baechi-opt %t/caller.mlir --baechi-lower 2>&1 | FileCheck %s --check-prefix=CALLER
// RUN: baechi-opt %t/good.mlir --baechi-lower -o /dev/null

// TARGET: error: unknown target 'tpu'; known: host, cuda
// UNPLANNED: error: device 'a' has no memory plan; run --baechi-plan-memory
// UNPLACED: error: no 'baechi.machine'; run --baechi-place and --baechi-partition
// NO-KERNEL: no-kernel.mlir:5:{{.*}}error: 'arith.addf' op is no call of a kernel, so there is no code for it; run --baechi-form-kernels first
// NO-PLACE: no-place.mlir:6:{{.*}}error: 'func.call' op has no place in memory; run --baechi-plan-memory
// NO-WHOLE: no-whole.mlir:1:{{.*}}error: no declaration of the whole step; run --baechi-partition
// NOWHERE: nowhere.mlir:2:{{.*}}error: result 0 of the step is on no device; --baechi-verify-partitioned says more
// READS: reads.mlir:5:{{.*}}error: 'baechi.send' op reads a value of type 'tensor<16xf32>' that has no place in memory; run --baechi-plan-memory
// KERNEL: kernel.mlir:2:{{.*}}error: 'func.func' op is a kernel on tensors; run --baechi-lower-kernels first
// ARGUMENT: argument.mlir:2:{{.*}}error: argument 0 of the step has type 'f32'; a program's files describe tensors of static shape
// RESULT: result.mlir:2:{{.*}}error: result 0 of the step has type 'tensor<?xf32>'; a program's files describe tensors of static shape
// SEND: send.mlir:5:{{.*}}error: 'baechi.send' op moves a 'f32'; a program's files describe tensors of static shape
// CALLER: caller.mlir:4:{{.*}}error: 'func.call' op calls @step, which devices run as a program now; take the caller @main away

//--- good.mlir
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>} {
  func.func private @step(tensor<16xf32>)
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 64, resident = 64, live = 64, limit = 1000>} {
    func.func @step(%x: tensor<16xf32> {baechi.argument = 0 : i64, baechi.offset = 0 : i64}) { return }
  }
}
//--- unplanned.mlir
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>} {
  func.func private @step(tensor<16xf32>)
  module @a attributes {baechi.device = "a"} {
    func.func @step(%x: tensor<16xf32> {baechi.argument = 0 : i64}) { return }
  }
}
//--- unplaced.mlir
func.func @step() { return }
//--- no-kernel.mlir
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>} {
  func.func private @step(tensor<16xf32>)
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 128, resident = 64, live = 128, limit = 1000>} {
    func.func @step(%x: tensor<16xf32> {baechi.argument = 0 : i64, baechi.offset = 0 : i64}) {
      %0 = arith.addf %x, %x {baechi.offset = array<i64: 64>} : tensor<16xf32>
      return
    }
  }
}
//--- no-place.mlir
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>} {
  func.func private @step(tensor<16xf32>)
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 128, resident = 64, live = 128, limit = 1000>} {
    func.func private @kernel(tensor<16xf32>) -> tensor<16xf32> attributes {baechi.kernel}
    func.func @step(%x: tensor<16xf32> {baechi.argument = 0 : i64, baechi.offset = 0 : i64}) {
      %0 = call @kernel(%x) : (tensor<16xf32>) -> tensor<16xf32>
      return
    }
  }
}
//--- no-whole.mlir
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>} {
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 64, resident = 64, live = 64, limit = 1000>} {
    func.func @step(%x: tensor<16xf32> {baechi.argument = 0 : i64, baechi.offset = 0 : i64}) { return }
  }
}
//--- reads.mlir
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>} {
  func.func private @step(tensor<16xf32>)
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 64, resident = 64, live = 64, limit = 1000>} {
    func.func @step(%x: tensor<16xf32> {baechi.argument = 0 : i64}) {
      %t = baechi.send %x to "a" queue 0 seq 0 : tensor<16xf32>
      return
    }
  }
}
//--- kernel.mlir
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>} {
  func.func private @kernel(%x: tensor<16xf32>) -> tensor<16xf32> attributes {baechi.kernel} {
    return %x : tensor<16xf32>
  }
  func.func private @step(tensor<16xf32>)
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 64, resident = 64, live = 64, limit = 1000>} {
    func.func @step(%x: tensor<16xf32> {baechi.argument = 0 : i64, baechi.offset = 0 : i64}) { return }
  }
}
//--- argument.mlir
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>} {
  func.func private @step(f32)
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 64, resident = 64, live = 64, limit = 1000>} {
    func.func @step(%x: f32 {baechi.argument = 0 : i64, baechi.offset = 0 : i64}) { return }
  }
}
//--- result.mlir
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>} {
  func.func private @step() -> tensor<?xf32>
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 64, resident = 64, live = 64, limit = 1000>} {
    func.func @step() { return }
  }
}
//--- nowhere.mlir
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>} {
  func.func private @step() -> tensor<16xf32>
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 64, resident = 64, live = 64, limit = 1000>} {
    func.func @step() { return }
  }
}
//--- send.mlir
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>} {
  func.func private @step()
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 64, resident = 64, live = 64, limit = 1000>} {
    func.func @step(%x: f32 {baechi.offset = 0 : i64}) {
      %t = baechi.send %x to "a" queue 0 seq 0 : f32
      return
    }
  }
}
//--- caller.mlir
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>} {
  func.func private @step()
  func.func private @main() {
    call @step() : () -> ()
    return
  }
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 0, resident = 0, live = 0, limit = 1000>} {
    func.func @step() { return }
  }
}
