// Programs broken by hand: every error names both ends of the message.
// RUN: baechi-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect --baechi-verify-partitioned

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>

// Two messages, received as they are sent.
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%x: tensor<4xf32>, %y: tensor<8xf32>) {
      %0 = baechi.send %x to "b" queue 0 seq 0 : tensor<4xf32>
      %1 = baechi.send %y to "b" queue 0 seq 1 : tensor<8xf32>
      baechi.await %0 : !baechi.token
      return
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step() {
      %0 = baechi.recv from "a" queue 0 seq 0 : !baechi.future<tensor<4xf32>>
      %1 = baechi.recv from "a" queue 0 seq 1 : !baechi.future<tensor<8xf32>>
      %2 = baechi.await %1 : !baechi.future<tensor<8xf32>>
      return
    }
  }
}

// -----

// Swapped order: on the sender, then on the receiver.
#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%x: tensor<4xf32>) {
      // expected-note @+1 {{seq 1 comes first here}}
      %0 = baechi.send %x to "b" queue 0 seq 1 : tensor<4xf32>
      // expected-error @+1 {{on 'a' breaks the order of queue 0 from 'a' to 'b': seq 0 after seq 1}}
      %1 = baechi.send %x to "b" queue 0 seq 0 : tensor<4xf32>
      return
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step() {
      // expected-note @+1 {{the other end}}
      %0 = baechi.recv from "a" queue 0 seq 0 : !baechi.future<tensor<4xf32>>
      %1 = baechi.recv from "a" queue 0 seq 1 : !baechi.future<tensor<4xf32>>
      return
    }
  }
}

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%x: tensor<4xf32>) {
      // expected-note @+1 {{the other end}}
      %0 = baechi.send %x to "b" queue 0 seq 0 : tensor<4xf32>
      %1 = baechi.send %x to "b" queue 0 seq 1 : tensor<4xf32>
      return
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step() {
      // expected-note @+1 {{seq 1 comes first here}}
      %0 = baechi.recv from "a" queue 0 seq 1 : !baechi.future<tensor<4xf32>>
      // expected-error @+1 {{on 'b' breaks the order of queue 0 from 'a' to 'b': seq 0 after seq 1}}
      %1 = baechi.recv from "a" queue 0 seq 0 : !baechi.future<tensor<4xf32>>
      return
    }
  }
}

// -----

// A missing receive, and a missing send; the model's name of the tensor.
#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%x: tensor<4xf32>) {
      // expected-error @+1 {{from 'a' to 'b' is never received: 'b' has no recv of queue 0 seq 0 ('enc/x')}}
      %0 = baechi.send %x to "b" queue 0 seq 0 {baechi.name = "enc/x"} : tensor<4xf32>
      return
    }
  }
  module @b attributes {baechi.device = "b"} {
    // expected-note @+1 {{the step of 'b'}}
    func.func @step() { return }
  }
}

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.device = "a"} {
    // expected-note @+1 {{the step of 'a'}}
    func.func @step() { return }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step() {
      // expected-error @+1 {{on 'b' from 'a' waits for ever: 'a' has no send of queue 0 seq 0}}
      %0 = baechi.recv from "a" queue 0 seq 0 : !baechi.future<tensor<4xf32>>
      return
    }
  }
}

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%x: tensor<4xf32>) {
      // expected-error @+1 {{of 'tensor<4xf32>' on 'a' meets a recv of 'tensor<8xf32>' on 'b': queue 0 seq 0}}
      %0 = baechi.send %x to "b" queue 0 seq 0 : tensor<4xf32>
      return
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step() {
      // expected-note @+1 {{the other end}}
      %0 = baechi.recv from "a" queue 0 seq 0 : !baechi.future<tensor<8xf32>>
      return
    }
  }
}

// -----

#three = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>, <"c", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #three} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%x: tensor<4xf32>) {
      // expected-error @+1 {{from 'a' to 'c' meets a recv on 'b' from 'a': queue 0 seq 0}}
      %0 = baechi.send %x to "c" queue 0 seq 0 : tensor<4xf32>
      return
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step() {
      // expected-note @+1 {{the other end}}
      %0 = baechi.recv from "a" queue 0 seq 0 : !baechi.future<tensor<4xf32>>
      return
    }
  }
  module @c attributes {baechi.device = "c"} {
    func.func @step() { return }
  }
}

// -----

