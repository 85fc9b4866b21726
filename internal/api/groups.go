package api

import (
	"net/http"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// DeadLetterGroup are the dead letters of one cause as the API shows them.
type DeadLetterGroup struct {
	// Fingerprint chooses them in a filter; it is null where the process reported the failures itself.
	Fingerprint *string `json:"fingerprint"`
	Policy      string  `json:"policy"`
	// Reason is what a filter takes: that of the newest of them; some of them may have reached their limit instead.
	Reason decision.Reason `json:"reason"`
	// MatchedRule is the code or rule that told the cause; null where none did.
	MatchedRule    *string `json:"matchedRule"`
	Classification *string `json:"classification"`
	// Pattern is the error without what differs from case to case.
	Pattern   string          `json:"pattern"`
	Count     int64           `json:"count"`
	FirstSeen string          `json:"firstSeen"`
	LastSeen  string          `json:"lastSeen"`
	Teams     []decision.Team `json:"teams"`
	// Sample is the newest of them; null where it is not told.
	Sample *DeadLetter `json:"sample"`
}

// DeadLetterGroupPage is one page of causes, the one with the most dead letters first.
type DeadLetterGroupPage struct {
	Items []DeadLetterGroup `json:"items"`
	// Next is the cursor of the next page; null on the last.
	Next *string `json:"next"`
}

// groups answers GET /api/v1/dead-letters/groups?state=&policy=&team=&reason=&fingerprint=&q=&cursor=&limit=.
func (s *API) groups(w http.ResponseWriter, r *http.Request, m *Journal) {
	q, bad := readParameters(r, "state", "policy", "team", "reason", "fingerprint", "q", "cursor", "limit")
	limit, badLimit := q.limit()
	f, badFilter := q.filter()
	if bad := firstOf(bad, badLimit, badFilter); bad != nil {
		s.refuse(w, bad)
		return
	}
	groups, next, err := m.Groups(r.Context(), f, q["cursor"], limit)
	if err != nil {
		s.undecided(w, r, err, cannotRead)
		return
	}
	s.write(w, http.StatusOK, DeadLetterGroupPage{groupsOf(groups), journal.OrNull(next)})
}

func groupsOf(groups []deadletter.Group) []DeadLetterGroup {
	all := make([]DeadLetterGroup, len(groups))
	for i := range groups {
		all[i] = groupOf(&groups[i])
	}
	return all
}

func groupOf(g *deadletter.Group) DeadLetterGroup {
	shown := DeadLetterGroup{
		Fingerprint: journal.OrNull(g.Cause.ID), Policy: g.Cause.Policy, Reason: g.Cause.Reason, Classification: journal.OrNull(string(g.Cause.Classification)),
		Pattern: g.Cause.Pattern, Count: g.N, FirstSeen: decision.Instant(g.First), LastSeen: decision.Instant(g.Last), Teams: g.Teams,
	}
	if shown.Teams == nil {
		shown.Teams = []decision.Team{}
	}
	if g.Sample.ID != "" {
		sample := deadLetterOf(&g.Sample)
		shown.Sample = &sample
		shown.Reason, shown.MatchedRule = g.Sample.Reason, journal.OrNull(g.Sample.MatchedRule)
	}
	return shown
}
