// The style sheet and the scripts of reports (page/), as they are. Internal to solvers/report.
#ifndef STOWAGE_SOLVERS_REPORT_PAGE_TEXT_H_
#define STOWAGE_SOLVERS_REPORT_PAGE_TEXT_H_

namespace stowage {

extern const char kPageStyle[];
extern const char kPageScript[];

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_REPORT_PAGE_TEXT_H_
