// What cannot be placed is an error at its place.
// RUN: baechi-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect --baechi-annotate-costs --baechi-place="metf machine=host:2@1GiB budget=0" --baechi-partition

// expected-error @+1 {{argument 0 of the step has type 'tensor<*xf32>'; what can be placed are tensors and vectors of static shape and scalars, each smaller than 2^48 bytes}}
func.func @unranked(%x: tensor<*xf32>) { return }

// -----

// expected-error @+1 {{argument 0 of the step has type 'tensor<4611686018427387904xf32>'}}
func.func @huge(%x: tensor<4611686018427387904xf32>) { return }

// -----

// expected-error @+1 {{argument 0 of the step has type 'tensor<3037000500x3037000500xi1>'}}
func.func @overflow(%x: tensor<3037000500x3037000500xi1>) { return }

// -----

// expected-error @+1 {{argument 0 of the step has type 'vector<[4]xf32>'}}
func.func @scalable(%x: vector<[4]xf32>) { return }

// -----

// An address means nothing on another device.
llvm.func @pointer(%x: i64) -> i64 {
  // expected-error @+1 {{'llvm.inttoptr' op has a result of type '!llvm.ptr'}}
  %p = llvm.inttoptr %x : i64 to !llvm.ptr
  %0 = llvm.ptrtoint %p : !llvm.ptr to i64
  llvm.return %0 : i64
}

// -----

func.func @token(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'stablehlo.create_token' op has a result of type '!stablehlo.token'}}
  %t = "stablehlo.create_token"() : () -> !stablehlo.token
  return %x : tensor<4xf32>
}

// -----

func.func @layout(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'other.quantize' op has a result of type 'tensor<4x!other.i4>'}}
  %q = "other.quantize"(%x) : (tensor<4xf32>) -> tensor<4x!other.i4>
  return %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{the step has several blocks; unstructured control flow cannot be placed}}
llvm.func @blocks(%x: i32, %c: i1) -> i32 {
  llvm.cond_br %c, ^a, ^b
^a:
  llvm.return %x : i32
^b:
  llvm.unreachable
}

// -----

llvm.func @unreachable(%x: i32) -> i32 {
  // expected-error @+1 {{the step must end by returning its results}}
  llvm.unreachable
}

// -----

func.func @unknown_end(%x: tensor<4xf32> {baechi.updated_by = 0 : i64}) -> tensor<4xf32> {
  // expected-error @+1 {{the step must end by returning its results}}
  "other.end"() : () -> ()
}

// -----

func.func @recursive(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'func.call' op uses the step @recursive itself, which is no function any more once it is partitioned}}
  %0 = call @recursive(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @messages(%x: tensor<4xf32>) {
  // expected-error @+1 {{'baechi.send' op belongs to a partitioned program; place the program that was partitioned}}
  %t = baechi.send %x to "host1" queue 0 seq 0 : tensor<4xf32>
  return
}

// -----

// Sums of memory do not overflow: the error has the true numbers.
// expected-error @+1 {{no placement can fit the memories}}
func.func @large(%a: tensor<70368744177664xf32>, %b: tensor<70368744177664xf32>) -> tensor<70368744177664xf32> {
  %0 = arith.addf %a, %b : tensor<70368744177664xf32>
  %1 = arith.addf %0, %b : tensor<70368744177664xf32>
  return %1 : tensor<70368744177664xf32>
}

// -----

// Without a func.func, functions of other dialects are candidates.
// expected-error @+1 {{a program needs one public function, its step; this module has 2: @a @b}}
module {
  llvm.func @a(%x: i32) -> i32 {
    llvm.return %x : i32
  }
  llvm.func @b(%x: i32) -> i32 {
    llvm.return %x : i32
  }
}
