package main

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/console"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

// printPlan says what would be done.
func (c *cli) printPlan(p *console.BulkPlan) {
	line, done := c.sheet()
	line("would be", planWords(p))
	line("filter", filterWords(&p.Filter))
	if p.Ready > 0 {
		line("pace", fmt.Sprintf("%d a minute: takes about %s", p.PerMinute, time.Duration(p.Seconds)*time.Second))
	}
	if p.Total > 0 {
		line("given up", minute(value(p.Oldest))+" to "+minute(value(p.Newest))+" UTC")
	}
	done()
	if len(p.Tallies) > 0 {
		type row = console.BulkTally
		fmt.Fprintf(c.out, "\nThese %d:\n", p.Ready)
		tableOf(c,
			column[row]{name: "COUNT", of: func(t *row) string { return strconv.FormatInt(t.Count, 10) }},
			column[row]{name: "POLICY", rank: 2, of: func(t *row) string { return t.Policy }},
			column[row]{name: "TEAM", rank: 1, of: func(t *row) string { return string(t.Team) }},
			column[row]{name: "REASON", of: func(t *row) string { return string(t.Reason) }},
		).print(p.Tallies)
	}
	if len(p.Refused) > 0 {
		type row = console.BulkRefused
		fmt.Fprintf(c.out, "\nThese %d would be refused, and stay as they are:\n", p.Total-p.Ready)
		tableOf(c,
			column[row]{name: "COUNT", of: func(r *row) string { return strconv.FormatInt(r.Count, 10) }},
			column[row]{name: "CODE", rank: 1, of: func(r *row) string { return string(r.Code) }},
			column[row]{name: "WHY", of: whyRefused, elastic: true},
		).print(p.Refused)
	}
	if len(p.Causes) > 0 {
		fmt.Fprintf(c.out, "\nTheir causes%s:\n", firstOnly(len(p.Causes), deadletter.MostCauses))
		c.groupTable().print(p.Causes)
	}
}

// whyRefused says it as somebody at a command line can change it.
func whyRefused(r *console.BulkRefused) string {
	if r.Code == deadletter.MaxRetriesExceeded {
		return usedUp
	}
	return r.Message
}

// usedUp is what deadletter.MaxRetriesExceeded means.
const usedUp = "their retries are used up; --force sends them once more"

// firstOnly tells that a list is cut off.
func firstOnly(n, most int) string {
	if n < most {
		return ""
	}
	return fmt.Sprintf(", the first %d", most)
}

// planWords are what would be done with how many.
func planWords(p *console.BulkPlan) string {
	if p.Total == 0 {
		return "nothing: no open dead letter fits"
	}
	of := ""
	if p.Ready != p.Total {
		of = fmt.Sprintf(" of %d", p.Total)
	}
	return actionWords(&p.BulkCommand) + ": " + strconv.FormatInt(p.Ready, 10) + of
}

// actionWords are what is done.
func actionWords(b *console.BulkCommand) string {
	switch {
	case b.Action == journal.BulkDiscard:
		return "let go"
	case b.When == deadletter.Now:
		return "sent again at once" + forced(b.ForceRetry, b.Fresh)
	default:
		return "sent again, after the policy's backoff" + forced(b.ForceRetry, b.Fresh)
	}
}

// filterWords are what chooses, as --filter takes it.
func filterWords(f *console.BulkFilter) string {
	var words []string
	for _, part := range []struct {
		key   string
		value *string
	}{
		{"policy", f.Policy}, {"team", f.Team}, {"reason", f.Reason}, {"fingerprint", f.Fingerprint}, {"q", f.Query}, {"since", f.Since}, {"until", f.Until},
	} {
		if part.value != nil {
			words = append(words, part.key+"="+*part.value)
		}
	}
	if words == nil {
		return "all that are open"
	}
	return strings.Join(words, ", ")
}

// printRun prints a run, and what became of its dead letters so far.
func (c *cli) printRun(ctx context.Context, api *apiClient, r *console.BulkRun) {
	line, done := c.sheet()
	line("bulk run", r.ID)
	line("state", stateWords(r))
	line("action", actionWords(&r.BulkCommand))
	line("filter", filterWords(&r.Filter))
	line("because", r.Reason)
	line("started", "by "+r.By+" at "+r.CreatedAt)
	line("pace", fmt.Sprintf("%d a minute", r.PerMinute))
	if r.ChangedBy != nil && r.State == journal.BulkRunning {
		line("resumed", "by "+*r.ChangedBy+" at "+value(r.ChangedAt))
	}
	line("ended", value(r.EndedAt))
	line("in it", deadLetters(r.Total))
	done()
	c.printOutcomes(ctx, api, r)
}

