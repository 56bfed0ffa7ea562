"""Plans of one joint graph at every budget that is asked for: of this process, or of a service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from stowage.planning import Frontier, Plan, Profile

if TYPE_CHECKING:
    from stowage.rpc import PlanService


class JointPlans:
    """One solve has all budgets where this process plans; a service is asked for each, under the key of the profile.

    ``source``: of the last plan, as of stowage.rpc.Answer.
    """

    def __init__(self, profile: Profile, service: Optional[PlanService], deadline_s: Optional[float]) -> None:
        self._profile = profile
        self._service = service
        self._deadline_s = deadline_s
        self._frontier: Optional[Frontier] = None
        self.source = "local"

    def least(self) -> Plan:
        """The plan that takes least, of this process."""
        frontier = self._solved()
        self.source = "local"
        return frontier.plan_at(frontier.points[0].peak_bytes)

    def at(self, budget_bytes: int) -> Plan:
        """The fastest plan within the budget. Raises Infeasible, with the least where it is known."""
        self.source = "local"
        if self._service is None:
            return self._solved().plan_at(budget_bytes)
        answer = self._service.plan(self._profile, budget_bytes, recompute_only=True, deadline_s=self._deadline_s)
        if answer.source == "local":
            self._service = None  # no answer now: the budgets that follow take one solve here
        self.source = answer.source
        return answer.plan

    def _solved(self) -> Frontier:
        if self._frontier is None:
            self._frontier = self._profile.frontier(recompute_only=True, deadline_s=self._deadline_s)
        return self._frontier
