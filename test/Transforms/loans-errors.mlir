// RUN: baechi-opt %s --split-input-file --verify-diagnostics --baechi-verify-partitioned

module @one_end attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_default = <"" -> "", latency_ns = 1, bytes_per_us = 1000, lends>, link_model = parallel>} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%x: tensor<4xf32>) {
      // expected-error @below {{on 'a' lends queue 0 seq 0, which the recv on 'b' has a buffer for}}
      %t = baechi.send %x to "b" queue 0 seq 0 lent : tensor<4xf32>
      baechi.await %t : !baechi.token
      return
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step() -> tensor<4xf32> {
      // expected-note @below {{the other end}}
      %f = baechi.recv from "a" queue 0 seq 0 : !baechi.future<tensor<4xf32>>
      %x = baechi.await %f : !baechi.future<tensor<4xf32>>
      %y = math.exp %x : tensor<4xf32>
      return %y : tensor<4xf32>
    }
  }
}

// -----

module @other_end attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_default = <"" -> "", latency_ns = 1, bytes_per_us = 1000, lends>, link_model = parallel>} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%x: tensor<4xf32>) {
      // expected-error @below {{on 'a' copies queue 0 seq 0, which the recv on 'b' expects on loan}}
      %t = baechi.send %x to "b" queue 0 seq 0 : tensor<4xf32>
      baechi.await %t : !baechi.token
      return
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step() -> tensor<4xf32> {
      // expected-note @below {{the other end}}
      %f = baechi.recv from "a" queue 0 seq 0 lent : !baechi.future<tensor<4xf32>>
      %x = baechi.await %f : !baechi.future<tensor<4xf32>>
      %y = math.exp %x : tensor<4xf32>
      baechi.give_back %f : !baechi.future<tensor<4xf32>>
      return %y : tensor<4xf32>
    }
  }
}

// -----

module @not_lent attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_default = <"" -> "", latency_ns = 1, bytes_per_us = 1000, lends>, link_model = parallel>} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%x: tensor<4xf32>) {
      %t = baechi.send %x to "b" queue 0 seq 0 : tensor<4xf32>
      baechi.await %t : !baechi.token
      return
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step() -> tensor<4xf32> {
      // expected-note @below {{the recv}}
      %f = baechi.recv from "a" queue 0 seq 0 : !baechi.future<tensor<4xf32>>
      %x = baechi.await %f : !baechi.future<tensor<4xf32>>
      %y = math.exp %x : tensor<4xf32>
      // expected-error @below {{on 'b' gives back queue 0 seq 0, which is not lent}}
      baechi.give_back %f : !baechi.future<tensor<4xf32>>
      return %y : tensor<4xf32>
    }
  }
}

// -----

module @gpu attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "cuda", memory = 1000>], link_default = <"" -> "", latency_ns = 1, bytes_per_us = 1000>, link_model = parallel>} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%x: tensor<4xf32>) {
      // expected-error @below {{lends queue 0 seq 0, but 'b' is of kind 'cuda'; only devices of kind 'host', or of kind 'cuda' on one GPU, share an address space}}
      %t = baechi.send %x to "b" queue 0 seq 0 lent : tensor<4xf32>
      baechi.await %t : !baechi.token
      return
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step() -> tensor<4xf32> {
      // expected-note @below {{the other end}}
      %f = baechi.recv from "a" queue 0 seq 0 lent : !baechi.future<tensor<4xf32>>
      %x = baechi.await %f : !baechi.future<tensor<4xf32>>
      %y = math.exp %x : tensor<4xf32>
      baechi.give_back %f : !baechi.future<tensor<4xf32>>
      return %y : tensor<4xf32>
    }
  }
}

// -----

