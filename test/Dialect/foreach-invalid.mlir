// Every error of loops' verifiers and parsers.
// RUN: baechi-opt %s --split-input-file --verify-diagnostics

func.func @f() {
  // expected-error @+1 {{'baechi.foreach' op has no keys: give it one at least}}
  baechi.foreach ordered () { baechi.yield }
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{has 1 lower bounds and 2 upper ones}}
  "baechi.foreach"() <{lowers = array<i64: 0>, uppers = array<i64: 1, 1>, operandSegmentSizes = array<i32: 0, 0, 0, 0>}> ({
  ^bb0(%i: index):
    baechi.yield
  }) : () -> ()
  return
}

// -----

func.func @f(%n: index) {
  // expected-error @+1 {{has 1 operands for 0 bounds that are not constant}}
  "baechi.foreach"(%n) <{lowers = array<i64: 0>, uppers = array<i64: 1>, operandSegmentSizes = array<i32: 0, 1, 0, 0>}> ({
  ^bb0(%i: index):
    baechi.yield
  }) : (index) -> ()
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{key 'j' is beyond 2^40: 2000000000000}}
  baechi.foreach ordered (%i in 0 to 2, %j in 0 to 2000000000000) { baechi.yield }
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{key 'i' begins at 3, after its end at 2}}
  baechi.foreach ordered (%i in 3 to 2) { baechi.yield }
  return
}

// -----

func.func @f(%k: memref<4xindex>) {
  // expected-error @+1 {{has entries of key arrays: 'where' is of ranges; leave the entries out of the arrays}}
  baechi.foreach ordered (%i = %k : memref<4xindex> in 0 to 2) where affine_set<(i) : (i >= 0)> { baechi.yield }
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{has 1 keys: 'where' is a set of as many dimensions and no symbols}}
  baechi.foreach ordered (%i in 0 to 2) where affine_set<(i)[n] : (i - n >= 0)> { baechi.yield }
  return
}

// -----

func.func @f(%k: memref<4xindex>) {
  // expected-error @+1 {{has 1 key arrays for 2 keys: all keys have one, or none}}
  baechi.foreach ordered (%i = %k : memref<4xindex> in 0 to 2, %j in 0 to 4) { baechi.yield }
  return
}

// -----

func.func @f(%k: memref<4xf32>) {
  // expected-error @+1 {{has keys of ranges: values are of entries of key arrays; name what they lie in in 'arrays'}}
  baechi.foreach ordered (%i in 0 to 2) values(%x = %k : memref<4xf32>) { baechi.yield }
  return
}

// -----

func.func @f(%k: memref<4xindex>, %v: memref<5xf32>) {
  // expected-error @+1 {{has 4 entries by one of its operands and 5 by another}}
  baechi.foreach ordered (%i = %k : memref<4xindex> in 0 to 2) values(%x = %v : memref<5xf32>) { baechi.yield }
  return
}

// -----

func.func @f(%k: memref<4xindex>, %v: memref<4x2xf32>) {
  // expected-error @+1 {{what has an element an entry is a memref of one dimension, not 'memref<4x2xf32>'}}
  baechi.foreach ordered (%i = %k : memref<4xindex> in 0 to 2) values(%x = %v : memref<4x2xf32>) { baechi.yield }
  return
}

// -----

func.func @f(%k: memref<4xindex>, %v: memref<4x2xf32>) {
  // expected-error @+1 {{has values in 'memref<4x2xf32>': one element an entry is one dimension}}
  "baechi.foreach"(%k, %v) <{lowers = array<i64: 0>, uppers = array<i64: 1>, operandSegmentSizes = array<i32: 1, 0, 1, 0>}> ({
  ^bb0(%i: index, %x: f32):
    baechi.yield
  }) : (memref<4xindex>, memref<4x2xf32>) -> ()
  return
}

// -----

func.func @f(%a: memref<4xf32>) {
  // expected-error @+1 {{has array 1 twice: name it once}}
  baechi.foreach ordered (%i in 0 to 2) arrays(%b = %a : memref<4xf32>, %c = %a : memref<4xf32>) { baechi.yield }
  return
}

// -----

func.func @f(%k: memref<4xindex>) {
  // expected-error @+1 {{has array 0 among its keys or values, too: arrays overlap neither}}
  baechi.foreach ordered (%i = %k : memref<4xindex> in 0 to 2) arrays(%b = %k : memref<4xindex>) { baechi.yield }
  return
}

// -----

