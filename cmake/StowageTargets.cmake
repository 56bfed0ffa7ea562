# One function per kind of target. Each takes the target's name, its SOURCES and its direct DEPS, nothing by
# pattern. Every target records its direct dependencies; stowage_write_link_graph() writes them to
# link_graph.txt, which tests/layers_test.cc holds against the layers.
include_guard()
include(StowageInstall)

function(_stowage_record name)
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  foreach(dep IN LISTS ARGN)
    set_property(GLOBAL APPEND_STRING PROPERTY STOWAGE_LINK_GRAPH "${folder} ${name} ${dep}\n")
  endforeach()
  set_property(GLOBAL APPEND_STRING PROPERTY STOWAGE_LINK_GRAPH "${folder} ${name} -\n")
endfunction()

function(_stowage_common name)
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  target_link_libraries(${name} PRIVATE $<BUILD_INTERFACE:stowage_warnings>)
  # Sources that are compiled together read their headers once. Those with options of their own (SIMD) stay apart, and so do
  # the searches of tests, which are written independently of each other.
  get_target_property(type ${name} TYPE)
  if(STOWAGE_UNITY AND NOT (type STREQUAL "STATIC_LIBRARY" AND CMAKE_CURRENT_SOURCE_DIR MATCHES "^${PROJECT_SOURCE_DIR}/tests/"))
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${STOWAGE_UNITY_BATCH})
  endif()
endfunction()

function(_stowage_program name)
  _stowage_common(${name})
  if(TARGET stowage_tsan)  # what ThreadSanitizer has to know of gRPC's threads
    target_link_libraries(${name} PRIVATE stowage_tsan)
  endif()
endfunction()

# stowage_library(name SOURCES a.cc ... DEPS direct ... )
function(stowage_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  _stowage_common(${name})
  target_link_libraries(${name} PUBLIC ${arg_DEPS})
  _stowage_record(${name} ${arg_DEPS})
  stowage_install_library(${name})
endfunction()

# stowage_torch_test_library(...): the same for tests with LibTorch, whose headers are read once for all sources. Optimised as the
# product is: benchmarks link it, and of a function that several objects have, the linker takes any.
function(stowage_torch_test_library name)
  stowage_library(${name} ${ARGN})
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${STOWAGE_UNITY} UNITY_BUILD_BATCH_SIZE ${STOWAGE_UNITY_BATCH})
endfunction()

# stowage_binary(name SOURCES main.cc DEPS direct ...)
function(stowage_binary name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  _stowage_program(${name})
  target_link_libraries(${name} PRIVATE ${arg_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  _stowage_record(${name} ${arg_DEPS})
  stowage_install_program(${name})
endfunction()

# stowage_torch_program(name LAUNCHER main.cc SOURCES a.cc ... DEPS direct ...): a program of the launcher alone, and beside it
# name.so, which it opens, of the sources and all that they need. Not for PATH: in libexec/stowage.
function(stowage_torch_program name)
  cmake_parse_arguments(arg "" "LAUNCHER" "SOURCES;DEPS" ${ARGN})
  set(folder ${CMAKE_INSTALL_LIBEXECDIR}/stowage)
  add_executable(${name} ${arg_LAUNCHER})
  target_link_libraries(${name} PRIVATE $<BUILD_INTERFACE:stowage_warnings> ${CMAKE_DL_LIBS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${folder})
  add_library(${name}-module MODULE ${arg_SOURCES})
  _stowage_program(${name}-module)
  target_link_libraries(${name}-module PRIVATE ${arg_DEPS})
  set_target_properties(${name}-module PROPERTIES PREFIX "" OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${folder}
    INSTALL_RPATH_USE_LINK_PATH ON)
  add_dependencies(${name} ${name}-module)
  _stowage_record(${name}-module ${arg_DEPS})
  stowage_install_torch_program(${name})
endfunction()

# stowage_python_module(name NAME _x SOURCES a.cc ... DEPS direct ...): an extension of the Python package, in its folder "stowage".
function(stowage_python_module name)
  cmake_parse_arguments(arg "" "NAME" "SOURCES;DEPS" ${ARGN})
  add_library(${name} MODULE ${arg_SOURCES})
  _stowage_program(${name})
  target_link_libraries(${name} PRIVATE ${arg_DEPS} pybind11::module)
  pybind11_extension(${name})  # the suffix that this Python looks for
  # Hidden: pybind11's own types are, and so extensions do not find each other's symbols.
  set_target_properties(${name} PROPERTIES OUTPUT_NAME ${arg_NAME} PREFIX "" CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/stowage INSTALL_RPATH_USE_LINK_PATH ON)
  if(NOT CMAKE_CURRENT_SOURCE_DIR MATCHES "^${PROJECT_SOURCE_DIR}/tests/")
    install(TARGETS ${name} LIBRARY DESTINATION stowage COMPONENT python EXCLUDE_FROM_ALL)
  endif()
  _stowage_record(${name} ${arg_DEPS} pybind11::module)
endfunction()

# What runs for moments is compiled for moments: STOWAGE_TEST_OPTIONS are those of tests, STOWAGE_LOOP_OPTIONS those of tests that
# go through all cases of a kind themselves. The warnings that take an optimiser come in the sanitizers' builds.
set(STOWAGE_TEST_OPTIONS $<$<CONFIG:Release>:-O0>)
set(STOWAGE_LOOP_OPTIONS $<$<CONFIG:Release>:-O1>)

# The compiler takes a precompiled header only with the -fPIC that it was made with, not with a program's -fPIE.
function(_stowage_reuse_pch name pch)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC)
  target_precompile_headers(${name} REUSE_FROM ${pch})
endfunction()

# stowage_torch_test_pch(name): compiles a target as tests with LibTorch are, with their precompiled header.
function(stowage_torch_test_pch name)
  target_compile_options(${name} PRIVATE ${STOWAGE_TEST_OPTIONS})
  target_compile_definitions(${name} PRIVATE GTEST_HAS_PTHREAD=1)  # as what links GoogleTest has it
  _stowage_reuse_pch(${name} stowage_torch_pch)
endfunction()

# stowage_test(name [TORCH|LOOPS] [NO_MAIN] SOURCES x_test.cc DEPS direct ... [TIMEOUT s]): a GoogleTest binary, one ctest entry.
# LOOPS: it takes seconds of its own loops, and is optimised. The precompiled header is that of what it links.
function(stowage_test name)
  cmake_parse_arguments(arg "TORCH;LOOPS;NO_MAIN" "TIMEOUT" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  _stowage_program(${name})
  target_compile_definitions(${name} PRIVATE STOWAGE_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                             STOWAGE_BINARY_DIR="${PROJECT_BINARY_DIR}")
  target_link_libraries(${name} PRIVATE ${arg_DEPS} GTest::gmock GTest::gtest)
  if(NOT arg_NO_MAIN)
    target_link_libraries(${name} PRIVATE GTest::gtest_main)
  endif()
  if(arg_TORCH)
    stowage_torch_test_pch(${name})
  else()
    set(pch stowage_test_pch)
    set(options ${STOWAGE_TEST_OPTIONS})
    if(arg_LOOPS)
      set(pch stowage_loop_pch)
      set(options ${STOWAGE_LOOP_OPTIONS})
    elseif(arg_DEPS MATCHES "gRPC::grpc|stowage_(client_rpc|codec|proto|rpc)(;|$)")
      set(pch stowage_rpc_pch)
    endif()
    # What gRPC and hiredis bring to their users, the precompiled header has for all.
    target_compile_options(${name} PRIVATE ${options} -pthread)
    target_compile_definitions(${name} PRIVATE _FILE_OFFSET_BITS=64)
    _stowage_reuse_pch(${name} ${pch})
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 900)
  endif()
  if(STOWAGE_SANITIZE)
    math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * 5")  # exhaustive searches run many times slower
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT})
  _stowage_test_folder(${name})
  _stowage_record(${name} ${arg_DEPS})
endfunction()

# Temporary files of a ctest entry: those of another build, user or entry have the same names.
function(_stowage_test_folder entry)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/tmp/${entry})
  set_property(TEST ${entry} APPEND PROPERTY ENVIRONMENT "TEST_TMPDIR=${PROJECT_BINARY_DIR}/tmp/${entry}/")
