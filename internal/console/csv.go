package console

import (
	"context"
	"encoding/csv"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/audit"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// mostExported dead letters are in one file: as many as a person looks through.
const mostExported = 20_000

// exportURL is the list as a file.
func exportURL(f journal.DeadLetterFilter) string {
	path, query, _ := strings.Cut(listURL(f, ""), "?")
	return strings.TrimSuffix(path+".csv?"+query, "?")
}

// exportLetters streams GET /dead-letters.csv with the list's own fields, as a spreadsheet of the reader's language
// opens it. One that fails on its way is cut off, so that nobody takes it for a whole one.
func (p *Pages) exportLetters(w http.ResponseWriter, r *http.Request) {
	v := p.visit(w, r)
	o := p.open.Load()
	if o == nil {
		p.fail(v, &problem{status: http.StatusServiceUnavailable, key: "starting"})
		return
	}
	f, wrong := v.filterOf(r.URL.Query())
	if wrong != "" {
		p.fail(v, &problem{status: http.StatusUnprocessableEntity, key: "export"})
		return
	}
	items, next, err := someOf(r.Context(), o, f, "")
	if err != nil {
		p.fail(v, err)
		return
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition",
		`attachment; filename="`+v.T("list.file")+"-"+v.now.In(v.zone).Format("20060102-1504")+`.csv"`)
	if err := v.writeLetters(r.Context(), o, f, items, next); err != nil {
		if r.Context().Err() == nil {
			p.Log.Error("an export of dead letters was cut off", zap.Error(err))
		}
		panic(http.ErrAbortHandler)
	}
}

// writeLetters writes the list from its first page on.
func (v *visit) writeLetters(
	ctx context.Context, o *open, f journal.DeadLetterFilter, items []deadletter.Item, next string,
) error {
	to := &exportWriter{v: v, late: http.NewResponseController(v.w)}
	if _, err := to.Write([]byte("\uFEFF")); err != nil { // Excel takes it for UTF-8 by that alone
		return err
	}
	out, fields := csv.NewWriter(to), v.contextFields(f.Policy)
	out.Comma, out.UseCRLF = ';', true
	head := []string{"col.subject", "col.policy", "col.state", "col.reason", "col.who_acts",
		"col.deadline", "col.amount", "col.since"}
	row := make([]string, 0, len(head)+len(fields)+1)
	for _, key := range head {
		row = append(row, v.T(key))
	}
	for _, field := range fields {
		row = append(row, audit.Inert(field.Label))
	}
	_ = out.Write(append(row, v.T("col.error"))) // Error tells
	for n := 0; ; {
		for i := range items {
			_ = out.Write(v.letterCells(&items[i], fields))
		}
		if out.Flush(); out.Error() != nil {
			return out.Error()
		}
		if n += len(items); next == "" || n >= mostExported {
			return nil
		}
		var err error
		if items, next, err = o.List(ctx, f, next, deadletter.MostItems); err != nil {
			return err
		}
	}
}

func (v *visit) letterCells(i *deadletter.Item, fields []decision.ContextField) []string {
	amount := ""
	if i.Cents > 0 {
		amount = v.plainNumber(decision.Amount(i.Cents))
	}
	row := []string{audit.Inert(i.Subject.ID), audit.Inert(v.Lang.policy(i.Subject.Policy)),
		v.Or("letter."+string(i.State), string(i.State)), v.reason(i.Reason),
		audit.Inert(v.team(i.Team)), v.cellTime(i.Deadline), amount, v.cellTime(i.CreatedAt)}
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
	return v.plainNumber(of[n].Value)
}

// plainNumber is a number without separators of thousands, as a spreadsheet of the language reads it.
func (v *visit) plainNumber(s string) string {
	if v.Lang == Portuguese {
		return strings.Replace(s, ".", ",", 1)
	}
	return s
}

// cellTime is an instant as a spreadsheet of the language reads it, in the reader's zone; empty for none.
func (v *visit) cellTime(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case v.Lang == Portuguese:
		return t.In(v.zone).Format("02/01/2006 15:04")
	default:
		return t.In(v.zone).Format("2006-01-02 15:04")
	}
}
