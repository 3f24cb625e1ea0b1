// RUN: shop-opt --shop-place
// The mixes run on both hosts, with the scratch that they ask for; the view is
// no operator; the update is in place, so it lies where its argument does.

// CHECK: module @host0
// CHECK: shop.mix {{.*}}baechi.cost = #baechi.cost<time_ns = {host = 500000}, scratch = 4096>
// CHECK: module @host1
// CHECK: func.func @step(%[[W:[a-z0-9]+]]: tensor<64xf32> {{{.*}}baechi.offset = [[AT:[0-9]+]] : i64
// CHECK: shop.mix {{.*}}baechi.cost = #baechi.cost<time_ns = {host = 500000}, scratch = 4096>
// CHECK: shop.view %{{[0-9]+}} : (tensor<64xf32>) -> tensor<8x8xf32>
// CHECK: %[[G:.*]] = shop.multiply {{.*}}baechi.cost = #baechi.cost<time_ns = {cuda = 11400, host = 1280200}, scratch = 0>
// CHECK: shop.update %[[W]], %[[G]] {{.*}}baechi.offset = array<i64: [[AT]]>
// CHECK-NOT: baechi.copy
func.func @step(%w: tensor<64xf32> {baechi.updated_by = 0 : i64}, %x: tensor<64xf32>) -> tensor<64xf32> {
  %a = shop.mix %x, %x time 500000 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %b = shop.mix %x, %w time 500000 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %v = shop.view %a : (tensor<64xf32>) -> tensor<8x8xf32>
  %g = shop.multiply %v, %b : (tensor<8x8xf32>, tensor<64xf32>) -> tensor<64xf32>
  %n = shop.update %w, %g : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %n : tensor<64xf32>
}