endfunction()

# stowage_test_as_older_processor(name [COMMAND ...]): the ctest entry `name` of this folder once more, as `name`_avx2, with the kernels that LibTorch
# and oneDNN choose on processors without AVX-512: other times, other workspaces. COMMAND: the entry's, where it is no
# program of that name. DNNL_MAX_CPU_ISA: the same to older versions of oneDNN.
function(stowage_test_as_older_processor name)
  cmake_parse_arguments(arg "" "" "COMMAND" ${ARGN})
  if(NOT arg_COMMAND)
    set(arg_COMMAND ${name})
  endif()
  get_test_property(${name} TIMEOUT timeout)
  add_test(NAME ${name}_avx2 COMMAND ${arg_COMMAND})
  set_tests_properties(${name}_avx2 PROPERTIES TIMEOUT ${timeout}
    ENVIRONMENT "ATEN_CPU_CAPABILITY=avx2;ONEDNN_MAX_CPU_ISA=AVX2;DNNL_MAX_CPU_ISA=AVX2;OMP_WAIT_POLICY=passive")
  _stowage_test_folder(${name}_avx2)
  # What is no temporary file may have the same name.
  set_property(TEST ${name} ${name}_avx2 APPEND PROPERTY RESOURCE_LOCK ${name})
endfunction()

# stowage_python_test(name PYTHON interpreter SCRIPT x.py SOURCES a.cc DEPS direct ...): the sources as a shared library
# of the precompiled torch header, and one ctest entry, the script with that library.
function(stowage_python_test name)
  cmake_parse_arguments(arg "" "PYTHON;SCRIPT" "SOURCES;DEPS" ${ARGN})
  add_library(${name} MODULE ${arg_SOURCES})
  _stowage_program(${name})
  target_link_libraries(${name} PRIVATE ${arg_DEPS})
  # One more definition than the precompiled header was made with, and the compiler does not take it.
  set_target_properties(${name} PROPERTIES DEFINE_SYMBOL "")
  stowage_torch_test_pch(${name})
  add_test(NAME ${name} COMMAND ${arg_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/${arg_SCRIPT} $<TARGET_FILE:${name}>)
  set_tests_properties(${name} PROPERTIES TIMEOUT 300)
  _stowage_record(${name} ${arg_DEPS})
endfunction()

function(_stowage_targets_below folder out)
  get_property(found DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  get_property(below DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(one IN LISTS below)
    _stowage_targets_below(${one} more)
    list(APPEND found ${more})
  endforeach()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# stowage_folders_target(name folder ...): builds all targets of these folders, which Ninja alone has targets for.
function(stowage_folders_target name)
  add_custom_target(${name})
  foreach(folder IN LISTS ARGN)
    _stowage_targets_below(${PROJECT_SOURCE_DIR}/${folder} targets)
    add_dependencies(${name} ${targets})
  endforeach()
endfunction()

function(stowage_write_link_graph)
  get_property(graph GLOBAL PROPERTY STOWAGE_LINK_GRAPH)
  file(WRITE ${PROJECT_BINARY_DIR}/link_graph.txt "${graph}")
endfunction()