// A queue is a directed pair's own.
#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%x: tensor<4xf32>) {
      // expected-note @+1 {{the queue's other direction}}
      %0 = baechi.send %x to "b" queue 0 seq 0 : tensor<4xf32>
      // expected-note @+1 {{the other end}}
      %1 = baechi.recv from "b" queue 0 seq 1 : !baechi.future<tensor<4xf32>>
      return
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step(%x: tensor<4xf32>) {
      %0 = baechi.recv from "a" queue 0 seq 0 : !baechi.future<tensor<4xf32>>
      // expected-error @+1 {{from 'b' to 'a' uses queue 0, which leads from 'a' to 'b'}}
      %1 = baechi.send %x to "a" queue 0 seq 1 : tensor<4xf32>
      return
    }
  }
}

// -----

// Two messages with one tag: sent twice by one device, by two, received twice.
#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%x: tensor<4xf32>) {
      // expected-note @+1 {{the first send}}
      %0 = baechi.send %x to "b" queue 0 seq 0 : tensor<4xf32>
      // expected-error @+1 {{to 'b' sends queue 0 seq 0 ('y') again, which 'a' sends to 'b'}}
      %1 = baechi.send %x to "b" queue 0 seq 0 {baechi.name = "y"} : tensor<4xf32>
      return
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step() {
      // expected-note @+1 {{the other end}}
      %0 = baechi.recv from "a" queue 0 seq 0 : !baechi.future<tensor<4xf32>>
      return
    }
  }
}

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.device = "a"} {
    // expected-note @+1 {{the step of 'a'}}
    func.func @step(%x: tensor<4xf32>) {
      // expected-note @+1 {{the first send}}
      %0 = baechi.send %x to "b" queue 0 seq 0 : tensor<4xf32>
      return
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step(%x: tensor<4xf32>) {
      // expected-error @+1 {{to 'a' sends queue 0 seq 0 again, which 'a' sends to 'b'}}
      %0 = baechi.send %x to "a" queue 0 seq 0 : tensor<4xf32>
      return
    }
  }
}

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%x: tensor<4xf32>) {
      // expected-note @+1 {{the other end}}
      %0 = baechi.send %x to "b" queue 0 seq 0 : tensor<4xf32>
      return
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step() {
      // expected-note @+1 {{the first recv}}
      %0 = baechi.recv from "a" queue 0 seq 0 : !baechi.future<tensor<4xf32>>
      // expected-error @+1 {{from 'a' receives queue 0 seq 0 again, which 'b' receives from 'a'}}
      %1 = baechi.recv from "a" queue 0 seq 0 : !baechi.future<tensor<4xf32>>
      return
    }
  }
}

// -----

// A device that the machine does not have, and a message inside control flow.
#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%x: tensor<4xf32>) {
      // expected-error @+1 {{from 'a' to 'c' is never received: the machine has no device 'c'}}
      %0 = baechi.send %x to "c" queue 0 seq 0 : tensor<4xf32>
      return
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step() { return }
  }
}

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%x: tensor<4xf32>, %p: i1) {
      scf.if %p {
        // expected-error @+1 {{between 'a' and 'b' stands inside 'scf.if'; messages stand in the step's own block}}
        %0 = baechi.send %x to "b" queue 0 seq 0 : tensor<4xf32>
      }
      return
    }
  }
  module @b attributes {baechi.device = "b"} {
    // expected-note @+1 {{the step of 'b'}}
    func.func @step() {
      %0 = baechi.recv from "a" queue 0 seq 0 : !baechi.future<tensor<4xf32>>
      return
    }
  }
}

// -----

// Each device waits for the other's message before it offers its own.
#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%x: tensor<4xf32>) {
      %0 = baechi.recv from "b" queue 1 seq 0 : !baechi.future<tensor<4xf32>>
      // expected-error @+1 {{on 'a' waits in a circle for queue 1 seq 0 of 'b'}}
      %1 = baechi.await %0 : !baechi.future<tensor<4xf32>>
      %2 = baechi.send %x to "b" queue 0 seq 0 : tensor<4xf32>
      return
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step(%x: tensor<4xf32>) {
      %0 = baechi.recv from "a" queue 0 seq 0 : !baechi.future<tensor<4xf32>>
      %1 = baechi.await %0 : !baechi.future<tensor<4xf32>>
      // expected-note @+1 {{the other end comes after a wait for this device}}
      %2 = baechi.send %x to "a" queue 1 seq 0 : tensor<4xf32>
      return
    }
  }
}

// -----