func.func @f(%a: memref<4xf32>) {
  // expected-error @+1 {{is ordered: no array can be buffered, as its writes would be seen late}}
  baechi.foreach ordered (%i in 0 to 2) arrays(%b = %a buffered : memref<4xf32>) { baechi.yield }
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{buffers array 0, of which there is none}}
  "baechi.foreach"() <{lowers = array<i64: 0>, uppers = array<i64: 1>, buffered = array<i64: 0>, operandSegmentSizes = array<i32: 0, 0, 0, 0>}> ({
  ^bb0(%i: index):
    baechi.yield
  }) : () -> ()
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{has 1 keys: its verdict names another}}
  baechi.foreach ordered (%i in 0 to 2) verdict #baechi.loop_verdict<scheme = disjoint, keys = [1]> { baechi.yield }
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{has 1 keys: its verdict's form has 2}}
  baechi.foreach ordered (%i in 0 to 2) verdict #baechi.loop_verdict<scheme = skewed, form = [1, 1]> { baechi.yield }
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{has 0 arrays: its verdict sums another}}
  baechi.foreach ordered (%i in 0 to 2) verdict #baechi.loop_verdict<scheme = independent, sums = [0]> { baechi.yield }
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{has no such dependence: #baechi.dependence<array = 0, from = "x", to = "y", distances = (1, 0)>}}
  baechi.foreach ordered (%i in 0 to 2) verdict #baechi.loop_verdict<scheme = serial, dependences = [#baechi.dependence<array = 0, from = "x", to = "y", distances = (1, 0)>]> { baechi.yield }
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{has a body of ('i32'), which should be of ('index'): keys, values, arrays}}
  "baechi.foreach"() <{lowers = array<i64: 0>, uppers = array<i64: 1>, operandSegmentSizes = array<i32: 0, 0, 0, 0>}> ({
  ^bb0(%i: i32):
    baechi.yield
  }) : () -> ()
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{has a body that does not end with 'baechi.yield'}}
  "baechi.foreach"() <{lowers = array<i64: 0>, uppers = array<i64: 1>, operandSegmentSizes = array<i32: 0, 0, 0, 0>}> ({
  ^bb0(%i: index):
    llvm.unreachable
  }) : () -> ()
  return
}

// -----

func.func @f(%k: memref<4xindex>, %v: memref<4xf32>) {
  baechi.foreach ordered (%i = %k : memref<4xindex> in 0 to 2) values(%x = %v : memref<4xf32>) {
    // expected-error @+1 {{gives ('index'), the loop's values are ('f32'): give a new one for each, or none}}
    baechi.yield %i : index
  }
  return
}

// -----

func.func @f(%a: memref<4xf32>) {
  baechi.foreach ordered (%i in 0 to 2) {
    // expected-error @+1 {{uses memory from outside the loop: name it in the loop's 'arrays'}}
    %0 = memref.load %a[%i] : memref<4xf32>
    baechi.yield
  }
  return
}

// -----

// expected-error @+1 {{a dependence is of an array, not of -1}}
func.func private @f() attributes {x = #baechi.dependence<array = -1, from = "x", to = "y", distances = (1)>}

// -----

// expected-error @+1 {{a dependence names two accesses}}
func.func private @f() attributes {x = #baechi.dependence<array = 0, from = "x", to = "", distances = (1)>}

// -----

// expected-error @+1 {{no distance is from 2 to 1}}
func.func private @f() attributes {x = #baechi.dependence<array = 0, from = "x", to = "y", distances = (2 to 1)>}

// -----

// expected-error @+1 {{a loop that is 'disjoint' names its keys}}
func.func private @f() attributes {x = #baechi.loop_verdict<scheme = disjoint>}

// -----

// expected-error @+1 {{a loop that is 'serial' has no 'keys'}}
func.func private @f() attributes {x = #baechi.loop_verdict<scheme = serial, keys = [0]>}

// -----

// expected-error @+1 {{a loop that is 'wavefront' names two keys or more}}
func.func private @f() attributes {x = #baechi.loop_verdict<scheme = wavefront, keys = [0]>}

// -----

// expected-error @+1 {{a loop that is 'timed' names its form}}
func.func private @f() attributes {x = #baechi.loop_verdict<scheme = timed>}

// -----

// expected-error @+1 {{a loop that is 'independent' has no 'form'}}
func.func private @f() attributes {x = #baechi.loop_verdict<scheme = independent, form = [1]>}

// -----

// expected-error @+1 {{'keys' are different numbers from 0 on}}
func.func private @f() attributes {x = #baechi.loop_verdict<scheme = disjoint, keys = [0, 0]>}

// -----

// expected-error @+1 {{'sums' are different numbers from 0 on}}
func.func private @f() attributes {x = #baechi.loop_verdict<scheme = independent, sums = [-1]>}

// -----

// expected-error @+1 {{'form' is a sum of one key at least}}
func.func private @f() attributes {x = #baechi.loop_verdict<scheme = skewed, form = [0, 0]>}

// -----

// expected-error @+1 {{'dependences' are #baechi.dependence}}
func.func private @f() attributes {x = #baechi.loop_verdict<scheme = serial, dependences = [1]>}
