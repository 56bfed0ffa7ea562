// How figures stand in the tables of the command, and those that tables work out.
#ifndef STOWAGE_CLIENT_CLI_CELLS_H_
#define STOWAGE_CLIENT_CLI_CELLS_H_

#include <string>

#include "solvers/model/units.h"

namespace stowage {

// "670.50"
std::string Mebibytes(Bytes bytes);
// "910.250"
std::string Milliseconds(Nanos nanos);
// "0.910"
std::string Seconds(Nanos nanos);
// "yes", and "NO" so that it is seen.
std::string YesNo(bool yes);

// part / whole.
double Fraction(Bytes part, Bytes whole);
// makespan / that of plain training - 1, 0.1 is 10%; 0 without times.
double Overhead(Nanos makespan, Nanos plain);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_CELLS_H_
