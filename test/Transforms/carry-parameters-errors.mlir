// RUN: baechi-opt %s --baechi-carry-parameters --verify-diagnostics

#machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"g", kind = "cuda", memory = 1000>], link_model = parallel>
module attributes {baechi.exchange = "p3", baechi.machine = #machine} {
  module @a attributes {baechi.device = "a"} {
    func.func @step() {
      return
    }
  }
  // expected-error @+1 {{the exchange 'p3' is between host devices, and 'g' is of kind 'cuda'}}
  module @g attributes {baechi.device = "g"} {
    func.func @step() {
      return
    }
  }
}
