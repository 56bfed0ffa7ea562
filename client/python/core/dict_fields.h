// Messages of the contract as Python dictionaries with the names of its JSON mapping, both ways.
//
// A message lists its fields once, in a function Fields(archive, &message): archive("name", &member) for each.
// DictReader fills members, DictWriter makes a dictionary. Reading takes names in snake case and in camel case,
// whole numbers as int or as text, and leaves what is absent or None at its default, as JSON of protobuf does. What
// is wrong is thrown as a StatusError made by FieldError, with the field's path.
#ifndef STOWAGE_CLIENT_PYTHON_CORE_DICT_FIELDS_H_
#define STOWAGE_CLIENT_PYTHON_CORE_DICT_FIELDS_H_

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/python/core/status_error.h"
#include "solvers/model/field_error.h"
#include "solvers/model/units.h"

namespace stowage {

// The names of an enum's values: specialised for each enum.
template <class E>
using EnumName = std::pair<E, const char*>;
template <class E>
inline constexpr std::nullptr_t kEnumNames = nullptr;

// Python's int, or digits as text; a bool is neither.
int64_t IntegerOf(pybind11::handle source, const std::string& path);
// "saved_bytes" is "savedBytes", too.
std::string CamelCase(const std::string& name);

template <class T>
void ReadValue(pybind11::handle source, const std::string& path, T* value);
template <class T>
pybind11::object WriteValue(T value);

class DictReader {
 public:
  // `path` is empty, or ends with a dot.
  DictReader(pybind11::handle source, std::string path);

  template <class T>
  void operator()(const char* name, T* value) {
    const pybind11::object found = Take(name);
    if (found) ReadValue(found, path_ + name, value);
  }
  // Names that no field has are errors, so that a misspelt one is not a zero.
  void CheckAllTaken() const;

 private:
  // Null where it is absent or None.
  pybind11::object Take(const std::string& name);

  pybind11::dict dict_;
  std::string path_;
  std::set<std::string> taken_;
};

class DictWriter {
 public:
  template <class T>
  void operator()(const char* name, const T* value) {
    dict_[name] = WriteValue(*value);
  }
  template <class T>
  void operator()(const char* name, const std::optional<T>* value) {
    if (value->has_value()) dict_[name] = WriteValue(**value);
  }
  pybind11::dict dict() const { return dict_; }

 private:
  pybind11::dict dict_;
};

// A whole message. `path` is empty, or ends with a dot.
template <class T>
void ReadMessage(pybind11::handle source, const std::string& path, T* message) {
  DictReader reader(source, path);
  Fields(&reader, message);
  reader.CheckAllTaken();
}

template <class T>
pybind11::dict WriteMessage(T* message) {
  DictWriter writer;
  Fields(&writer, message);
  return writer.dict();
}

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

template <class T>
void ReadInteger(pybind11::handle source, const std::string& path, T* value) {
  const int64_t read = IntegerOf(source, path);
  constexpr auto kLeast = static_cast<int64_t>(std::numeric_limits<T>::min());
  constexpr auto kMost = static_cast<int64_t>(std::numeric_limits<T>::max());
  if (read < kLeast || read > kMost) {
    Throw(FieldError(path, read, absl::StrCat("must be in [", kLeast, ", ", kMost, "]")));
  }
  *value = static_cast<T>(read);
}

template <class E>
void ReadEnum(pybind11::handle source, const std::string& path, E* value) {
  const std::string text = pybind11::str(source);
  std::vector<std::string> names;
  for (const auto& [known, name] : kEnumNames<E>) {
    if (text == name) {
      *value = known;
      return;
    }
    names.push_back(name);
  }
  std::string rule = "must be one of";
  for (const std::string& name : names) absl::StrAppend(&rule, " ", name);
  Throw(FieldError(path, text, rule));
}

template <class T>
void ReadList(pybind11::handle source, const std::string& path, std::vector<T>* values) {
  if (!pybind11::isinstance<pybind11::list>(source) &&
      !pybind11::isinstance<pybind11::tuple>(source)) {
    Throw(FieldError(path, std::string(pybind11::str(source)), "must be a list"));
  }
  size_t index = 0;
  for (const pybind11::handle entry : source) {
    values->emplace_back();
    ReadValue(entry, absl::StrCat(path, "[", index++, "]"), &values->back());
  }
}

template <class T>
void ReadValue(pybind11::handle source, const std::string& path, T* value) {
  if constexpr (IsVector<T>::value) {
    ReadList(source, path, value);
  } else if constexpr (IsOptional<T>::value) {
    value->emplace();
    ReadValue(source, path, &**value);
  } else if constexpr (std::is_same_v<T, Bytes> || std::is_same_v<T, Nanos>) {
    *value = T(IntegerOf(source, path));
  } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, bool>) {
    using Python = std::conditional_t<std::is_same_v<T, bool>, pybind11::bool_, pybind11::str>;
    if (!pybind11::isinstance<Python>(source)) {
      Throw(FieldError(path, std::string(pybind11::str(source)),
                       std::is_same_v<T, bool> ? "must be true or false" : "must be text"));
    }
    *value = source.cast<T>();
  } else if constexpr (std::is_integral_v<T>) {
    ReadInteger(source, path, value);
  } else if constexpr (std::is_floating_point_v<T>) {
    *value = source.cast<T>();
  } else if constexpr (std::is_enum_v<T>) {
    ReadEnum(source, path, value);
  } else {
    ReadMessage(source, path + ".", value);
  }
}

template <class T>
pybind11::object WriteValue(T value) {
  if constexpr (IsVector<T>::value) {
    pybind11::list list;
    for (auto& entry : value) list.append(WriteValue(std::move(entry)));
    return std::move(list);
  } else if constexpr (std::is_same_v<T, Bytes> || std::is_same_v<T, Nanos>) {
    return pybind11::int_(value.value());
  } else if constexpr (std::is_enum_v<T>) {
    for (const auto& [known, name] : kEnumNames<T>) {
      if (known == value) return pybind11::str(name);
    }
    return pybind11::none();
  } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
    return pybind11::cast(value);
  } else {
    return WriteMessage(&value);
  }
}

}  // namespace stowage

#endif  // STOWAGE_CLIENT_PYTHON_CORE_DICT_FIELDS_H_
