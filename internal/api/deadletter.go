package api

import (
	"cmp"
	"encoding/json"
	"strconv"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/guard"
	"retry-worker/internal/journal"
)

// DeadLetter is a dead letter as the API shows it. Keys of the engine are texts: a number would lose its last digits in
// JavaScript.
type DeadLetter struct {
	ID                  string                  `json:"id" format:"uuid"`
	State               journal.DeadLetterState `json:"state" doc:"Superseded: the subject went on without a decision."`
	Subject             SubjectName             `json:"subject"`
	Outcome             decision.Outcome        `json:"outcome"`
	Reason              decision.Reason         `json:"reason"`
	ResponsibleTeam     decision.Team           `json:"responsibleTeam"`
	ErrorClassification *string                 `json:"errorClassification" doc:"Null where the process reported it."`
	MatchedRule         *string                 `json:"matchedRule"`
	Error               string                  `json:"error" doc:"Empty where the process reported the failure."`
	Fingerprint         *string                 `json:"fingerprint" doc:"The same for all of one cause."`
	Context             decision.Context        `json:"context" doc:"What the claim brought of what its policy names."`
	RetryCount          int64                   `json:"retryCount"`
	MaxRetries          int64                   `json:"maxRetries"`
	ForceNeeded         bool                    `json:"forceNeeded" doc:"A retry takes forceRetry: the limit, or too late."`
	Episode             int64                   `json:"episode"`
	FirstFailure        *string                 `json:"firstFailure" format:"date-time"`
	Deadline            *string                 `json:"deadline" format:"date-time" doc:"The claim's own."`
	CreatedAt           string                  `json:"createdAt" format:"date-time"`
	ChangedAt           string                  `json:"changedAt" format:"date-time"`
	ProcessInstanceKey  int64                   `json:"processInstanceKey,string"`
	Process             deadletter.Process      `json:"process" doc:"Whether one waits for a decision."`
	Delivery            string                  `json:"delivery" enum:"none,pending,taken,nobody" doc:"Of the answer."`
	ReviewJobKey        *string                 `json:"reviewJobKey" doc:"The job by which the process waits."`
	PossiblyAccepted    bool                    `json:"possiblyAccepted" doc:"Whether the portal may have it: a submission was not answered (R33)."`
	Accepts             bool                    `json:"accepts" doc:"Whether that process can close it as accepted (R33)."`
	Review              *Review                 `json:"review" doc:"What was decided; null where nothing was."`
	BulkRun             *string                 `json:"bulkRun" format:"uuid" doc:"The bulk run that decided it."`
	Assignment          *Assignment             `json:"assignment" doc:"Who has it, while it is open; null where nobody said."`
}

// Assignment says who has a dead letter (R35).
type Assignment struct {
	Assignee   *string `json:"assignee" doc:"An account's name; null for nobody."`
	FollowUpAt *string `json:"followUpAt" format:"date-time" doc:"When to look at it again."`
	Note       string  `json:"note" doc:"What was said with that."`
	By         string  `json:"by"`
	At         string  `json:"at" format:"date-time"`
}

// SubjectName names a subject.
type SubjectName struct {
	Tenant string `json:"tenant"`
	Policy string `json:"policy"`
	ID     string `json:"id"`
}

// Review is what a person decided.
type Review struct {
	Decision      string  `json:"decision" enum:"reprocess,discard,accepted" doc:"Sent again, let go, or there already."`
	Reason        string  `json:"reason" doc:"Why, in a person's words."`
	By            string  `json:"by"`
	At            string  `json:"at" format:"date-time"`
	ForceRetry    bool    `json:"forceRetry"`
	Fresh         bool    `json:"fresh"`
	Protocol      *string `json:"protocolNumber" doc:"Of what was accepted; null where nobody said it."`
	NextRetryTime *string `json:"nextRetryTime" format:"date-time"`
	Deadline      *string `json:"submissionDeadline" format:"date-time" doc:"The new one; null where it stays."`
}

