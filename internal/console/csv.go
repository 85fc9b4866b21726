package console

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/audit"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// mostExported bounds the dead letters in one file: nobody looks through more.
const mostExported = 20_000

// exportURL returns the address of the list as a CSV file.
func exportURL(f journal.DeadLetterFilter) string {
	return strings.Replace(listURL(f), "/dead-letters", "/dead-letters.csv", 1)
}

// exportLetters answers GET /dead-letters.csv with the dead letters that the list's fields select, written for a
// spreadsheet in the reader's language.
func (p *Pages) exportLetters(v *visit, o *open) (*page, error) {
	f, wrong := v.filterOf(v.r.URL.Query())
	if wrong != "" {
		return nil, &problem{status: http.StatusUnprocessableEntity, key: "export"}
	}
	name := v.T("list.file") + "-" + v.now.In(v.zone).Format("20060102-1504") + ".csv"
	return nil, p.download(v, "dead letters", "text/csv; charset=utf-8", name,
		func(to io.Writer) error { return v.writeLetters(o, f, to) })
}

func (v *visit) writeLetters(o *open, f journal.DeadLetterFilter, to io.Writer) error {
	items, next, err := o.List(v.r.Context(), f, "", deadletter.MostItems)
	if err != nil {
		return err
	}
	out, fields := audit.NewCSV(to), v.otherFields(f.Policy)
	head := []string{"col.subject", "col.policy", "col.state", "col.reason", "col.who_acts",
		"col.deadline", "col.amount", "col.since", "col.possibly", "col.assignee", "assigned.follow_up"}
	row := make([]string, 0, len(head)+len(fields)+1)
	for _, key := range head {
		row = append(row, v.T(key))
	}
	for _, field := range fields {
		row = append(row, audit.Inert(v.Says(field.Label)))
	}
	_ = out.Write(append(row, v.T("col.error"))) // Error reports it
	for n := 0; ; {
		for i := range items {
			_ = out.Write(v.letterCells(&items[i], fields))
		}
		if out.Flush(); out.Error() != nil {
			return out.Error()
		}
		if n += len(items); next == "" {
			return nil
		} else if n >= mostExported {
			_ = out.Write([]string{v.T("list.file.more", v.Number(int64(n)))}) // Error reports it
			out.Flush()
			return out.Error()
		}
		if items, next, err = o.List(v.r.Context(), f, next, deadletter.MostItems); err != nil {
			return err
		}
	}
}

func (v *visit) letterCells(i *deadletter.Item, fields []decision.ContextField) []string {
	amount := ""
	if i.Cents > 0 {
		amount = v.point(decision.Amount(i.Cents))
	}
	row := []string{audit.Inert(i.Subject.ID), audit.Inert(v.policy(i.Subject.Policy)),
		v.Or("state.word."+string(i.State), string(i.State)), v.reason(i.Reason),
		audit.Inert(v.team(i.Team)), v.cellTime(i.Deadline), amount, v.cellTime(i.CreatedAt), map[bool]string{true: v.T("cell.yes")}[i.PossiblyAccepted],
		audit.Inert(i.Assigned.Assignee), v.cellTime(i.Assigned.FollowUpAt)}
	for _, f := range fields {
		row = append(row, v.contextCell(i.Context, f.Variable))
	}
	return append(row, audit.Inert(i.Error))
}

func (v *visit) contextCell(of decision.Context, variable string) string {
	n := slices.IndexFunc(of, func(c decision.ContextValue) bool { return c.Variable == variable })
	if n < 0 {
		return ""
	}
	if t, ok := of[n].Time(); ok {
		return v.cellTime(t)
	}
	if of[n].Type == decision.ContextText {
		return audit.Inert(of[n].Value)
	}
	return v.point(of[n].Value)
}

// cellTime returns t in the hospital's zone as a spreadsheet in the reader's language reads it; empty for the zero
// time.
func (v *visit) cellTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return v.format(t, "02/01/2006 15:04", "2006-01-02 15:04")
}