module @kept attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_default = <"" -> "", latency_ns = 1, bytes_per_us = 1000, lends>, link_model = parallel>} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%x: tensor<4xf32>) {
      // expected-note @below {{the other end}}
      %t = baechi.send %x to "b" queue 0 seq 0 lent : tensor<4xf32>
      baechi.await %t : !baechi.token
      return
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step() -> tensor<4xf32> {
      // expected-error @below {{on 'b' borrows queue 0 seq 0 and gives it back 0 times; a baechi.give_back follows its last use}}
      %f = baechi.recv from "a" queue 0 seq 0 lent : !baechi.future<tensor<4xf32>>
      %x = baechi.await %f : !baechi.future<tensor<4xf32>>
      %y = math.exp %x : tensor<4xf32>
      return %y : tensor<4xf32>
    }
  }
}

// -----

module @late attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_default = <"" -> "", latency_ns = 1, bytes_per_us = 1000, lends>, link_model = parallel>} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%x: tensor<2x2xf32>) {
      // expected-note @below {{the other end}}
      %t = baechi.send %x to "b" queue 0 seq 0 lent : tensor<2x2xf32>
      baechi.await %t : !baechi.token
      return
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step() -> tensor<4xf32> {
      %f = baechi.recv from "a" queue 0 seq 0 lent : !baechi.future<tensor<2x2xf32>>
      %x = baechi.await %f : !baechi.future<tensor<2x2xf32>>
      %v = tensor.collapse_shape %x [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>
      // expected-note @below {{given back here}}
      baechi.give_back %f : !baechi.future<tensor<2x2xf32>>
      // expected-error @below {{on 'b' uses queue 0 seq 0 after it was given back}}
      %y = math.exp %v : tensor<4xf32>
      return %y : tensor<4xf32>
    }
  }
}

// -----

// The lender waits for its tensor before it sends what the borrower needs to
// give that back.
module @circle attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_default = <"" -> "", latency_ns = 1, bytes_per_us = 1000, lends>, link_model = parallel>} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%x: tensor<4xf32>, %y: tensor<4xf32>) {
      %t = baechi.send %x to "b" queue 0 seq 0 lent : tensor<4xf32>
      // expected-error @below {{on 'a' waits in a circle for queue 0 seq 0 of 'b'}}
      baechi.await %t : !baechi.token
      %u = baechi.send %y to "b" queue 0 seq 1 : tensor<4xf32>
      baechi.await %u : !baechi.token
      return
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step() -> tensor<4xf32> {
      %f = baechi.recv from "a" queue 0 seq 0 lent : !baechi.future<tensor<4xf32>>
      %g = baechi.recv from "a" queue 0 seq 1 : !baechi.future<tensor<4xf32>>
      %x = baechi.await %f : !baechi.future<tensor<4xf32>>
      %y = baechi.await %g : !baechi.future<tensor<4xf32>>
      %z = arith.addf %x, %y : tensor<4xf32>
      // expected-note @below {{the other end comes after a wait for this device}}
      baechi.give_back %f : !baechi.future<tensor<4xf32>>
      return %z : tensor<4xf32>
    }
  }
}

// -----

module @late_within attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_default = <"" -> "", latency_ns = 1, bytes_per_us = 1000, lends>, link_model = parallel>} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%x: tensor<4xf32>) {
      // expected-note @below {{the other end}}
      %t = baechi.send %x to "b" queue 0 seq 0 lent : tensor<4xf32>
      baechi.await %t : !baechi.token
      return
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step(%c: i1, %z: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %f = baechi.recv from "a" queue 0 seq 0 lent : !baechi.future<tensor<4xf32>>
      %x = baechi.await %f : !baechi.future<tensor<4xf32>>
      %before = math.exp %x : tensor<4xf32>
      // expected-note @below {{given back here}}
      baechi.give_back %f : !baechi.future<tensor<4xf32>>
      // expected-error @below {{on 'b' uses queue 0 seq 0 after it was given back}}
      %y = scf.if %c -> (tensor<4xf32>) {
        %e = math.exp %x : tensor<4xf32>
        scf.yield %e : tensor<4xf32>
      } else {
        scf.yield %z : tensor<4xf32>
      }
      %late = math.exp %x : tensor<4xf32>
      return %before, %y : tensor<4xf32>, tensor<4xf32>
    }
  }
}
