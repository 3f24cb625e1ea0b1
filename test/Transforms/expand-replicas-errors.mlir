// RUN: baechi-opt %s --allow-unregistered-dialect --split-input-file --verify-diagnostics --baechi-expand-replicas --baechi-replicate=replicas=2

// expected-error@below {{the step is written for 4 replicas, and 2 are asked for: ask for as many, or change the axis that it is written along}}
func.func @four(%x: tensor<4xf32> {baechi.batched}) -> tensor<4xf32> {
  %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

module attributes {mhlo.num_replicas = 65 : i32} {
  // expected-error@below {{the step can have 1 to 64 replicas, not 65}}
  func.func @many(%x: tensor<4xf32> {baechi.batched}) -> tensor<4xf32> {
    %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<> : tensor<0x0xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

// expected-error@below {{is one replica's program, and nothing differs between replicas: mark the arguments that each has its own part of (baechi.batched)}}
func.func @same(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error@below {{argument 0 says which replicas have which parts (baechi.batched), and each has one of its own in one replica's program: say baechi.batched alone}}
func.func @layout(%x: tensor<4xf32> {baechi.batched = [array<i64: 1, 2>]}) -> tensor<4xf32> {
  %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error@below {{argument 0, of which each replica has its own part (baechi.batched), has type 'tensor<f32>': parts lie along the first dimension; give it one}}
func.func @scalar(%x: tensor<f32> {baechi.batched}) -> tensor<f32> {
  %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// expected-error@below {{argument 0 is one for all replicas, and each computes another next value of it, result 0: exchange its gradient (stablehlo.all_reduce), or mark the argument as each replica's own (baechi.batched)}}
func.func @forgotten(%w: tensor<4xf32> {baechi.updated_by = 0 : i64}, %x: tensor<4xf32> {baechi.batched}) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = arith.subf %w, %x : tensor<4xf32>
  return %1, %0 : tensor<4xf32>, tensor<4xf32>
}

// -----

// expected-error@below {{result 1, of which each replica has its own, has type 'tensor<f32>': parts lie along the first dimension; give it one, or exchange it (stablehlo.all_reduce)}}
func.func @loss(%x: tensor<1xf32> {baechi.batched}) -> (tensor<1xf32>, tensor<f32>) {
  %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) : (tensor<1xf32>) -> tensor<1xf32>
  %1 = tensor.collapse_shape %x [] : tensor<1xf32> into tensor<f32>
  return %0, %1 : tensor<1xf32>, tensor<f32>
}

// -----

func.func @branch(%x: tensor<4xf32> {baechi.batched}, %way: index) -> tensor<4xf32> {
  %0 = scf.index_switch %way -> tensor<4xf32>
  case 0 {
    // expected-error@below {{is within a branch, which one device computes: exchange values outside of it}}
    %next = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %next : tensor<4xf32>
  }
  default {
    scf.yield %x : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @turns_of_data(%x: tensor<4xf32> {baechi.batched}, %turns: index) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  // expected-error@below {{is a loop in which replicas exchange values, and how many turns it has is not known: let it count from one constant to another, or exchange values outside of it}}
  %0 = scf.for %i = %zero to %turns step %one iter_args(%sum = %x) -> tensor<4xf32> {
    %next = "stablehlo.collective_permute"(%sum) <{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %next : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @too_many_turns(%x: tensor<4xf32> {baechi.batched}) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %turns = arith.constant 5000 : index
  // expected-error@below {{is a loop in which replicas exchange values, which is written turn by turn: its 5000 turns of 4 operators of all replicas are more than 16384 of a step: exchange values after it, or let a step do fewer turns}}
  %0 = scf.for %i = %zero to %turns step %one iter_args(%sum = %x) -> tensor<4xf32> {
    %next = "stablehlo.collective_permute"(%sum) <{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %next : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

module attributes {mhlo.num_replicas = 2 : i32} {
  func.func @number(%x: tensor<4xf32> {baechi.batched}) -> tensor<ui32> {
    // expected-error@below {{has a result that is no tensor of one signless integer, which numbers of replicas are here}}
    %0 = "stablehlo.replica_id"() : () -> tensor<ui32>
    return %0 : tensor<ui32>
  }
}

// -----

module attributes {mhlo.num_replicas = 4 : i32} {
  func.func @groups(%x: tensor<4xf32> {baechi.batched}) -> tensor<4xf32> {
    // expected-error@below {{has replica_groups that do not divide the 4 replicas: give groups of one size that have each of them once}}
    %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

func.func @dynamic(%x: tensor<4xf32> {baechi.batched}, %y: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error@below {{exchanges no tensor of static shape}}
  %0 = "stablehlo.all_reduce"(%y) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

func.func @types(%x: tensor<4xf32> {baechi.batched}) -> tensor<4xf32> {
  // expected-error@below {{makes 'tensor<8xf32>' of its operand, and says 'tensor<4xf32>'}}
  %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @combiner(%x: tensor<4xf32> {baechi.batched}) -> tensor<4xf32> {
  // expected-error@below {{joins values by something else than one add, multiply, maximum, minimum, and, or or xor of its two arguments: exchange values by one of these}}
  %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = "stablehlo.subtract"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @form(%x: tensor<4xf32> {baechi.batched}) -> tensor<8xf32> {
  // expected-error@below {{has attributes that do not fit its operand and the replicas}}
  %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @unknown(%x: tensor<4xf32> {baechi.batched}) -> tensor<4xf32> {
  // expected-error@below {{is not known of replicas: all_reduce, all_gather, reduce_scatter, all_to_all, collective_permute, replica_id and partition_id are; lower what else is of StableHLO to linalg before}}
  %0 = "stablehlo.collective_broadcast"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func private @called(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{is not in the step itself: inline the function that it is in}}
  %0 = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @step(%x: tensor<4xf32> {baechi.batched}) -> tensor<4xf32> {
  %0 = call @called(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

module attributes {mhlo.num_replicas = 2 : i32, mhlo.num_partitions = 2 : i32} {
  // expected-error@below {{is a program of 2 replicas of 2 partitions: one of the two numbers must be 1 (mhlo.num_replicas, mhlo.num_partitions)}}
  func.func @both(%x: tensor<4xf32> {baechi.batched}) -> tensor<4xf32> {
    %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%s) : (tensor<f32>) -> ()
    }) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @replicas(%x: tensor<4xf32> {baechi.batched}) -> tensor<4xf32> {
    // expected-error@below {{is between replicas, and the module has partitions (mhlo.num_partitions): give it a channel_handle and use_global_device_ids, or the module mhlo.num_replicas in place of those}}
    %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%s) : (tensor<f32>) -> ()
    }) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

module attributes {mhlo.num_replicas = 2 : i32} {
  func.func @channel(%x: tensor<4xf32> {baechi.batched}) -> tensor<4xf32> {
    // expected-error@below {{is between partitions, as it has a channel, and the module has replicas (mhlo.num_replicas): take the channel away, or give the module mhlo.num_partitions in place of those}}
    %0 = "stablehlo.collective_permute"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

func.func @partition(%x: tensor<4xf32> {baechi.batched}) -> (tensor<4xf32>, tensor<i32>) {
  // expected-error@below {{numbers partitions, and the module does not say that it has any: give it mhlo.num_partitions}}
  %n = "stablehlo.partition_id"() : () -> tensor<i32>
  %0 = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %n : tensor<4xf32>, tensor<i32>
}

// -----

// An i8 that wraps: 0, 50, 100, -106, -56, ...
func.func @wrap(%x: tensor<4xf32> {baechi.batched}) -> tensor<4xf32> {
  %zero = arith.constant dense<0> : tensor<i8>
  // expected-error@below {{is a loop in which replicas exchange values, and how many turns it has is not known}}
  %1:2 = scf.while (%c = %zero, %s = %x) : (tensor<i8>, tensor<4xf32>) -> (tensor<i8>, tensor<4xf32>) {
    %n = tensor.extract %c[] : tensor<i8>
    %end = arith.constant 120 : i8
    %more = arith.cmpi slt, %n, %end : i8
    scf.condition(%more) %c, %s : tensor<i8>, tensor<4xf32>
  } do {
  ^bb0(%c: tensor<i8>, %s: tensor<4xf32>):
    %by = arith.constant dense<50> : tensor<i8>
    %next = arith.addi %c, %by : tensor<i8>
    %p = "stablehlo.collective_permute"(%s) <{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    %u = "test.use"(%p, %c) : (tensor<4xf32>, tensor<i8>) -> tensor<4xf32>
    scf.yield %next, %u : tensor<i8>, tensor<4xf32>
  }
  return %1#1 : tensor<4xf32>
}

// -----

// Each turn adds 1 five times.
#a = affine_map<(d0) -> (d0)>
#n = affine_map<(d0) -> ()>
func.func @reduce(%x: tensor<4xf32> {baechi.batched}, %shape: tensor<5xf32>) -> tensor<4xf32> {
  %zero = arith.constant dense<0> : tensor<i32>
  %one = arith.constant dense<1> : tensor<i32>
  // expected-error@below {{is a loop in which replicas exchange values, and how many turns it has is not known}}
  %1:2 = scf.while (%c = %zero, %s = %x) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>) {
    %n = tensor.extract %c[] : tensor<i32>
    %end = arith.constant 10 : i32
    %more = arith.cmpi slt, %n, %end : i32
    scf.condition(%more) %c, %s : tensor<i32>, tensor<4xf32>
  } do {
  ^bb0(%c: tensor<i32>, %s: tensor<4xf32>):
    %next = linalg.generic {indexing_maps = [#n, #a, #n], iterator_types = ["reduction"]} ins(%one, %shape : tensor<i32>, tensor<5xf32>) outs(%c : tensor<i32>) {
    ^bb0(%i: i32, %sh: f32, %o: i32):
      %t = arith.addi %o, %i : i32
      linalg.yield %t : i32
    } -> tensor<i32>
    %p = "stablehlo.collective_permute"(%s) <{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    %u = "test.use"(%p, %c) : (tensor<4xf32>, tensor<i32>) -> tensor<4xf32>
    scf.yield %next, %u : tensor<i32>, tensor<4xf32>
  }
  return %1#1 : tensor<4xf32>
}
