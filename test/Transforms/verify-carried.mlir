// RUN: baechi-opt %s --split-input-file --verify-diagnostics --baechi-verify-partitioned

// Nothing is wrong here.

#machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #machine} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%w: tensor<4xf32> {baechi.argument = 0 : i64, baechi.updated_by = 0 : i64}) -> (tensor<4xf32> {baechi.result = 0 : i64}) {
      baechi.await_carried queue 0 seq 0
      %0 = math.exp %w : tensor<4xf32>
      %t = baechi.send %0 to "b" queue 0 seq 0 {baechi.carried = 0 : i64} : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step(%w: tensor<4xf32> {baechi.argument = 0 : i64, baechi.mirror}) {
      baechi.await_carried queue 0 seq 0
      %f = baechi.recv from "a" queue 0 seq 0 {baechi.carried = 0 : i64} : !baechi.future<tensor<4xf32>>
      return
    }
  }
}

// -----

#machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #machine} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%w: tensor<4xf32> {baechi.argument = 0 : i64, baechi.updated_by = 0 : i64}) -> (tensor<4xf32> {baechi.result = 0 : i64}) {
      %0 = math.exp %w : tensor<4xf32>
      // expected-error @+1 {{on 'a' carries queue 0 seq 0 into the next step, which awaits it 0 times; one baechi.await_carried stands before}}
      %t = baechi.send %0 to "b" queue 0 seq 0 {baechi.carried = 0 : i64} : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step(%w: tensor<4xf32> {baechi.argument = 0 : i64, baechi.mirror}) {
      baechi.await_carried queue 0 seq 0
      %f = baechi.recv from "a" queue 0 seq 0 {baechi.carried = 0 : i64} : !baechi.future<tensor<4xf32>>
      return
    }
  }
}

// -----

// After the recv it would wait for itself.

#machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #machine} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%w: tensor<4xf32> {baechi.argument = 0 : i64, baechi.updated_by = 0 : i64}) -> (tensor<4xf32> {baechi.result = 0 : i64}) {
      baechi.await_carried queue 0 seq 0
      %0 = math.exp %w : tensor<4xf32>
      %t = baechi.send %0 to "b" queue 0 seq 0 {baechi.carried = 0 : i64} : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step(%w: tensor<4xf32> {baechi.argument = 0 : i64, baechi.mirror}) {
      // expected-error @+1 {{on 'b' carries queue 0 seq 0 into the next step, which awaits it 1 times}}
      %f = baechi.recv from "a" queue 0 seq 0 {baechi.carried = 0 : i64} : !baechi.future<tensor<4xf32>>
      // expected-note @+1 {{an await}}
      baechi.await_carried queue 0 seq 0
      return
    }
  }
}

// -----

#machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #machine} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%w: tensor<4xf32> {baechi.argument = 0 : i64, baechi.updated_by = 0 : i64}) -> (tensor<4xf32> {baechi.result = 0 : i64}) {
      %0 = math.exp %w : tensor<4xf32>
      // expected-error @+1 {{and its recv differ in whether the next step awaits the message ('baechi.carried'): queue 0 seq 0}}
      %t = baechi.send %0 to "b" queue 0 seq 0 : tensor<4xf32>
      baechi.await %t : !baechi.token
      return %0 : tensor<4xf32>
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step(%w: tensor<4xf32> {baechi.argument = 0 : i64, baechi.mirror}) {
      baechi.await_carried queue 0 seq 0
      // expected-note @+1 {{the other end}}
      %f = baechi.recv from "a" queue 0 seq 0 {baechi.carried = 0 : i64} : !baechi.future<tensor<4xf32>>
      return
    }
  }
}

// -----

#machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #machine} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%w: tensor<4xf32> {baechi.argument = 0 : i64, baechi.updated_by = 0 : i64}) -> (tensor<4xf32> {baechi.result = 0 : i64}) {
      baechi.await_carried queue 0 seq 0
      %0 = math.exp %w : tensor<4xf32>
      // expected-error @+1 {{lends what the next step awaits: queue 0 seq 0}}
      %t = baechi.send %0 to "b" queue 0 seq 0 lent {baechi.carried = 0 : i64} : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step(%w: tensor<4xf32> {baechi.argument = 0 : i64, baechi.mirror}) {
      baechi.await_carried queue 0 seq 0
      // expected-note @+1 {{the other end}}
      %f = baechi.recv from "a" queue 0 seq 0 lent {baechi.carried = 0 : i64} : !baechi.future<tensor<4xf32>>
      return
    }
  }
}

