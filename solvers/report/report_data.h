// What a report's scripts draw, as JSON. Internal to solvers/report.
//
// Columns, one number per instruction or stage. Starts, memory and measured bytes are differences to the
// one before; memory has two per instruction, while it runs and afterwards (TimelineEvent), and is empty
// for a use that there is none of. Texts of instructions are patterns with % for the stage's label.
#ifndef STOWAGE_SOLVERS_REPORT_REPORT_DATA_H_
#define STOWAGE_SOLVERS_REPORT_REPORT_DATA_H_

#include <string>

#include "solvers/model/problem.h"
#include "solvers/report/report.h"

namespace stowage {

// Plain ASCII, fit for the inside of <script>.
std::string ReportData(const Problem& problem, const Report& report);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_REPORT_REPORT_DATA_H_
