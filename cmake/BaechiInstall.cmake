# The install tree of find_package(Baechi): headers, exported targets and the
# package's configuration (docs/package.md). Libraries and tools install
# themselves where they are defined.
include(CMakePackageConfigHelpers)
set(BAECHI_PACKAGE_DIR lib/cmake/Baechi)

set(BAECHI_HEADER_DIRS Loops Placement Replicas Report Runtime)
if(BAECHI_ENABLE_MLIR)
  list(APPEND BAECHI_HEADER_DIRS
    Analysis Conversion Costs Dialect Driver Interfaces Pipelines Target Transforms)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/include/Baechi DESTINATION include
          FILES_MATCHING PATTERN "*.inc")
  install(DIRECTORY include/Baechi-c DESTINATION include)
  install(EXPORT BaechiMLIR NAMESPACE Baechi:: DESTINATION ${BAECHI_PACKAGE_DIR}
          FILE BaechiMLIRTargets.cmake)
endif()
foreach(dir IN LISTS BAECHI_HEADER_DIRS)
  install(DIRECTORY include/Baechi/${dir} DESTINATION include/Baechi
          FILES_MATCHING PATTERN "*.h" PATTERN "*.td")
endforeach()
install(EXPORT Baechi NAMESPACE Baechi:: DESTINATION ${BAECHI_PACKAGE_DIR}
        FILE BaechiTargets.cmake)

# What a wheel holds within the Python package (pyproject.toml): the extension and
# the programs that baechi.tools looks for, with the library that they link steps to.
foreach(module
        BaechiPython BaechiPythonCompiler BaechiPythonLoops BaechiReplicasC)
  if(TARGET ${module})
    install(TARGETS ${module} LIBRARY DESTINATION . COMPONENT Python
            EXCLUDE_FROM_ALL)
  endif()
endforeach()
foreach(tool baechi-opt baechi-place baechi-run baechi-translate)
  if(TARGET ${tool})
    install(TARGETS ${tool} RUNTIME DESTINATION bin COMPONENT Python
            EXCLUDE_FROM_ALL)
  endif()
endforeach()
install(TARGETS BaechiRuntime ARCHIVE DESTINATION lib COMPONENT Python
        EXCLUDE_FROM_ALL)
# Of the MPI that was found, if any; baechi-run looks for it at this place.
if(TARGET BaechiMpi)
  install(TARGETS BaechiMpi LIBRARY DESTINATION lib COMPONENT Python
          EXCLUDE_FROM_ALL)
endif()

get_property(BAECHI_MLIR_LIBRARIES GLOBAL PROPERTY BAECHI_MLIR_LIBRARIES)
list(TRANSFORM BAECHI_MLIR_LIBRARIES REPLACE "^Baechi" "Baechi::")
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/BaechiConfig.cmake.in
  ${PROJECT_BINARY_DIR}/BaechiConfig.cmake
  INSTALL_DESTINATION ${BAECHI_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/BaechiConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/baechi)
install(FILES ${PROJECT_BINARY_DIR}/BaechiConfig.cmake
              ${PROJECT_BINARY_DIR}/BaechiConfigVersion.cmake
        DESTINATION ${BAECHI_PACKAGE_DIR})
