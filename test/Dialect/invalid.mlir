// Every error of the dialect's verifiers and parsers.
// RUN: baechi-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{a device needs a name}}
module attributes {baechi.machine = #baechi.machine<devices = [<"", kind = "host", memory = 1>], link_model = unlimited>} {}

// -----

// expected-error @+1 {{device 'a' needs a kind}}
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "", memory = 1>], link_model = unlimited>} {}

// -----

// expected-error @+1 {{device 'a' has a negative memory of -1 bytes}}
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = -1>], link_model = unlimited>} {}

// -----

// expected-error @+1 {{a machine needs at least one device}}
module attributes {baechi.machine = #baechi.machine<devices = [], link_model = unlimited>} {}

// -----

// expected-error @+1 {{two devices of one name, 'a'}}
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1>, <"a", kind = "host", memory = 1>], link_model = unlimited>} {}

// -----

// expected-error @+1 {{link 'a' -> 'b' has a negative latency of -1 ns}}
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1>, <"b", kind = "host", memory = 1>], links = [<"a" -> "b", latency_ns = -1, bytes_per_us = 1>], link_model = unlimited>} {}

// -----

// expected-error @+1 {{link 'a' -> 'b' moves 0 bytes per us; it must be positive}}
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1>, <"b", kind = "host", memory = 1>], links = [<"a" -> "b", latency_ns = 1, bytes_per_us = 0>], link_model = unlimited>} {}

// -----

// expected-error @+1 {{link 'a' -> 'c' names an unknown device 'c'}}
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1>, <"b", kind = "host", memory = 1>], links = [<"a" -> "c", latency_ns = 1, bytes_per_us = 1>], link_model = unlimited>} {}

// -----

// expected-error @+1 {{a link from 'a' to itself}}
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1>, <"b", kind = "host", memory = 1>], links = [<"a" -> "a", latency_ns = 1, bytes_per_us = 1>], link_model = unlimited>} {}

// -----

// expected-error @+1 {{two links 'a' -> 'b'}}
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1>, <"b", kind = "host", memory = 1>], links = [<"a" -> "b", latency_ns = 1, bytes_per_us = 1>, <"a" -> "b", latency_ns = 1, bytes_per_us = 1>], link_model = unlimited>} {}

// -----

// expected-error @+1 {{unknown link_model 'maybe'; known: unlimited, parallel, duplex, sequential}}
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1>, <"b", kind = "host", memory = 1>], link_model = maybe>} {}

// -----

// expected-error @+1 {{unknown field 'speed'; known: devices, links, link_default, link_model, staged_through, runtime}}
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1>, <"b", kind = "host", memory = 1>], speed = 3>} {}

// -----

// expected-error @+1 {{a machine needs a link_model}}
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1>, <"b", kind = "host", memory = 1>]>} {}

// -----

// expected-error @+1 {{'baechi.machine' must be a #baechi.machine}}
module attributes {baechi.machine = 3 : i64} {}

// -----

// expected-error @+1 {{'baechi.arena' must be a #baechi.arena}}
module attributes {baechi.arena = 3 : i64} {}

// -----

