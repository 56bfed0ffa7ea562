// What `stowage` prints for programs, read again.
#ifndef STOWAGE_TESTS_CLIENT_CLI_COMMAND_OUTPUT_H_
#define STOWAGE_TESTS_CLIENT_CLI_COMMAND_OUTPUT_H_

#include <google/protobuf/struct.pb.h>

#include <map>
#include <string>
#include <vector>

namespace stowage {

// An object. Throws, which fails the test, where it is none: what is read of an empty one would end the program.
google::protobuf::Struct Json(const std::string& text);

// Of fields without ends of lines, by the names of the head; a failure where a row has not as many.
using CsvRow = std::map<std::string, std::string>;
std::vector<CsvRow> Csv(const std::string& text);

// Whether a cell of a table is "NO". A name that the table's text tells besides, such as a temporary folder's, may hold
// these letters.
bool HasNoCell(const std::string& table);

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_CLI_COMMAND_OUTPUT_H_