// -----

#machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #machine} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%w: tensor<4xf32> {baechi.argument = 0 : i64, baechi.updated_by = 0 : i64}) -> (tensor<4xf32> {baechi.result = 0 : i64}) {
      baechi.await_carried queue 0 seq 0
      %0 = math.exp %w : tensor<4xf32>
      %1 = math.exp %0 : tensor<4xf32>
      // expected-error @+1 {{carries no next value of argument 0: queue 0 seq 0}}
      %t = baechi.send %1 to "b" queue 0 seq 0 {baechi.carried = 0 : i64} : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step(%w: tensor<4xf32> {baechi.argument = 0 : i64, baechi.mirror}) {
      baechi.await_carried queue 0 seq 0
      // expected-note @+1 {{the other end}}
      %f = baechi.recv from "a" queue 0 seq 0 {baechi.carried = 0 : i64} : !baechi.future<tensor<4xf32>>
      return
    }
  }
}

// -----

#machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #machine} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%w: tensor<4xf32> {baechi.argument = 0 : i64, baechi.updated_by = 0 : i64}) -> (tensor<4xf32> {baechi.result = 0 : i64}) {
      baechi.await_carried queue 0 seq 0
      %0 = math.exp %w : tensor<4xf32>
      // expected-note @+1 {{the other end}}
      %t = baechi.send %0 to "b" queue 0 seq 0 {baechi.carried = 0 : i64} : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step(%w: tensor<4xf32> {baechi.argument = 1 : i64}) {
      baechi.await_carried queue 0 seq 0
      // expected-error @+1 {{fills argument 0, which is no copy of what is sent: queue 0 seq 0}}
      %f = baechi.recv from "a" queue 0 seq 0 {baechi.carried = 0 : i64} : !baechi.future<tensor<4xf32>>
      return
    }
  }
}

// -----

#machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #machine} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%w: tensor<4xf32> {baechi.argument = 0 : i64, baechi.updated_by = 0 : i64}) -> (tensor<4xf32> {baechi.result = 0 : i64}) {
      baechi.await_carried queue 0 seq 0
      %0 = math.exp %w : tensor<4xf32>
      %t = baechi.send %0 to "b" queue 0 seq 0 {baechi.carried = 0 : i64} : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step(%w: tensor<4xf32> {baechi.argument = 0 : i64, baechi.mirror}) {
      baechi.await_carried queue 0 seq 0
      %f = baechi.recv from "a" queue 0 seq 0 {baechi.carried = 0 : i64} : !baechi.future<tensor<4xf32>>
      // expected-error @+1 {{on 'b' waits for queue 3 seq 1, which the device neither sends nor receives for the next step}}
      baechi.await_carried queue 3 seq 1
      return
    }
  }
}

// -----

// What has left for the next step is overwritten, or lies elsewhere; what
// arrives is read, or written, meanwhile.

#machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #machine} {
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 128, resident = 64, live = 128, limit = 1000>} {
    func.func private @next(tensor<4xf32>) -> (tensor<4xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel}
    func.func @step(%w: tensor<4xf32> {baechi.argument = 0 : i64, baechi.updated_by = 0 : i64, baechi.offset = 0 : i64}) -> (tensor<4xf32> {baechi.result = 0 : i64}) {
      // expected-error @+1 {{'next' on 'a' writes over the buffer that queue 0 seq 0 from 'a' to 'b' still reads: its token was not awaited}}
      %0 = call @next(%w) {baechi.offset = array<i64: 0>} : (tensor<4xf32>) -> tensor<4xf32>
      baechi.await_carried queue 0 seq 0
      // expected-note @+1 {{sent here}}
      %t = baechi.send %0 to "b" queue 0 seq 0 {baechi.carried = 0 : i64} : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
  }
  module @b attributes {baechi.device = "b", baechi.arena = #baechi.arena<bytes = 128, resident = 64, live = 128, limit = 1000>} {
    func.func @step(%w: tensor<4xf32> {baechi.argument = 0 : i64, baechi.mirror, baechi.offset = 0 : i64}) {
      baechi.await_carried queue 0 seq 0
      // expected-note @+1 {{the other end}}
      %f = baechi.recv from "a" queue 0 seq 0 {baechi.carried = 0 : i64, baechi.offset = array<i64: 0>} : !baechi.future<tensor<4xf32>>
      return
    }
  }
}

// -----

#machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #machine} {
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 128, resident = 64, live = 128, limit = 1000>} {
    func.func @step(%w: tensor<4xf32> {baechi.argument = 0 : i64, baechi.updated_by = 0 : i64, baechi.offset = 0 : i64}) -> (tensor<4xf32> {baechi.result = 0 : i64}) {
      baechi.await_carried queue 0 seq 0
      %0 = math.exp %w {baechi.offset = array<i64: 64>} : tensor<4xf32>
      // expected-error @+2 {{on 'a' sends queue 0 seq 0 from 'a' to 'b' into the next step, and it does not lie in argument 0's place}}
      // expected-note @+1 {{sent here}}
      %t = baechi.send %0 to "b" queue 0 seq 0 {baechi.carried = 0 : i64} : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
  }
  module @b attributes {baechi.device = "b", baechi.arena = #baechi.arena<bytes = 128, resident = 64, live = 128, limit = 1000>} {
    func.func @step(%w: tensor<4xf32> {baechi.argument = 0 : i64, baechi.mirror, baechi.offset = 0 : i64}) {
      baechi.await_carried queue 0 seq 0
      // expected-note @+1 {{the other end}}
      %f = baechi.recv from "a" queue 0 seq 0 {baechi.carried = 0 : i64, baechi.offset = array<i64: 0>} : !baechi.future<tensor<4xf32>>
      return
    }
  }
}

// -----

#machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #machine} {
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 128, resident = 64, live = 128, limit = 1000>} {
    func.func private @next(tensor<4xf32>) -> (tensor<4xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel}
    func.func @step(%w: tensor<4xf32> {baechi.argument = 0 : i64, baechi.updated_by = 0 : i64, baechi.offset = 0 : i64}) -> (tensor<4xf32> {baechi.result = 0 : i64}) {
      baechi.await_carried queue 0 seq 0
      %0 = call @next(%w) {baechi.offset = array<i64: 0>} : (tensor<4xf32>) -> tensor<4xf32>
      // expected-note @+1 {{the other end}}
      %t = baechi.send %0 to "b" queue 0 seq 0 {baechi.carried = 0 : i64} : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
  }
  module @b attributes {baechi.device = "b", baechi.arena = #baechi.arena<bytes = 128, resident = 64, live = 128, limit = 1000>} {
    func.func @step(%w: tensor<4xf32> {baechi.argument = 0 : i64, baechi.mirror, baechi.offset = 0 : i64}) {
      // expected-error @+1 {{'math.exp' on 'b' reads the buffer that queue 0 seq 0 from 'a' to 'b' still fills: it was not awaited}}
      %0 = math.exp %w {baechi.offset = array<i64: 64>} : tensor<4xf32>
      baechi.await_carried queue 0 seq 0
      // expected-note @+1 {{received here}}
      %f = baechi.recv from "a" queue 0 seq 0 {baechi.carried = 0 : i64, baechi.offset = array<i64: 0>} : !baechi.future<tensor<4xf32>>
      return
    }
  }
}

// -----

#machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #machine} {
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 128, resident = 64, live = 128, limit = 1000>} {
    func.func private @next(tensor<4xf32>) -> (tensor<4xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel}
    func.func @step(%w: tensor<4xf32> {baechi.argument = 0 : i64, baechi.updated_by = 0 : i64, baechi.offset = 0 : i64}) -> (tensor<4xf32> {baechi.result = 0 : i64}) {
      baechi.await_carried queue 0 seq 0
      %0 = call @next(%w) {baechi.offset = array<i64: 0>} : (tensor<4xf32>) -> tensor<4xf32>
      // expected-note @+1 {{the other end}}
      %t = baechi.send %0 to "b" queue 0 seq 0 {baechi.carried = 0 : i64} : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
  }
  module @b attributes {baechi.device = "b", baechi.arena = #baechi.arena<bytes = 128, resident = 64, live = 128, limit = 1000>} {
    func.func @step(%w: tensor<4xf32> {baechi.argument = 0 : i64, baechi.mirror, baechi.offset = 0 : i64}) {
      baechi.await_carried queue 0 seq 0
      // expected-note @+1 {{received here}}
      %f = baechi.recv from "a" queue 0 seq 0 {baechi.carried = 0 : i64, baechi.offset = array<i64: 0>} : !baechi.future<tensor<4xf32>>
      // expected-error @+1 {{'math.exp' on 'b' reads the buffer that queue 0 seq 0 from 'a' to 'b' still fills}}
      %0 = math.exp %w {baechi.offset = array<i64: 64>} : tensor<4xf32>
      return
    }
  }
}