// A send is done only when its buffer was posted: waiting for it counts too.
#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%x: tensor<4xf32>) {
      %0 = baechi.send %x to "b" queue 0 seq 0 : tensor<4xf32>
      // expected-error @+1 {{on 'a' waits in a circle for queue 0 seq 0 of 'b'}}
      baechi.await %0 : !baechi.token
      %1 = baechi.recv from "b" queue 1 seq 0 : !baechi.future<tensor<4xf32>>
      return
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step(%x: tensor<4xf32>) {
      %0 = baechi.send %x to "a" queue 1 seq 0 : tensor<4xf32>
      baechi.await %0 : !baechi.token
      // expected-note @+1 {{the other end comes after a wait for this device}}
      %1 = baechi.recv from "a" queue 0 seq 0 : !baechi.future<tensor<4xf32>>
      return
    }
  }
}

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
// expected-error @+1 {{no module for device 'b'; run --baechi-partition}}
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.device = "a"} {
    func.func @step() { return }
  }
}

// -----

#one = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #one} {
  module @a attributes {baechi.device = "a"} {
    func.func @step() { return }
  }
  // expected-error @+1 {{a second module for device 'a'}}
  module @again attributes {baechi.device = "a"} {
    func.func @step() { return }
  }
}

// -----

#one = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #one} {
  module @a attributes {baechi.device = "a"} {
    func.func @step() { return }
  }
  // expected-error @+1 {{the machine has no device 'c'}}
  module @c attributes {baechi.device = "c"} {
    func.func @step() { return }
  }
}

// -----

// The same message received twice.
#three = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>, <"c", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #three} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%x: tensor<4xf32>) {
      // expected-note @+1 {{the other end}}
      %0 = baechi.send %x to "b" queue 0 seq 0 : tensor<4xf32>
      return
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step() {
      // expected-note @+1 {{the first recv}}
      %0 = baechi.recv from "a" queue 0 seq 0 : !baechi.future<tensor<4xf32>>
      return
    }
  }
  module @c attributes {baechi.device = "c"} {
    func.func @step() {
      // expected-error @+1 {{receives queue 0 seq 0 again, which 'b' receives from 'a'}}
      %0 = baechi.recv from "a" queue 0 seq 0 : !baechi.future<tensor<4xf32>>
      return
    }
  }
}

// -----

// A circle through something that nobody knows to wait.
#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.device = "a"} {
    func.func @step() {
      // expected-note @+1 {{which begins here}}
      %f = baechi.recv from "b" queue 1 seq 0 : !baechi.future<tensor<4xf32>>
      // expected-error @+1 {{'other.wait' op uses what only a baechi.await in the step itself may use, a '!baechi.future<tensor<4xf32>>'}}
      %x = "other.wait"(%f) : (!baechi.future<tensor<4xf32>>) -> tensor<4xf32>
      %t = baechi.send %x to "b" queue 0 seq 0 : tensor<4xf32>
      return
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step() {
      %f = baechi.recv from "a" queue 0 seq 0 : !baechi.future<tensor<4xf32>>
      %x = baechi.await %f : !baechi.future<tensor<4xf32>>
      %t = baechi.send %x to "a" queue 1 seq 0 : tensor<4xf32>
      return
    }
  }
}

// -----

#one = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #one} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%x: tensor<4xf32>, %c: i1) {
      // expected-note @+1 {{which begins here}}
      %t = baechi.send %x to "a" queue 0 seq 0 : tensor<4xf32>
      scf.if %c {
        // expected-error @+1 {{'baechi.await' op uses what only a baechi.await in the step itself may use, a '!baechi.token'}}
        baechi.await %t : !baechi.token
      }
      return
    }
  }
}

// -----

// The whole step is declared: its tensors are each on one device.
#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  func.func private @step(tensor<4xf32> {baechi.device = "a"}, tensor<8xf32>) -> (tensor<4xf32> {baechi.device = "a"}, tensor<8xf32>)
  module @a attributes {baechi.device = "a"} {
    func.func @step(%x: tensor<4xf32> {baechi.argument = 0 : i64}) -> (tensor<4xf32> {baechi.result = 0 : i64}) {
      return %x : tensor<4xf32>
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step(%y: tensor<8xf32> {baechi.argument = 1 : i64}) -> (tensor<8xf32> {baechi.result = 1 : i64}) {
      return %y : tensor<8xf32>
    }
  }
}

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  func.func private @step(tensor<4xf32>, tensor<4xf32>)
  module @a attributes {baechi.device = "a"} {
    // expected-note @+1 {{the step of 'a'}}
    func.func @step(%x: tensor<4xf32> {baechi.argument = 0 : i64}) { return }
  }
  module @b attributes {baechi.device = "b"} {
    // expected-error @+1 {{argument 0 on 'b' stands for argument 0 of the whole step, which 'a' has already}}
    func.func @step(%x: tensor<4xf32> {baechi.argument = 0 : i64}) { return }
  }
}

