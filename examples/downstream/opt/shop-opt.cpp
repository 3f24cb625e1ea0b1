// A small compiler around Baechi's passes: alone (--baechi-place, ...), or as
// the pipeline --shop-place, which is built in C++.
#include "Baechi/Pipelines/Pipelines.h"
#include "Baechi/Transforms/Passes.h"
#include "Shop.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

static void buildPlacePipeline(mlir::OpPassManager &manager) {
  manager.addPass(baechi::createAnnotateCosts());
  manager.addPass(baechi::createColocate());
  baechi::PlaceOptions options;
  options.placer = "metf";
  options.machine = "host:2@1MiB";
  manager.addPass(baechi::createPlace(options));
  baechi::buildPlanPipeline(manager);
}

int main(int argc, char **argv) {
  baechi::registerAllPasses();
  mlir::PassPipelineRegistration<>("shop-place", "places for two hosts",
                                   buildPlacePipeline);
  mlir::DialectRegistry registry;
  baechi::registerAllDialects(registry);
  registry.insert<shop::ShopDialect>();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Shop's compiler\n", registry));
}