// stateWords are where a run stands, and by whom.
func stateWords(r *console.BulkRun) string {
	switch {
	case r.Hold != nil:
		return string(r.State) + ", " + holdWords(r)
	case r.ChangedBy != nil && (r.State == journal.BulkPaused || r.State == journal.BulkCancelled):
		return string(r.State) + by(r.ChangedBy) + " at " + value(r.ChangedAt)
	default:
		return string(r.State)
	}
}

// printOutcomes says what became of a run's dead letters so far, and why some were refused.
func (c *cli) printOutcomes(ctx context.Context, api *apiClient, r *console.BulkRun) {
	type row struct {
		outcome journal.BulkOutcome
		n       int64
		words   string
	}
	var rows []row
	for _, o := range journal.BulkOutcomes() {
		if n := r.Counts[o]; n > 0 {
			rows = append(rows, row{o, n, outcomeWords(r, o)})
		}
	}
	if len(rows) == 0 {
		return
	}
	fmt.Fprintln(c.out)
	tableOf(c,
		column[row]{name: "COUNT", of: func(r *row) string { return strconv.FormatInt(r.n, 10) }},
		column[row]{name: "OUTCOME", of: func(r *row) string { return string(r.outcome) }},
		column[row]{name: "MEANS", of: func(r *row) string { return r.words }, elastic: true},
	).print(rows)
	if r.Counts[journal.BulkRefused] > 0 {
		c.printRefused(ctx, api, r)
	}
	if onWay := r.Counts[journal.BulkDecided] + r.Counts[journal.BulkTaken]; runEnded(r) && onWay > 0 {
		fmt.Fprintf(c.out, "\nHow %s on the way end is not known yet; `%s` tells later.\n", deadLetters(onWay), runsCommandLine("show", r.ID))
	}
}

func outcomeWords(r *console.BulkRun, o journal.BulkOutcome) string {
	switch o {
	case journal.BulkPlanned:
		if r.State == journal.BulkCancelled {
			return "left as they were: the run was cancelled before their turn"
		}
		return "their turn has not come yet"
	case journal.BulkRefused:
		return "left as they were"
	case journal.BulkDecided:
		return "decided, on the way to the process"
	case journal.BulkTaken:
		return "the process took it; how the retry ends is not known yet"
	case journal.BulkNobody:
		return "no process waited any more"
	case journal.BulkRecovered:
		return "the retry succeeded"
	case journal.BulkDeadAgain:
		return "failed again, and given up again"
	case journal.BulkSuperseded:
		return "something newer of the same subject took its place"
	case journal.BulkDiscarded:
		return "let go"
	default:
		return ""
	}
}

// printRefused says why some were refused; it looks at so many of them at most.
func (c *cli) printRefused(ctx context.Context, api *apiClient, r *console.BulkRun) {
	const mostPages = 25
	counts, seen := map[string]int64{}, int64(0)
	q := url.Values{"outcome": {string(journal.BulkRefused)}, "limit": {strconv.Itoa(deadletter.MostItems)}}
	for range mostPages {
		page, _, err := asked[console.BulkItemPage](ctx, api, "/bulk-runs/"+url.PathEscape(r.ID)+"/items?"+q.Encode(), nil)
		if err != nil {
			return // what is printed stands without it
		}
		for i := range page.Items {
			counts[value(page.Items[i].Code)]++
			seen++
		}
		if page.Next == nil {
			break
		}
		q.Set("after", strconv.FormatInt(*page.Next, 10))
	}
	if seen == 0 {
		return
	}
	of := ""
	if all := r.Counts[journal.BulkRefused]; seen < all {
		of = fmt.Sprintf(" (of the first %d)", seen)
	}
	fmt.Fprintf(c.out, "\nRefused%s:\n", of)
	codes := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if counts[a] != counts[b] {
			return int(counts[b] - counts[a])
		}
		return strings.Compare(a, b)
	})
	line, done := c.sheet()
	defer done()
	for _, code := range codes {
		line(strconv.FormatInt(counts[code], 10), inertLine(code, maxCell)+refusalWords[deadletter.Code(code)])
	}
}

// refusalWords say what a code means, and what to do.
var refusalWords = map[deadletter.Code]string{
	deadletter.MaxRetriesExceeded: ": " + usedUp,
	deadletter.InvalidRetryState:  ": decided on by others meanwhile, or no process waits for them",
	deadletter.PolicyNotFound:     ": their policy is no longer in the catalogue; --when now needs none",
	deadletter.JobNotFound:        ": they are gone",
	deadletter.InOtherRun:         ": another bulk run has them",
}
