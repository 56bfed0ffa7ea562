# Language, warnings, sanitizers and the compiler cache: everything that holds for every target.
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# solvers/ asks for -O3; elsewhere it buys nothing that was measured.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
# Of a library with more sources: as many at once as keep two cores busy.
set(STOWAGE_UNITY_BATCH 16)

find_program(STOWAGE_CCACHE ccache)
if(STOWAGE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Without this sloppiness ccache refuses every file that uses a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env "CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime"
      ${STOWAGE_CCACHE})
endif()

add_library(stowage_warnings INTERFACE)
target_compile_options(stowage_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wimplicit-fallthrough
  -Wno-missing-field-initializers  # aggregates here have default member initialisers
  -Werror)

if(STOWAGE_SANITIZE)
  add_compile_options(-fsanitize=${STOWAGE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${STOWAGE_SANITIZE})
  # What the sanitizers add makes GCC see uninitialised members in the standard library's <regex>.
  target_compile_options(stowage_warnings INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()

if(STOWAGE_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
