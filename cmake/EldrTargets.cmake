# SPDX-License-Identifier: Apache-2.0
# eldr_library(name SOURCES ... DEPS ... SYSTEM_DEPS ...)  one layer of the project, alias eldr::<name>
function(eldr_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(eldr_${name} STATIC ${ARG_SOURCES})
  add_library(eldr::${name} ALIAS eldr_${name})
  target_link_libraries(eldr_${name} PUBLIC eldr_rules ${ARG_DEPS})
endfunction()

# eldr_program(name SOURCES ... DEPS ...)  an installed program in build/bin
function(eldr_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE eldr_rules ${ARG_DEPS})
  install(TARGETS ${name} RUNTIME DESTINATION bin COMPONENT ${name})
endfunction()

# eldr_test(name SOURCES ... DEPS ... [LABEL unit|integration] [TIMEOUT seconds])
# One GoogleTest binary, one CTest entry. "unit" runs without services; "integration" needs the API server
# that scripts/test starts (ELDR_TEST_KUBECONFIG) and skips, saying so, without it.
function(eldr_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 180)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE eldr_rules ${ARG_DEPS} GTest::gmock GTest::gtest GTest::gtest_main)
  target_compile_options(${name} PRIVATE -O0)  # what is tested is optimised; the tests need only compile quickly
  target_compile_definitions(${name} PRIVATE ELDR_SOURCE_DIR="${CMAKE_SOURCE_DIR}" ELDR_BINARY_DIR="${CMAKE_BINARY_DIR}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT "GTEST_OUTPUT=xml:${CMAKE_BINARY_DIR}/reports/${ARG_LABEL}/;GTEST_COLOR=no")
endfunction()
