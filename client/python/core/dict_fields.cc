#include "client/python/core/dict_fields.h"

#include <cctype>

#include "absl/strings/numbers.h"

namespace stowage {
namespace py = pybind11;

int64_t IntegerOf(py::handle source, const std::string& path) {
  int64_t value = 0;
  if (py::isinstance<py::str>(source) && absl::SimpleAtoi(source.cast<std::string>(), &value)) {
    return value;
  }
  if (py::isinstance<py::int_>(source) && !py::isinstance<py::bool_>(source)) {
    int overflow = 0;
    value = PyLong_AsLongLongAndOverflow(source.ptr(), &overflow);
    if (overflow == 0) return value;
  }
  Throw(FieldError(path, std::string(py::str(source)), "must be a whole number of 64 bits"));
}

std::string CamelCase(const std::string& name) {
  std::string camel;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool raise = name[i] == '_' && i + 1 < name.size();
    camel +=
        raise ? static_cast<char>(std::toupper(static_cast<unsigned char>(name[++i]))) : name[i];
  }
  return camel;
}

DictReader::DictReader(py::handle source, std::string path) : path_(std::move(path)) {
  if (!py::isinstance<py::dict>(source)) {
    const std::string field = path_.empty() ? "the message" : path_.substr(0, path_.size() - 1);
    Throw(FieldError(field, std::string(py::str(source)), "must be a dictionary"));
  }
  dict_ = py::reinterpret_borrow<py::dict>(source);
}

py::object DictReader::Take(const std::string& name) {
  for (const std::string& spelt : {name, CamelCase(name)}) {
    const py::str key(spelt);
    if (!dict_.contains(key)) continue;
    taken_.insert(spelt);
    const py::object value = dict_[key];
    return value.is_none() ? py::object() : value;
  }
  return py::object();
}

void DictReader::CheckAllTaken() const {
  for (const auto& [key, value] : dict_) {
    const std::string name = py::str(key);
    if (taken_.count(name) == 0) {
      Throw(FieldError(path_ + name, std::string(py::str(value)), "is no field of this message"));
    }
  }
}

}  // namespace stowage