func deadLetterOf(i *deadletter.Item) DeadLetter {
	d := DeadLetter{
		ID: i.ID, State: i.State, Subject: SubjectName(i.Subject),
		Outcome: i.Outcome, Reason: i.Reason, ResponsibleTeam: i.Team,
		ErrorClassification: journal.OrNull(string(i.Classification)), MatchedRule: journal.OrNull(i.MatchedRule),
		Error: i.Error, Fingerprint: journal.OrNull(i.Fingerprint), Context: append(decision.Context{}, i.Context...),
		RetryCount: i.RetryCount, MaxRetries: i.MaxRetries, ForceNeeded: i.ForceNeeded(), Episode: i.Episode,
		FirstFailure: journal.InstantOrNull(i.FirstFailure), Deadline: journal.InstantOrNull(i.Deadline),
		CreatedAt: decision.Instant(i.CreatedAt), ChangedAt: decision.Instant(i.ChangedAt),
		ProcessInstanceKey: i.ProcessInstanceKey, Process: i.Process,
		Delivery:         cmp.Or(string(i.Delivery), "none"),
		PossiblyAccepted: i.PossiblyAccepted, Accepts: i.Accepts, Review: reviewOf(&i.Review), BulkRun: journal.OrNull(i.Run),
	}
	if a := &i.Assigned; !a.At.IsZero() {
		d.Assignment = &Assignment{journal.OrNull(a.Assignee), journal.InstantOrNull(a.FollowUpAt), a.Text, a.By,
			decision.Instant(a.At)}
	}
	if i.ReviewJobKey != 0 {
		d.ReviewJobKey = journal.OrNull(strconv.FormatInt(i.ReviewJobKey, 10))
	}
	return d
}

func reviewOf(n *journal.ReviewNote) *Review {
	if n.At.IsZero() {
		return nil
	}
	r := &Review{
		Decision: "reprocess", Reason: n.Reason, By: n.By, At: decision.Instant(n.At), ForceRetry: n.Force, Fresh: n.Fresh,
		NextRetryTime: journal.InstantOrNull(n.NextRetryTime), Deadline: journal.InstantOrNull(n.Deadline),
	}
	switch {
	case n.Discard:
		r.Decision = "discard"
	case n.Accepted != nil:
		r.Decision, r.Protocol = "accepted", journal.OrNull(n.Accepted.Protocol)
	}
	return r
}

// DeadLetterGroup describes the dead letters of one cause.
type DeadLetterGroup struct {
	Fingerprint    *string         `json:"fingerprint" doc:"Null where the process reported the failures itself."`
	Policy         string          `json:"policy"`
	Reason         decision.Reason `json:"reason" doc:"Of the newest of them, as a filter takes it."`
	MatchedRule    *string         `json:"matchedRule" doc:"The code or rule that told the cause."`
	Classification *string         `json:"classification"`
	Pattern        string          `json:"pattern" doc:"The error without what differs from case to case."`
	Count          int64           `json:"count" min:"1"`
	Amount         string          `json:"amount" doc:"What they are worth."`
	FirstSeen      string          `json:"firstSeen" format:"date-time"`
	LastSeen       string          `json:"lastSeen" format:"date-time"`
	Teams          []decision.Team `json:"teams" doc:"The one with the most first."`
	Sample         *DeadLetter     `json:"sample" doc:"The newest of them; null where it is not told."`
}

func groupOf(g *deadletter.Group) DeadLetterGroup {
	shown := DeadLetterGroup{
		Fingerprint: journal.OrNull(g.Cause.ID), Policy: g.Cause.Policy, Reason: g.Cause.Reason,
		Classification: journal.OrNull(string(g.Cause.Classification)), Pattern: g.Cause.Pattern,
		Count: g.N, Amount: decision.Amount(g.Cents),
		FirstSeen: decision.Instant(g.Oldest), LastSeen: decision.Instant(g.Newest),
		Teams: append([]decision.Team{}, g.Teams...),
	}
	if g.Sample.ID != "" {
		sample := deadLetterOf(&g.Sample)
		shown.Sample = &sample
		shown.Reason, shown.MatchedRule = g.Sample.Reason, journal.OrNull(g.Sample.MatchedRule)
	}
	return shown
}

