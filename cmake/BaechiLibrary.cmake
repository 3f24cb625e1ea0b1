# Targets without MLIR: warnings, sanitizers, one place for the flags.

if(BAECHI_SANITIZE)
  add_compile_options(-fsanitize=${BAECHI_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  # LLVM's own headers and libraries are built without RTTI checks in mind.
  if(BAECHI_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize=vptr,function)
  endif()
  add_link_options(-fsanitize=${BAECHI_SANITIZE})
endif()

# GCC 12 misreads libstdc++'s comparison of vectors.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-stringop-overread)
endif()
# Clang reports what libstdc++ 12 deprecates and uses in its own stable_sort.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options(-Wno-deprecated-declarations)
endif()

find_program(BAECHI_LLD NAMES ld.lld-22 ld.lld)
if(BAECHI_LLD AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_link_options(--ld-path=${BAECHI_LLD})
endif()

# baechi_add_headers(NAME headers...): headers of others that many files include and
# that are read once, for baechi_take_headers(TARGET NAME). Files still include
# what they use, and build with BAECHI_PRECOMPILED_HEADERS=OFF.
function(baechi_add_headers name)
  # Where GCC 12 optimises, it warns of more copies in strings with them (its bug 105329).
  if(NOT BAECHI_PRECOMPILED_HEADERS OR
     NOT (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR CMAKE_BUILD_TYPE STREQUAL "Debug"))
    return()
  endif()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "")
  add_library(${name} OBJECT ${source})
  target_precompile_headers(${name} PRIVATE ${ARGN})
  # Built anew in each clone, while objects come from ccache: it knows what they
  # are made with by this sum (scripts/build), not by a file full of paths.
  set_target_properties(${name} PROPERTIES CXX_COMPILER_LAUNCHER "")
  string(CONCAT sum "${CMAKE_CXX_COMPILER_VERSION} ${LLVM_PACKAGE_VERSION} "
    "${ARGN} ${CMAKE_BUILD_TYPE} ${CMAKE_CXX_FLAGS} ${BAECHI_SANITIZE}")
  set(pch ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${name}.dir/cmake_pch.hxx)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    set_target_properties(${name} PROPERTIES BAECHI_INCLUDE "-include-pch")
    string(APPEND pch ".pch")
  else() # which finds the one beside the header of that name
    set_target_properties(${name} PROPERTIES BAECHI_INCLUDE "-include")
    string(APPEND pch ".gch")
  endif()
  file(CONFIGURE OUTPUT ${pch}.sum CONTENT "${sum}")
  set_target_properties(${name} PROPERTIES BAECHI_HEADERS ${pch})
endfunction()

function(baechi_take_headers target headers)
  if(NOT TARGET ${headers})
    return()
  endif()
  # As target_precompile_headers(... REUSE_FROM) does, but by a path from the build's
  # folder, where ninja calls the compiler: one by its whole path would make an object
  # another one for ccache in each build and each clone.
  get_target_property(pch ${headers} BAECHI_HEADERS)
  get_target_property(include ${headers} BAECHI_INCLUDE)
  file(RELATIVE_PATH relative ${CMAKE_BINARY_DIR} ${pch})
  string(REGEX REPLACE "[.]gch$" "" relative ${relative})
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Winvalid-pch ${include} ${relative}>")
  # GCC takes them only where what they depend on is defined alike.
  target_compile_definitions(${target} PRIVATE
    $<TARGET_PROPERTY:${headers},COMPILE_DEFINITIONS>)
  get_target_property(sources ${target} SOURCES)
  set_property(SOURCE ${sources} APPEND PROPERTY OBJECT_DEPENDS ${pch})
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE") # Code as in libraries: the headers are of one kind.
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
endfunction()

# baechi_install_library(BaechiNAME PACKAGE): installs a library, for downstream
# projects Baechi::NAME of the targets PACKAGE (BaechiConfig.cmake.in).
function(baechi_install_library name package)
  string(REGEX REPLACE "^Baechi" "" short ${name})
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${short})
  target_compile_features(${name} INTERFACE cxx_std_20)
  target_include_directories(${name} INTERFACE $<INSTALL_INTERFACE:include>)
  install(TARGETS ${name} EXPORT ${package} ARCHIVE DESTINATION lib)
endfunction()

# baechi_add_library(NAME sources... [PACKAGE package] [LINK libs...]): a static
# library of plain C++ (exceptions and RTTI on) that knows nothing of MLIR.
function(baechi_add_library name)
  cmake_parse_arguments(ARG "" "PACKAGE" "LINK" ${ARGN})
  if(NOT ARG_PACKAGE)
    set(ARG_PACKAGE Baechi)
  endif()
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_compile_options(${name} PRIVATE -Wall -Wextra)
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  baechi_take_headers(${name} BaechiPlainHeaders)
  baechi_install_library(${name} ${ARG_PACKAGE})
endfunction()

function(baechi_add_tool name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_compile_options(${name} PRIVATE -Wall -Wextra)
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  baechi_take_headers(${name} BaechiPlainHeaders)
  install(TARGETS ${name} RUNTIME DESTINATION bin)
endfunction()

# baechi_add_unittest(NAME sources... LINK libs... [HEADERS headers]): a GoogleTest
# program whose cases ctest lists one by one, with the label BAECHI_TEST_LABEL.
function(baechi_add_unittest name)
  cmake_parse_arguments(ARG "" "HEADERS" "LINK" ${ARGN})
  if(NOT ARG_HEADERS)
    set(ARG_HEADERS BaechiTestHeaders)
  endif()
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_compile_options(${name} PRIVATE -Wall -Wextra)
  target_compile_definitions(${name} PRIVATE
    BAECHI_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gmock GTest::gtest_main)
  baechi_take_headers(${name} ${ARG_HEADERS})
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS ${BAECHI_TEST_LABEL})
endfunction()
