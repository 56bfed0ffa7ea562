// The numbers of plans as a table of HTML. Internal to solvers/report.
#ifndef STOWAGE_SOLVERS_REPORT_REPORT_NUMBERS_H_
#define STOWAGE_SOLVERS_REPORT_REPORT_NUMBERS_H_

#include <string>
#include <vector>

#include "solvers/report/drawn_plan.h"

namespace stowage {

// One sentence about the first plan: what it takes against storing everything. Not escaped.
std::string LeadText(const DrawnPlan& plan);

// A column per plan and per measured step.
std::string NumbersTable(const std::vector<DrawnPlan>& plans);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_REPORT_REPORT_NUMBERS_H_