// causeFilter selects the dead letters that match all fields given.
type causeFilter struct {
	Policy      string          `json:"policy,omitempty" doc:"Only those of this policy."`
	Team        decision.Team   `json:"team,omitempty" doc:"The team that must act, such as faturamento."`
	Reason      decision.Reason `json:"reason,omitempty" doc:"Given up for this reason."`
	Fingerprint string          `json:"fingerprint,omitempty" doc:"Only those of this cause."`
	IDs         string          `json:"ids,omitempty" long:"1" doc:"At most 200 dead letters' ids, with commas."`
	Context     string          `json:"context,omitempty" doc:"variable=value, as a dead letter's context has it."`
	Assignee    string          `json:"assignee,omitempty" doc:"Whose: an account's name, me or nobody."`
	FollowUp    string          `json:"followUp,omitempty" doc:"To look at again by the end of today, or before an instant."`
	Query       string          `json:"q,omitempty" doc:"An id, the beginning of a subject's id, or words of the error."`
}

// Filter also bounds when they were given up.
type Filter struct {
	causeFilter
	Since string `json:"since,omitempty" doc:"Given up then or later: an instant, a date, or an age such as 3d."`
	Until string `json:"until,omitempty" doc:"Given up before then: an instant, a date, or an age such as 3d."`
}

type stateInput struct {
	State string `json:"state" enum:"open,reprocessing,discarded,recovered,accepted,all" default:"open" doc:"Which of them."`
}

// pageInput says which page of a list is asked for.
type pageInput struct {
	Cursor string `json:"cursor" doc:"What the page before gave as next; none for the first."`
	Limit  int    `json:"limit" min:"1" max:"200" default:"50"`
}

// filter returns the filter that a request's fields describe.
func (c *call) filter(in any) (journal.DeadLetterFilter, error) {
	given := map[string]any{}
	fields, _ := json.Marshal(in) // texts and numbers, which cannot fail
	_ = json.Unmarshal(fields, &given)
	read := deadletter.Fields(func(name string) string {
		text, _ := given[name].(string)
		return text
	})
	return deadletter.ParseFilter(read.By(access.From(c.Context()).Name, c.Zone, c.now()), time.UTC, c.now())
}

// idInput names a dead letter or a bulk run.
type idInput struct {
	ID string `json:"id" in:"path" format:"uuid" doc:"Of the dead letter, or the bulk run."`
}

// reasonInput is the reason that a person gives.
type reasonInput struct {
	Reason string `json:"reason" required:"1" length:"500" code:"reason_required" expects:"a few words" doc:"Why."`
}

// reviewInput is what every decision on a dead letter takes.
type reviewInput struct {
	idInput
	reasonInput
}