// expected-error @+1 {{an arena holds resident <= live <= bytes, not 4, 2, 3}}
module attributes {baechi.arena = #baechi.arena<bytes = 3, resident = 4, live = 2, limit = 9>} {}

// -----

// expected-error @+1 {{a promise of -1 bytes}}
module attributes {baechi.arena = #baechi.arena<bytes = 3, resident = 2, live = 2, limit = 9, promised = -1>} {}

// -----

// expected-error @+1 {{an arena of 10 bytes exceeds the device's 9}}
module attributes {baechi.arena = #baechi.arena<bytes = 10, resident = 4, live = 5, limit = 9>} {}

// -----

// expected-error @+1 {{'baechi.device' must be a non-empty string}}
module attributes {baechi.device = 3 : i64} {}

// -----

// expected-error @+1 {{unknown attribute 'baechi.flavour' of the baechi dialect}}
module attributes {baechi.flavour = 3 : i64} {}

// -----

// expected-error @+1 {{'baechi.kernel' stands on functions only}}
module attributes {baechi.kernel} {}

// -----

// expected-error @+1 {{'baechi.cuda_blocks' stands on functions only}}
module attributes {baechi.cuda_blocks = 3 : i64} {}

// -----

// expected-error @+1 {{'baechi.kernel_scratch' stands on functions only}}
module attributes {baechi.kernel_scratch = 3 : i64} {}

// -----

// expected-error @+1 {{'baechi.implementation' stands on functions only}}
module attributes {baechi.implementation = "generated"} {}

// -----

// expected-error @+1 {{'baechi.cuda_product' must be a #baechi.cuda_product}}
func.func private @f() attributes {baechi.cuda_product = 3}

// -----

// expected-error @+1 {{'baechi.cuda_product' stands on functions only}}
module attributes {baechi.cuda_product = #baechi.cuda_product<math = "fp32", workspace = 0>} {}

// -----

// expected-error @+1 {{unknown math 'fp8'; known: fp32, tf32, bf16, fp16}}
func.func private @f() attributes {baechi.cuda_product = #baechi.cuda_product<math = "fp8", workspace = 0>}

// -----

// expected-error @+1 {{negative workspace of -1 bytes}}
func.func private @f() attributes {baechi.cuda_product = #baechi.cuda_product<math = "fp32", workspace = -1>}

// -----

// expected-error @+1 {{'baechi.cuda_convolution' must be a #baechi.cuda_convolution}}
func.func private @f() attributes {baechi.cuda_convolution = #baechi.cuda_product<math = "fp32", workspace = 0>}

// -----

// expected-error @+1 {{'baechi.cuda_convolution' stands on functions only}}
module attributes {baechi.cuda_convolution = #baechi.cuda_convolution<math = "fp32", workspace = 0>} {}

// -----

// expected-error @+1 {{unknown math 'fp8'; known: fp32, tf32, bf16, fp16}}
func.func private @f() attributes {baechi.cuda_convolution = #baechi.cuda_convolution<math = "fp8", workspace = 0>}

// -----

// expected-error @+1 {{an engine has 24 words, not 2}}
func.func private @f() attributes {baechi.cuda_convolution = #baechi.cuda_convolution<math = "fp32", workspace = 0, engine = [1, 2]>}

// -----

// expected-error @+1 {{an algorithm has 8 words, not 2}}
func.func private @f() attributes {baechi.cuda_product = #baechi.cuda_product<math = "fp32", workspace = 0, algorithm = [1, 2]>}

// -----

// expected-error @+1 {{'baechi.updated_by' stands on a function's arguments or results only}}
module attributes {baechi.updated_by = 3 : i64} {}

// -----

// expected-error @+1 {{'baechi.may_alias' stands on a function's arguments or results only}}
module attributes {baechi.may_alias = array<i64: 0>} {}

// -----

// expected-error @+1 {{'baechi.kernel' must be a unit attribute}}
func.func private @f() attributes {baechi.kernel = 3 : i64}

// -----

// expected-error @+1 {{'baechi.batched' must be a unit attribute or, for each dimension, an array of i64 with the replicas that have each part}}
func.func private @f(tensor<4xf32> {baechi.batched = [3 : i64]})

// -----

// expected-error @+1 {{'baechi.machine' stands on modules only}}
func.func private @f() attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1>], link_model = unlimited>}

// -----

// expected-error @+1 {{'baechi.certificate' must be a #baechi.placement_certificate}}
func.func private @f() attributes {baechi.certificate = 3 : i64}

// -----

// expected-error @+1 {{times of a certificate must not be negative}}
func.func private @f() attributes {baechi.certificate = #baechi.placement_certificate<placer = "msct", winner = "msct", makespan = -1, lower_bound = 0, bound = "", single_device = 0, operators = 0, groups = 0>}

// -----

// expected-error @+1 {{the peaks of a certificate must not be negative}}
func.func private @f() attributes {baechi.certificate = #baechi.placement_certificate<placer = "msct", winner = "msct", makespan = 1, lower_bound = 0, bound = "", single_device = 0, operators = 0, groups = 0, peaks = [1, -1]>}

// -----

// expected-error @+1 {{the lower bound of 2 ns exceeds the makespan of 1 ns}}
func.func private @f() attributes {baechi.certificate = #baechi.placement_certificate<placer = "msct", winner = "msct", makespan = 1, lower_bound = 2, bound = "", single_device = 0, operators = 0, groups = 0>}

// -----

// expected-error @+1 {{'baechi.start' must be a non-negative i64}}
func.func private @f() attributes {baechi.start = -3 : i64}

// -----

// expected-error @+1 {{'baechi.offset' must be a non-negative i64}}
func.func private @f() attributes {baechi.offset = "x"}

// -----

// expected-error @+1 {{'baechi.cost' must be a #baechi.cost}}
func.func private @f() attributes {baechi.cost = 3 : i64}

// -----

// expected-error @+1 {{the time of kind 'host' is negative: -1 ns}}
func.func private @f() attributes {baechi.cost = #baechi.cost<time_ns = {host = -1}, scratch = 0>}

// -----

// expected-error @+1 {{device kind 'host' twice}}
func.func private @f() attributes {baechi.cost = #baechi.cost<time_ns = {host = 1, host = 2}, scratch = 0>}

// -----

// expected-error @+1 {{negative scratch of -2 bytes}}
func.func private @f() attributes {baechi.cost = #baechi.cost<time_ns = {host = 1}, scratch = -2>}

// -----

// expected-error @+1 {{estimated names "gpu", which is no kind that has a time}}
func.func private @f() attributes {baechi.cost = #baechi.cost<time_ns = {host = 1}, scratch = 0, estimated = ["host", "gpu"]>}

// -----

// expected-error @+1 {{estimated names 7 : i64, which is no kind that has a time}}
func.func private @f() attributes {baechi.cost = #baechi.cost<time_ns = {host = 1}, scratch = 0, estimated = [7]>}

// -----

// expected-error @+1 {{'baechi.sends' must be an array of #baechi.transfer}}
func.func private @f() attributes {baechi.sends = [3]}

// -----

// expected-error @+1 {{a transfer's result must not be negative}}
func.func private @f() attributes {baechi.sends = [#baechi.transfer<result = -1, from = "a", to = "b", start = 0, end = 0>]}

// -----

// expected-error @+1 {{a transfer from 'a' to itself}}
func.func private @f() attributes {baechi.sends = [#baechi.transfer<result = 0, from = "a", to = "a", start = 0, end = 0>]}

// -----

// expected-error @+1 {{a transfer from 3 ns to 2 ns}}
func.func private @f() attributes {baechi.sends = [#baechi.transfer<result = 0, from = "a", to = "b", start = 3, end = 2>]}

// -----

// expected-error @+1 {{argument 0: 'baechi.updated_by' names result 1, the function has 1}}
func.func private @f(tensor<4xf32> {baechi.updated_by = 1 : i64}) -> tensor<3xf32>

// -----

// expected-error @+1 {{argument 0: 'baechi.updated_by' must be a non-negative i64}}
func.func private @f(tensor<4xf32> {baechi.updated_by = -1 : i64}) -> tensor<3xf32>

// -----

// expected-error @+1 {{argument 0: 'baechi.updated_by' names result 0 of type 'tensor<3xf32>', the argument is 'tensor<4xf32>'}}
func.func private @f(tensor<4xf32> {baechi.updated_by = 0 : i64}) -> tensor<3xf32>

// -----

// expected-error @+1 {{argument 0: 'baechi.init' must be a dictionary with a kind}}
func.func private @f(tensor<4xf32> {baechi.init = 3}) -> tensor<3xf32>

// -----

// expected-error @+1 {{argument 0: unknown kind 'normal' of 'baechi.init'; known: constant, randint, uniform}}
func.func private @f(tensor<4xf32> {baechi.init = {kind = "normal"}}) -> tensor<3xf32>

// -----

// expected-error @+1 {{argument 0: 'baechi.init' of kind 'uniform' needs 'seed', an i64}}
func.func private @f(tensor<4xf32> {baechi.init = {kind = "uniform", low = 0.0, high = 1.0}}) -> tensor<3xf32>

// -----

// expected-error @+1 {{argument 0: 'baechi.init' of kind 'randint' needs 'low', an i64}}
func.func private @f(tensor<4xf32> {baechi.init = {kind = "randint", low = 0.0, high = 1, seed = 1}}) -> tensor<3xf32>

// -----

// expected-error @+1 {{argument 0: 'baechi.init' of kind 'constant' needs 'value', a number}}
func.func private @f(tensor<4xf32> {baechi.init = {kind = "constant"}}) -> tensor<3xf32>

// -----

// expected-error @+1 {{result 0: 'baechi.may_alias' must be an array of i64}}
func.func private @f() -> (tensor<3xf32> {baechi.may_alias = [0]})

// -----

// expected-error @+1 {{result 0: 'baechi.pin' has no meaning on a result; put it on the operator or argument that the result comes from}}
func.func private @f() -> (tensor<3xf32> {baechi.pin = "host0"})

// -----

// expected-error @+1 {{result 1: 'baechi.group' has no meaning on a result; put it on the operator or argument that the result comes from}}
func.func private @f() -> (tensor<3xf32>, tensor<3xf32> {baechi.group = "g"})

// -----

func.func @queue(%a: tensor<4xf32>) {
  // expected-error @+1 {{attribute 'queue' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  baechi.send %a to "gpu0" queue -1 seq 0 : tensor<4xf32>
  return
}

// -----

func.func @sequence() {
  // expected-error @+1 {{attribute 'seq' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  baechi.recv from "gpu0" queue 0 seq -1 : !baechi.future<tensor<4xf32>>
  return
}

// -----

func.func @await(%a: tensor<4xf32>) {
  // expected-error @+1 {{operand #0 must be a value that is on its way or a send that still reads its tensor}}
  baechi.await %a : tensor<4xf32>
  return
}

// -----

// expected-error @+1 {{a future is of a tensor, a vector or a scalar, not of 'memref<4xf32>'}}
func.func private @future(!baechi.future<memref<4xf32>>)

// -----

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'baechi.recompute' stands on 'func.call' only}}
  %0 = arith.addf %x, %x {baechi.recompute} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'baechi.joined' stands on 'func.call' only}}
  %0 = arith.addf %x, %x {baechi.joined} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'baechi.view' stands on 'tensor.extract_slice' only}}
  %0 = arith.addf %x, %x {baechi.view} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error @+1 {{wake_ns is not between 0 and a second: -1}}
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1>], link_model = unlimited, runtime = <step_ns = 0, operator_ns = 0, wake_ns = -1, shared_percent = 100>>} {}

// -----

// expected-error @+1 {{shared_percent is not between 1 and 10000: 0}}
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1>], link_model = unlimited, runtime = <step_ns = 0, operator_ns = 0, wake_ns = 0, shared_percent = 0>>} {}

// -----

// expected-error @+1 {{'baechi.carrier_costs' must be an array of two i64, not negative, the second at least 1}}
module attributes {baechi.carrier_costs = array<i64: 21000, 0>} {}

// -----

// expected-error @+1 {{'baechi.carrier_costs' stands on modules only}}
func.func private @f() attributes {baechi.carrier_costs = array<i64: 21000, 5200>}

// -----

// expected-error @+1 {{cores is not between 0 and 65536: -1}}
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1>], link_model = unlimited, runtime = <step_ns = 0, operator_ns = 0, wake_ns = 0, shared_percent = 100, cores = -1>>} {}

// -----

// expected-error @+1 {{a piece names what it is of}}
func.func private @f(tensor<2xf32> {baechi.piece = #baechi.piece<of = "", whole = tensor<4xf32>, dim = 0, start = 0, size = 2>})

// -----

// expected-error @+1 {{a piece is of a tensor of static shape, not of 'tensor<?xf32>'}}
func.func private @f(tensor<2xf32> {baechi.piece = #baechi.piece<of = "w", whole = tensor<?xf32>, dim = 0, start = 0, size = 2>})

// -----

// expected-error @+1 {{'tensor<4xf32>' has no dimension 1 to be cut along}}
func.func private @f(tensor<2xf32> {baechi.piece = #baechi.piece<of = "w", whole = tensor<4xf32>, dim = 1, start = 0, size = 2>})

// -----

// expected-error @+1 {{dimension 0 of 'tensor<4xf32>' does not have 3 equal parts}}
func.func private @f(tensor<2xf32> {baechi.piece = #baechi.piece<of = "w", whole = tensor<4xf32>, dim = 0, start = 0, size = 2, outer = 3>})

// -----

// expected-error @+1 {{a piece of 3 elements from 2 on is no part of 4}}
func.func private @f(tensor<3xf32> {baechi.piece = #baechi.piece<of = "w", whole = tensor<4xf32>, dim = 0, start = 2, size = 3>})

// -----

// expected-error @+1 {{argument 0: 'baechi.piece' is of type 'tensor<2xf32>', not 'tensor<3xf32>'}}
func.func private @f(tensor<3xf32> {baechi.piece = #baechi.piece<of = "w", whole = tensor<4xf32>, dim = 0, start = 0, size = 2>})

// -----

// expected-error @+1 {{result 0: 'baechi.piece' is of type 'tensor<2xf32>', not 'tensor<3xf32>'}}
func.func private @f() -> (tensor<3xf32> {baechi.piece = #baechi.piece<of = "w", whole = tensor<4xf32>, dim = 0, start = 0, size = 2>})

// -----

// expected-error @+1 {{argument 0: 'baechi.piece' must be a #baechi.piece}}
func.func private @f(tensor<3xf32> {baechi.piece = 3 : i64})

// -----

// expected-error @+1 {{'baechi.piece' stands on a function's arguments or results only}}
module attributes {baechi.piece = #baechi.piece<of = "w", whole = tensor<4xf32>, dim = 0, start = 0, size = 2>} {}

// -----

func.func @step(%x: tensor<4xf32>) {
  // expected-error @+1 {{'baechi.carried' stands on messages only}}
  %0 = math.exp %x {baechi.carried = 0 : i64} : tensor<4xf32>
  return
}

// -----

func.func @step() {
  // expected-error @+1 {{'baechi.priority' stands on 'baechi.send' only}}
  %0 = baechi.recv from "a" queue 0 seq 0 {baechi.priority = 0 : i64} : !baechi.future<tensor<4xf32>>
  return
}