// -----

#one = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #one} {
  func.func private @step(tensor<4xf32>) -> tensor<4xf32>
  module @a attributes {baechi.device = "a"} {
    // expected-error @+2 {{result 1 on 'a' stands for result 0 of the whole step, which 'a' has already}}
    // expected-note @+1 {{the step of 'a'}}
    func.func @step(%x: tensor<4xf32> {baechi.argument = 0 : i64}) -> (tensor<4xf32> {baechi.result = 0 : i64}, tensor<4xf32> {baechi.result = 0 : i64}) {
      return %x, %x : tensor<4xf32>, tensor<4xf32>
    }
  }
}

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  // expected-error @+1 {{result 0 of the whole step is on no device}}
  func.func private @step(tensor<4xf32>) -> (tensor<4xf32> {baechi.device = "b"})
  module @a attributes {baechi.device = "a"} {
    func.func @step(%x: tensor<4xf32> {baechi.argument = 0 : i64}) { return }
  }
  module @b attributes {baechi.device = "b"} {
    // expected-note @+1 {{the step of 'b'}}
    func.func @step() { return }
  }
}

// -----

#one = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #one} {
  // expected-note @+1 {{the whole step is declared here}}
  func.func private @step(tensor<4xf32>)
  module @a attributes {baechi.device = "a"} {
    // expected-error @+1 {{argument 0 on 'a' stands for argument 7 of the whole step, which has 1}}
    func.func @step(%x: tensor<4xf32> {baechi.argument = 7 : i64}) { return }
  }
}

// -----

#one = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #one} {
  // expected-note @+1 {{the whole step is declared here}}
  func.func private @step(tensor<4xf32>)
  module @a attributes {baechi.device = "a"} {
    // expected-error @+1 {{argument 0 on 'a' is no argument of the whole step: it has no 'baechi.argument'}}
    func.func @step(%x: tensor<4xf32>) { return }
  }
}

// -----

#one = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #one} {
  // expected-note @+1 {{the whole step is declared here}}
  func.func private @step(tensor<4xf32>)
  module @a attributes {baechi.device = "a"} {
    // expected-error @+1 {{argument 0 on 'a' is a 'tensor<8xf32>', argument 0 of the whole step is a 'tensor<4xf32>'}}
    func.func @step(%x: tensor<8xf32> {baechi.argument = 0 : i64}) { return }
  }
}

// -----

#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  // expected-note @+1 {{the whole step is declared here}}
  func.func private @step(tensor<4xf32>) -> (tensor<4xf32> {baechi.device = "b"})
  module @a attributes {baechi.device = "a"} {
    // expected-error @+1 {{result 0 on 'a' stands for result 0, which the whole step declares on 'b'}}
    func.func @step(%x: tensor<4xf32> {baechi.argument = 0 : i64}) -> (tensor<4xf32> {baechi.result = 0 : i64}) {
      return %x : tensor<4xf32>
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step() { return }
  }
}

// -----

// Two tensors of one type that are received as each other.
#two = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
module attributes {baechi.machine = #two} {
  module @a attributes {baechi.device = "a"} {
    func.func @step(%x: tensor<4xf32>, %y: tensor<4xf32>) {
      // expected-error @+1 {{'baechi.send' op on 'a' meets a recv of 'x' on 'b': queue 0 seq 0 ('y')}}
      %0 = baechi.send %y to "b" queue 0 seq 0 {baechi.name = "y"} : tensor<4xf32>
      %1 = baechi.send %x to "b" queue 0 seq 1 {baechi.name = "x"} : tensor<4xf32>
      return
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func @step() {
      // expected-note @+1 {{the other end}}
      %0 = baechi.recv from "a" queue 0 seq 0 {baechi.name = "x"} : !baechi.future<tensor<4xf32>>
      %1 = baechi.recv from "a" queue 0 seq 1 {baechi.name = "y"} : !baechi.future<tensor<4xf32>>
      return
    }
  }
}
