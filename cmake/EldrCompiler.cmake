# SPDX-License-Identifier: Apache-2.0
# One set of compiler rules for all of the project's own code.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo" FORCE)
endif()

# -O3 costs compile time; the loops that gain by it ask for it themselves (calibrator/CMakeLists.txt).
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

find_program(ELDR_CCACHE ccache)
if(ELDR_CCACHE)
  # Paths are hashed relative to the source tree, so that clones and build folders share what was compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${ELDR_CCACHE}")
endif()
find_program(ELDR_MOLD mold)
if(ELDR_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# Every target of the project links this one: public headers of libraries are system headers and stay out of -Werror.
add_library(eldr_rules INTERFACE)
target_compile_options(eldr_rules INTERFACE -Wall -Wextra -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 takes "literal" + std::string for overlapping memory (GCC bug 105651, mended in 13).
  target_compile_options(eldr_rules INTERFACE -Wno-restrict)
endif()
target_include_directories(eldr_rules INTERFACE "${CMAKE_SOURCE_DIR}" "${CMAKE_BINARY_DIR}/generated")
find_package(Threads REQUIRED)
target_link_libraries(eldr_rules INTERFACE Threads::Threads)

if(ELDR_SANITIZE)
  add_compile_options(-fsanitize=${ELDR_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${ELDR_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # The checks that sanitizers put in hide from GCC what is set; the release build keeps the warning.
    target_compile_options(eldr_rules INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()
if(ELDR_BUILD_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "ELDR_BUILD_FUZZERS needs clang: configure with -DCMAKE_CXX_COMPILER=clang++-14")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
