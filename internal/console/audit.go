package console

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/access"
	"retry-worker/internal/audit"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// auditPage is how many records one page lists.
const auditPage = 50

// auditData is one page of the audit's records.
type auditData struct {
	Policies           []option
	Policy, ID, Tenant string
	Since, Until       string
	// Wrong says which field is; empty if none is.
	Wrong, WrongField string
	Searched          bool
	Rows              []auditRow
	Next, Export      string
	ExportCSV         string
	Head              string
	HeadAt            Moment
}

// auditRow is one record.
type auditRow struct {
	Record  string
	At      Moment
	Kind    string
	ID, URL string
	Policy  string
	Says    string
	By      string
}

// auditForm is what was asked for.
func auditForm(q url.Values) *auditData {
	const most = 512 // bytes of an id
	field := func(name string) string { return plain(q.Get(name), most) }
	return &auditData{Policy: field("policy"), ID: field("id"), Tenant: field("tenant"), Since: field("since"),
		Until: field("until")}
}

func (p *Pages) audit(v *visit, o *open) (*page, error) {
	d := auditForm(v.r.URL.Query())
	d.Policies = options(append(p.Catalogue().Policies.Names(), d.Policy), d.Policy, v.Lang.policy)
	pg := &page{name: "audit", section: "audit", title: v.T("audit.title"), data: d}
	head, err := o.Head(v.r.Context())
	if err != nil {
		return nil, err
	}
	if head.Link > 0 {
		d.Head, d.HeadAt = head.String(), v.Ago(head.At)
	}
	f, ok := v.recordFilter(d)
	if !ok {
		pg.status, pg.fixed = http.StatusUnprocessableEntity, true
		return pg, nil
	}
	d.Searched = f != journal.RecordFilter{}
	var records []journal.Record
	if d.Searched {
		records, err = v.forward(o, d, f)
	} else {
		records, err = v.latest(o, d, head)
	}
	if err != nil {
		return nil, err
	}
	for i := range records {
		d.Rows = append(d.Rows, v.auditRow(&records[i]))
	}
	d.Export, d.ExportCSV = d.exportURL(audit.JSONLines), d.exportURL(audit.CSV)
	pg.summary = v.T("audit.summary", v.Number(head.Record))
	return pg, nil
}

// recordFilter is what the form asks for; false where a field is wrong, which d then says.
func (v *visit) recordFilter(d *auditData) (f journal.RecordFilter, ok bool) {
	if d.ID != "" {
		if d.Policy == "" {
			d.Wrong, d.WrongField = v.T("audit.wrong.policy"), "policy"
			return f, false
		}
		f.Subject = journal.Subject{Tenant: d.Tenant, Policy: d.Policy, ID: d.ID}
		if d.Tenant == "" {
			f.Subject.Tenant = journal.DefaultTenant
		}
	}
	if d.ID == "" && d.Policy != "" {
		d.Wrong, d.WrongField = v.T("audit.wrong.id"), "id"
		d.Export, d.ExportCSV = d.exportURL(audit.JSONLines), d.exportURL(audit.CSV)
		return f, false
	}
	var wrong error
	if f.Since, wrong = v.instant(d.Since); wrong != nil {
		d.Wrong, d.WrongField = v.T("audit.wrong.time"), "since"
		return f, false
	}
	if f.Until, wrong = v.instant(d.Until); wrong != nil {
		d.Wrong, d.WrongField = v.T("audit.wrong.time"), "until"
		return f, false
	}
	return f, true
}

var errInstant = errors.New("no instant")

// instant of a datetime-local field, in the reader's zone; the zero time for an empty one.
func (v *visit) instant(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, form := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", time.DateOnly, time.RFC3339} {
		if t, err := time.ParseInLocation(form, s, v.zone); err == nil && t.Year() >= 1 && t.Year() <= 9998 {
			return t.UTC(), nil
		}
	}
	return time.Time{}, errInstant
}

// forward are the records that the filter lets through, the oldest first, from behind the cursor on.
func (v *visit) forward(o *open, d *auditData, f journal.RecordFilter) ([]journal.Record, error) {
	after, _ := strconv.ParseInt(v.r.URL.Query().Get("after"), 10, 64) // what is no cursor is the first page
	records, err := o.Records(v.r.Context(), f, max(after, 0), auditPage+1)
	if err != nil || len(records) <= auditPage {
		return records, err
	}
	records = records[:auditPage]
	d.Next = d.address("/audit", url.Values{"after": {strconv.FormatInt(recordOf(&records[auditPage-1]), 10)}})
	return records, nil
}

// latest are the last records before the cursor, the newest first.
func (v *visit) latest(o *open, d *auditData, head journal.Head) ([]journal.Record, error) {
	before, err := strconv.ParseInt(v.r.URL.Query().Get("before"), 10, 64)
	if err != nil || before < 1 || before > head.Record+1 {
		before = head.Record + 1
	}
	from := max(before-auditPage-1, 0)
	records, err := o.Records(v.r.Context(), journal.RecordFilter{}, from, auditPage)
	if err != nil {
		return nil, err
	}
	records = slices.DeleteFunc(records, func(r journal.Record) bool { return recordOf(&r) >= before })
	slices.Reverse(records)
	if from > 0 && len(records) > 0 {
		d.Next = d.address("/audit", url.Values{"before": {strconv.FormatInt(from+1, 10)}})
	}
	return records, nil
}

