#include "client/python/core/status_error.h"

#include <pybind11/pybind11.h>

#include <optional>

#include "solvers/model/field_error.h"

namespace stowage {
namespace py = pybind11;

void Throw(absl::Status status) { throw StatusError(std::move(status)); }

namespace {

void RaiseInPython(const absl::Status& status) {
  const std::optional<FieldViolation> violation = GetFieldViolation(status);
  py::object field = py::none();
  if (violation) field = py::make_tuple(violation->field, violation->value, violation->rule);
  const std::string message(status.message());
  const py::object error =
      py::module_::import("stowage.errors")
          .attr("of_status")(absl::StatusCodeToString(status.code()), message, field);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
}

}  // namespace

void RegisterStatusErrors() {
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const StatusError& error) {
      RaiseInPython(error.status());
    }
  });
}

}  // namespace stowage
