# What `cmake --install` puts where, and find_package(stowage) finds. Folders belong to components: libraries to solvers, rpc, torch and
# agent, which are those of find_package, too; programs to server, command and torch_command, which both need the catalogue.
include_guard()
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(STOWAGE_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/stowage)
# Headers have their paths below this folder: #include "solvers/planner.h".
set(STOWAGE_HEADER_DIR ${CMAKE_INSTALL_INCLUDEDIR}/stowage)

# The component of the current folder; empty for those that are not installed.
function(_stowage_component out)
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  set(component "")
  if(folder MATCHES "^solvers")
    set(component solvers)
  elseif(folder MATCHES "^(proto|client/rpc)")
    set(component rpc)
  elseif(folder MATCHES "^client/(torch|models)")
    set(component torch)
  elseif(folder STREQUAL client/agent)
    set(component agent)
  elseif(folder MATCHES "^(server|client/probe)$")
    set(component server)
  elseif(folder STREQUAL client/cli)
    set(component command)
  endif()
  set(${out} "${component}" PARENT_SCOPE)
endfunction()

# stowage_planner is stowage::planner to others; a name of its own has only what people look for under another one.
function(stowage_install_library name)
  _stowage_component(component)
  if(NOT component MATCHES "^(solvers|rpc|torch|agent)$")
    return()
  endif()
  string(REGEX REPLACE "^stowage_" "" export_name ${name})
  if(name STREQUAL stowage_client_rpc)
    set(export_name plan_client)
  endif()
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${export_name})
  target_compile_features(${name} INTERFACE cxx_std_17)
  install(TARGETS ${name} EXPORT stowage-${component}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component}
    INCLUDES DESTINATION ${STOWAGE_HEADER_DIR})
  set_property(GLOBAL APPEND PROPERTY STOWAGE_EXPORTS ${component})
endfunction()

function(stowage_install_program name)
  _stowage_component(component)
  if(component)
    # LibTorch may lie where no loader looks: in a Python environment, say.
    set_target_properties(${name} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${component})
  endif()
endfunction()

# Beside the command, which finds it there.
function(stowage_install_torch_program name)
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/stowage COMPONENT torch_command)
  install(TARGETS ${name}-module LIBRARY DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/stowage COMPONENT torch_command)
endfunction()

# What the installed command says of itself: completion for shells, where these look for it, and its page of the manual.
function(_stowage_install_words)
  set(share "\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}")
  set(code "set(command \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/stowage\")\n")
  foreach(file
      "bash-completion/completions/stowage completion bash" "zsh/site-functions/_stowage completion zsh"
      "fish/vendor_completions.d/stowage.fish completion fish" "man/man1/stowage.1 help --man")
    string(REPLACE " " ";" file "${file}")
    list(POP_FRONT file path)
    list(JOIN file " " words)
    string(APPEND code "
      execute_process(COMMAND \"\${command}\" ${words} OUTPUT_VARIABLE text RESULT_VARIABLE failed ERROR_QUIET)
      if(failed)
        message(WARNING \"not installed: ${path}, \${command} does not run here\")
      else()
        message(STATUS \"Installing: ${share}/${path}\")
        file(WRITE \"${share}/${path}\" \"\${text}\")
      endif()\n")
  endforeach()
  install(CODE "${code}" COMPONENT command)
endfunction()

# Headers of folders and of those below them.
function(_stowage_install_headers component)
  foreach(folder IN LISTS ARGN)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}/ DESTINATION ${STOWAGE_HEADER_DIR}/${folder} COMPONENT ${component}
      FILES_MATCHING PATTERN "*.h")
  endforeach()
endfunction()

# The unit of systemd, with the prefix that is installed to in place of /usr; its user; a configuration to begin with.
function(_stowage_install_service)
  install(CODE "
    file(READ \"${PROJECT_SOURCE_DIR}/deploy/systemd/stowaged.service\" unit)
    string(REPLACE /usr/ \"\${CMAKE_INSTALL_PREFIX}/\" unit \"\${unit}\")
    set(to \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/systemd/system/stowaged.service\")
    message(STATUS \"Installing: \${to}\")
    file(WRITE \"\${to}\" \"\${unit}\")
    " COMPONENT server)
  install(FILES ${PROJECT_SOURCE_DIR}/deploy/systemd/stowage.sysusers.conf DESTINATION lib/sysusers.d RENAME stowage.conf
    COMPONENT server)
  install(FILES ${PROJECT_SOURCE_DIR}/server/operating.md ${PROJECT_SOURCE_DIR}/deploy/systemd/stowaged.conf
    DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT server)
endfunction()

# After all folders: the exports, the headers, and the package's own files, which go with solvers, as all components need these.
function(stowage_install_package)
  get_property(components GLOBAL PROPERTY STOWAGE_EXPORTS)
  list(REMOVE_DUPLICATES components)
  foreach(component IN LISTS components)
    install(EXPORT stowage-${component} NAMESPACE stowage:: FILE stowage-${component}-targets.cmake
      DESTINATION ${STOWAGE_PACKAGE_DIR} COMPONENT ${component})
  endforeach()

  _stowage_install_headers(solvers solvers)
  if(STOWAGE_RPC)
    _stowage_install_headers(rpc proto/codec proto/otlp client/rpc)
    foreach(generated stowage google)
      install(DIRECTORY ${PROJECT_BINARY_DIR}/proto/${generated}/ DESTINATION ${STOWAGE_HEADER_DIR}/${generated} COMPONENT rpc
        FILES_MATCHING PATTERN "*.pb.h")
    endforeach()
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/proto/stowage DESTINATION ${CMAKE_INSTALL_DATADIR}/stowage/proto COMPONENT rpc
      FILES_MATCHING PATTERN "*.proto")
    _stowage_install_service()
    # Plans that were solved beforehand: for `stowaged --catalogue`, and where `stowage` looks for them.
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/solvers/zoo/data/ DESTINATION ${CMAKE_INSTALL_DATADIR}/stowage/catalogue
      COMPONENT catalogue FILES_MATCHING PATTERN "*.catalogue")
  endif()
  if(STOWAGE_TORCH)
    _stowage_install_headers(torch client/torch client/models)
    install(FILES ${PROJECT_SOURCE_DIR}/cmake/StowageLibtorch.cmake DESTINATION ${STOWAGE_PACKAGE_DIR} COMPONENT torch)
  endif()
  if(STOWAGE_TORCH AND STOWAGE_RPC)
    _stowage_install_headers(agent client/agent)
  endif()

  if(TARGET stowage)
    _stowage_install_words()
  endif()

  set(folder ${PROJECT_BINARY_DIR}/package)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/stowage-config.cmake.in ${folder}/stowage-config.cmake
    INSTALL_DESTINATION ${STOWAGE_PACKAGE_DIR} NO_SET_AND_CHECK_MACRO)
  write_basic_package_version_file(${folder}/stowage-config-version.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${folder}/stowage-config.cmake ${folder}/stowage-config-version.cmake DESTINATION ${STOWAGE_PACKAGE_DIR}
    COMPONENT solvers)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR}
    COMPONENT solvers)
endfunction()