func recordOf(r *journal.Record) int64 {
	if r.Attempt != nil {
		return r.Attempt.Record
	}
	return r.Entry.Record
}

// address is path with the form's fields, and more.
func (d *auditData) address(path string, more url.Values) string {
	for _, field := range [][2]string{{"policy", d.Policy}, {"id", d.ID}, {"tenant", d.Tenant}, {"since", d.Since},
		{"until", d.Until}} {
		if field[1] != "" {
			more.Set(field[0], field[1])
		}
	}
	if len(more) == 0 {
		return path
	}
	return path + "?" + more.Encode()
}

func (d *auditData) exportURL(f audit.Format) string {
	return d.address("/audit/export", url.Values{"format": {string(f)}})
}

func (v *visit) auditRow(r *journal.Record) auditRow {
	row := auditRow{Record: v.Number(recordOf(r)), ID: r.Subject.ID, Policy: r.Subject.Policy}
	var e event
	if r.Attempt != nil {
		a := r.Attempt
		row.Kind, row.At = v.T("audit.kind.attempt"), v.At(a.Decision.AnalysedAt)
		row.Says = v.T("event.attempt", v.Number(a.Number)) + " " + v.outcome(a)
		if a.Decision.Outcome != decision.MaxRetriesExceeded {
			row.Says = v.T("event.attempt", v.Number(a.Number)) + " " + v.reason(a.Decision.Reason) + ". " + v.outcome(a)
		}
	} else {
		e = v.entry(r.Entry, bodyOf(r.Entry))
		row.Kind, row.At, row.By = v.Or("audit.kind."+string(r.Entry.Kind), string(r.Entry.Kind)), v.At(r.Entry.At), e.By
		row.Says = e.Title
		if e.Words != "" {
			row.Says += " “" + e.Words + "”"
		}
		row.ID, row.Policy = r.Entry.Subject.ID, r.Entry.Subject.Policy
	}
	if s := r.Subject; row.ID != "" {
		if r.Entry != nil {
			s = r.Entry.Subject
		}
		row.URL = subjectURL(s)
	}
	if r.Entry != nil && r.Entry.Kind == journal.DestinationEntry {
		row.URL = portalURL(row.ID)
	}
	if row.ID == "" && e.Run != "" {
		row.ID, row.URL = v.T("event.kind.bulk"), e.Run
	}
	return row
}

func (v *visit) outcome(a *journal.Attempt) string {
	d := &a.Decision
	if d.ShouldRetry() {
		return v.T("event.retry", v.retry(d.RetryCount, d.MaxRetries))
	}
	return v.T("event.final."+finalKind(d), v.Number(d.MaxRetries))
}

// exportTime that each page of an export may take; the whole may take as long as it needs.
const exportTime = 30 * time.Second

// export streams GET /audit/export?format=csv|jsonl with the form's fields, as `audit export` writes it. One that fails
// on its way is cut off, so that nobody takes it for a whole one.
func (p *Pages) export(w http.ResponseWriter, r *http.Request) {
	v := p.visit(w, r)
	o := p.open.Load()
	if o == nil {
		p.fail(v, &problem{status: http.StatusServiceUnavailable, key: "starting"})
		return
	}
	q := r.URL.Query()
	d := auditForm(q)
	format := audit.Format(q.Get("format"))
	f, ok := v.recordFilter(d)
	if !ok && d.WrongField == "id" { // a whole policy is exported, though not listed
		d.ID, ok = "", true
	}
	if !ok || !slices.Contains(audit.Formats(), format) {
		p.fail(v, &problem{status: http.StatusUnprocessableEntity, key: "export"})
		return
	}
	s := audit.Selection{RecordFilter: f}
	if d.ID == "" {
		s.Policy, s.Tenant = d.Policy, d.Tenant
	}
	kind := "application/x-ndjson"
	if format == audit.CSV {
		kind = "text/csv; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Disposition",
		`attachment; filename="audit-`+v.now.Format("20060102-150405")+"."+string(format)+`"`)
	if began, err := p.stream(v, o, s, format); err != nil {
		if !began {
			for _, name := range []string{"Content-Disposition", "Content-Type"} {
				w.Header().Del(name)
			}
			p.fail(v, err)
			return
		}
		if r.Context().Err() == nil {
			p.Log.Error("an export of the audit was cut off", zap.Error(err))
		}
		panic(http.ErrAbortHandler)
	}
}

var errNoLonger = errors.New("who asked may read no longer")

// stream writes the records, for as long as who asks may read them and takes them. began tells that something was
// written.
func (p *Pages) stream(v *visit, o *open, s audit.Selection, f audit.Format) (began bool, err error) {
	to := &exportWriter{v: v, late: http.NewResponseController(v.w)}
	_, err = audit.Export(v.r.Context(), o, to, s, f, nil)
	return to.began, err
}

// exportWriter gives each piece its own time, and ends where the reader's token does.
type exportWriter struct {
	v     *visit
	late  *http.ResponseController
	began bool
}

func (e *exportWriter) Write(b []byte) (int, error) {
	if !access.Still(e.v.r.Context(), access.Read) {
		return 0, errNoLonger
	}
	e.began = true
	_ = e.late.SetWriteDeadline(time.Now().Add(exportTime)) // what cannot set one has the server's
	return e.v.w.Write(b)
}
