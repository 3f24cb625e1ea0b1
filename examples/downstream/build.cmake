# cmake -DBUILD=DIR -DWORK=DIR -DPROJECT=NAME ... -P build.cmake: installs the
# build tree BUILD below WORK and configures, builds and tests the project NAME
# of this folder against what was installed there.
set(source ${CMAKE_CURRENT_LIST_DIR}/${PROJECT})
set(tree ${WORK}/${PROJECT})
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
file(REMOVE_RECURSE ${tree})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${tree}/install)
run(${CMAKE_COMMAND} -S ${source} -B ${tree}/build -G ${GENERATOR}
    -DCMAKE_BUILD_TYPE=${BUILD_TYPE} -DCMAKE_PREFIX_PATH=${tree}/install
    -DCMAKE_C_COMPILER=${C_COMPILER} -DCMAKE_CXX_COMPILER=${CXX_COMPILER}
    -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER})
run(${CMAKE_COMMAND} --build ${tree}/build)
run(${CMAKE_CTEST_COMMAND} --test-dir ${tree}/build --output-on-failure)