var deadLetters = []*Operation{
	op(access.Read, "GET /dead-letters", "listDeadLetters", func(c *call, in *struct {
		stateInput
		Filter
		Sort string `json:"sort" enum:"deadline,amount,age,newest" doc:"Which come first, the most urgent if left out."`
		pageInput
	}) (Page[DeadLetter], error) {
		f, err := c.filter(in)
		if err != nil {
			return Page[DeadLetter]{}, err
		}
		return paged(deadLetterOf)(c.List(c.Context(), f, in.Cursor, in.Limit))
	}),
	op(access.Read, "GET /dead-letters/groups", "listDeadLetterGroups", func(c *call, in *struct {
		stateInput
		causeFilter
		pageInput
	}) (Page[DeadLetterGroup], error) {
		f, err := c.filter(in)
		if err != nil {
			return Page[DeadLetterGroup]{}, err
		}
		return paged(groupOf)(c.Groups(c.Context(), f, in.Cursor, in.Limit))
	}),
	op(access.Read, "GET /dead-letters/{id}", "showDeadLetter", func(c *call, in *idInput) (DeadLetter, error) {
		return shown(deadLetterOf)(c.Show(c.Context(), in.ID))
	}),
	op(access.Review, "POST /dead-letters/{id}/retry", "retryDeadLetter", func(c *call, in *struct {
		reviewInput
		Force    bool      `json:"forceRetry" doc:"One more try at or above the limit, or after the deadline."`
		When     string    `json:"when" enum:"backoff,now" default:"backoff" doc:"After the policy's backoff, or at once."`
		Fresh    bool      `json:"fresh" doc:"The whole ladder again; needs forceRetry."`
		Deadline time.Time `json:"submissionDeadline" doc:"A new deadline; none leaves it as it is."`
	}) (DeadLetter, error) {
		return c.review(deadletter.Command{Action: journal.BulkRetry, ID: in.ID, Reason: in.Reason,
			RetryOptions: journal.RetryOptions{Force: in.Force, Fresh: in.Fresh, When: in.When, Deadline: in.Deadline}})
	}),
	op(access.Review, "POST /dead-letters/{id}/discard", "discardDeadLetter",
		func(c *call, in *reviewInput) (DeadLetter, error) {
			return c.review(deadletter.Command{Action: journal.BulkDiscard, ID: in.ID, Reason: in.Reason})
		}),
	op(access.Review, "POST /dead-letters/{id}/accept", "acceptDeadLetter", func(c *call, in *struct {
		reviewInput
		Protocol string `json:"protocolNumber" length:"40" doc:"The number that the portal gave it, where it is known."`
	}) (DeadLetter, error) {
		return c.review(deadletter.Command{Action: journal.BulkAccept, ID: in.ID, Reason: in.Reason, Protocol: in.Protocol})
	}),
	op(access.Review, "PUT /dead-letters/{id}/assignment", "assignDeadLetter", func(c *call, in *struct {
		idInput
		Assignee   string `json:"assignee" doc:"Who gets it: an account's name or me; null or left out gives it back."`
		FollowUpAt string `json:"followUpAt" doc:"When to look at it again: an instant, or a date in the hospital's zone."`
		Note       string `json:"note" length:"500" doc:"What to know."`
	}) (DeadLetter, error) {
		at, ok := deadletter.ParseDate(in.FollowUpAt, c.Zone)
		if !ok {
			return DeadLetter{}, refused("invalid_follow_up_at", "followUpAt is %.60q, expected an instant such as "+
				"2026-03-01T08:00:00-03:00, a date such as 2026-03-01, or none", in.FollowUpAt)
		}
		a := journal.Assignment{Assignee: in.Assignee, FollowUpAt: at, Mark: journal.Mark{Text: in.Note}}
		return shown(deadLetterOf)(c.Assign(c.Context(), in.ID, a))
	}),
	op(access.Handover, "PUT /assignees/{name}", "handOver", func(c *call, in *struct {
		Name     string `json:"name" in:"path" doc:"The account that has them."`
		Assignee string `json:"assignee" doc:"The account that gets them, or me; none gives them back."`
	}) (guard.Handed, error) {
		return c.Handover(c.Context(), in.Name, in.Assignee)
	}),
	op(access.Review, "POST /jobs/retry", "retryFailedJob", func(c *call, in *struct { // as retry-failed-job.md has it
		JobID string `json:"jobId" required:"1" format:"uuid" expects:"the id of a dead letter" doc:"The dead letter's id."`
		reasonInput
		Force bool `json:"forceRetry"`
	}) (DeadLetter, error) {
		return c.review(deadletter.Command{Action: journal.BulkRetry, ID: in.JobID, Reason: in.Reason,
			RetryOptions: journal.RetryOptions{Force: in.Force}})
	}),
}

// review carries out a person's decision.
func (c *call) review(d deadletter.Command) (DeadLetter, error) {
	return shown(deadLetterOf)(c.Decide(c.Context(), d))
}
