// RUN: baechi-opt %s --split-input-file --verify-diagnostics --baechi-split

// expected-error@below {{argument 0 asks for pieces of 5 elements in all, and dimension 0 of 'tensor<4xf32>' has 4}}
func.func @sizes(%x: tensor<4xf32> {baechi.split = #baechi.split<dim = 0, sizes = [3, 2]>}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error@below {{argument 0 asks to be cut along dimension 1, which 'tensor<4xf32>' does not have}}
func.func @dimension(%x: tensor<4xf32> {baechi.split = #baechi.split<dim = 1, sizes = [2, 2]>}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

func.func @illegal(%x: tensor<4xf32>) -> tensor<2xf32> {
  // expected-error@below {{cannot be cut along dimension 0: it takes or writes only a part of the dimension}}
  %y = tensor.extract_slice %x[0] [2] [1] {baechi.split = #baechi.split<dim = 0, sizes = [1, 1]>} : tensor<4xf32> to tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

func.func @twice(%x: tensor<4xf32> {baechi.split = #baechi.split<dim = 0, sizes = [2, 2]>}) -> tensor<4xf32> {
  // expected-error@below {{follows another 'baechi.split' already; keep one of them}}
  %y = math.exp %x {baechi.split = #baechi.split<dim = 0, sizes = [1, 3]>} : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// expected-error@below {{argument 0 asks for one piece; what reads it can}}
func.func @one(%x: tensor<4xf32> {baechi.split = #baechi.split<dim = 0, sizes = [4]>}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error@below {{a split's sizes must be positive and below 2^48, one is 0}}
func.func @empty(%x: tensor<4xf32> {baechi.split = #baechi.split<dim = 0, sizes = [4, 0]>}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error@below {{argument 0: 'baechi.split' must be a #baechi.split}}
func.func @kind(%x: tensor<4xf32> {baechi.split = 2 : i64}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error@below {{a split's dim must not be negative, it is -1}}
func.func @negative(%x: tensor<4xf32> {baechi.split = #baechi.split<dim = -1, sizes = [2, 2]>}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

func.func @mixed(%x: tensor<2x3xf32>) -> tensor<6xf32> {
  // expected-error@below {{cannot be cut along dimension 0: it reshapes the dimension into parts that are no pieces}}
  %y = tensor.collapse_shape %x [[0, 1]] {baechi.split = #baechi.split<dim = 0, sizes = [2, 4]>} : tensor<2x3xf32> into tensor<6xf32>
  return %y : tensor<6xf32>
}

// -----

func.func @joined(%x: tensor<2xf32>) -> tensor<4xf32> {
  // expected-error@below {{cannot be cut along dimension 0: it joins tensors along the dimension}}
  %y = tensor.concat dim(0) %x, %x {baechi.split = #baechi.split<dim = 0, sizes = [2, 2]>} : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @other(%x: f32) -> tensor<2xf32> {
  // expected-error@below {{cannot be cut along dimension 0: an operation of its kind is not cut}}
  %y = tensor.from_elements %x, %x {baechi.split = #baechi.split<dim = 0, sizes = [1, 1]>} : tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

func.func @nothing(%x: tensor<0x4xf32>) -> tensor<0x4xf32> {
  // expected-error@below {{cannot be cut along dimension 1: its tensors have no static shape, or no elements}}
  %y = math.exp %x {baechi.split = #baechi.split<dim = 1, sizes = [2, 2]>} : tensor<0x4xf32>
  return %y : tensor<0x4xf32>
}

// -----

func.func private @sink(tensor<4xf32>)
func.func @effect(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{asks to be cut, and has no result}}
  call @sink(%x) {baechi.split = #baechi.split<dim = 0, sizes = [2, 2]>} : (tensor<4xf32>) -> ()
  return %x : tensor<4xf32>
}

// -----

// expected-error@below {{argument 0 asks to be cut along dimension 0, and nothing that reads it can be}}
func.func @unread(%x: tensor<4xf32> {baechi.split = #baechi.split<dim = 0, sizes = [2, 2]>}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error@below {{argument 1 asks to be cut along dimension 0, and nothing that reads it can be: it follows another cut}}
func.func @meet(%x: tensor<6xf32> {baechi.split = #baechi.split<dim = 0, sizes = [3, 3]>}, %y: tensor<6xf32> {baechi.split = #baechi.split<dim = 0, sizes = [2, 2, 2]>}) -> tensor<6xf32> {
  // expected-note@below {{stays whole: it follows another cut}}
  %z = arith.addf %x, %y : tensor<6xf32>
  return %z : tensor<6xf32>
}
