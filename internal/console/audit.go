package console

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/access"
	"retry-worker/internal/audit"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// auditData is one page of the audit's records.
type auditData struct {
	Policies           []option
	Policy, ID, Tenant string
	Since, Until       string
	// Wrong says what is wrong with WrongField; both are empty if nothing is.
	Wrong, WrongField string
	Searched          bool
	Rows              []auditRow
	Next, Export      string
	ExportCSV         string
	Head              journal.Head
	V                 *visit
}

type auditRow struct {
	Record  string
	At      Moment
	Kind    string
	ID, URL string
	Policy  string
	Says    string
	By      string
}

// auditForm returns a page with the form's fields as they were sent.
func auditForm(q url.Values) *auditData {
	const most = 512 // bytes of an id
	d := &auditData{}
	for name, field := range map[string]*string{
		"policy": &d.Policy, "id": &d.ID, "tenant": &d.Tenant, "since": &d.Since, "until": &d.Until,
	} {
		*field = plain(q.Get(name), most)
	}
	if d.ID != "" {
		d.Policy = cmp.Or(d.Policy, decision.DefaultPolicy)
	}
	return d
}

func (p *Pages) audit(v *visit) *page {
	d := auditForm(v.r.URL.Query())
	pg := &page{name: "audit", section: "audit", title: v.T("audit.title"), data: d}
	d.V, d.Head = v, must(v.o.Head(v.r.Context()))
	d.Policies = options(append(v.Catalogue.Policies.Names(), d.Policy), d.Policy, v.policy)
	f := v.recordFilter(d)
	if d.Wrong == "" || d.WrongField == "id" { // a whole policy can be exported, though not listed
		d.Export, d.ExportCSV = v.exportURL(d, audit.JSONLines), v.exportURL(d, audit.CSV)
	}
	if d.Wrong != "" {
		pg.status = http.StatusUnprocessableEntity
		return pg
	}
	var records []journal.Record
	if d.Searched = f != (journal.RecordFilter{}); d.Searched {
		records = v.forward(d, f)
	} else {
		records = v.latest(d)
	}
	d.Rows = each(records, v.auditRow)
	pg.summary = v.T("audit.summary", v.Number(d.Head.Record))
	return pg
}

// recordFilter returns the filter that the form asks for. It sets d.Wrong if a field is wrong.
func (v *visit) recordFilter(d *auditData) (f journal.RecordFilter) {
	var since, until bool
	f.Since, since = v.instant(d.Since)
	f.Until, until = v.instant(d.Until)
	if d.ID != "" {
		f.Subject = journal.Subject{Tenant: cmp.Or(d.Tenant, journal.DefaultTenant), Policy: d.Policy, ID: d.ID}
	}
	switch {
	case d.ID == "" && d.Policy != "":
		d.Wrong, d.WrongField = v.T("audit.wrong.id"), "id"
	case !since:
		d.Wrong, d.WrongField = v.T("audit.wrong.time"), "since"
	case !until:
		d.Wrong, d.WrongField = v.T("audit.wrong.time"), "until"
	}
	return f
}

// forward returns a page of the records that f selects, the oldest first, from after the cursor on.
func (v *visit) forward(d *auditData, f journal.RecordFilter) []journal.Record {
	after, _ := strconv.ParseInt(v.r.URL.Query().Get("after"), 10, 64) // without a cursor: the first page
	records := must(v.o.Records(v.r.Context(), f, max(after, 0), pageRows+1))
	if len(records) > pageRows {
		records = records[:pageRows]
		d.Next = v.here(field{"after", key(records[pageRows-1].Number())})
	}
	return records
}

// latest returns a page of all records, the newest first, from before the cursor on.
func (v *visit) latest(d *auditData) []journal.Record {
	before, err := strconv.ParseInt(v.r.URL.Query().Get("before"), 10, 64)
	if err != nil || before < 1 || before > d.Head.Record+1 {
		before = d.Head.Record + 1
	}
	// between returns the records above from and below before, one more than a page at most.
	between := func(from int64) []journal.Record {
		all := must(v.o.Records(v.r.Context(), journal.RecordFilter{}, from, pageRows+1))
		return slices.DeleteFunc(all, func(r journal.Record) bool { return r.Number() >= before })
	}
	from := max(before-pageRows-1, 0)
	records := between(from)
	if len(records) < pageRows && from > 0 { // numbers are missing: look further down
		from = int64(sort.Search(int(from), func(from int) bool { return len(between(int64(from))) <= pageRows }))
		records = between(from)
	}
	slices.Reverse(records)
	if from > 0 {
		d.Next = v.here(field{"before", key(from + 1)})
	}
	return records
}

// exportURL returns the address of the export of what d asks for.
func (v *visit) exportURL(d *auditData, f audit.Format) string {
	return strings.Replace(v.here(field{"policy", d.Policy}, field{"format", string(f)}), "/audit", "/audit/export", 1)
}

func (v *visit) auditRow(r *journal.Record) auditRow {
	row := auditRow{Record: v.Number(r.Number())}
	if a := r.Attempt; a != nil {
		d := &a.Decision
		row.ID, row.Policy, row.URL = r.Subject.ID, r.Subject.Policy, subjectURL(r.Subject)
		row.Kind, row.At, row.Says = v.T("event.kind.attempt"), v.At(d.AnalysedAt), v.T("event.attempt", v.Number(a.Number))
		if !isOnlyLimit(d) {
			row.Says += " " + v.reason(d.Reason) + "."
		}
		row.Says += " " + v.consequence(d)
		return row
	}
	s := r.Entry.Subject
	e := v.entry(r.Entry)
	row.Kind, row.At = v.Or("event.kind."+string(r.Entry.Kind), string(r.Entry.Kind)), v.At(r.Entry.At)
	row.ID, row.Policy, row.Says, row.By = s.ID, s.Policy, e.Title, e.By
	if e.Words != "" {
		row.Says += " “" + e.Words + "”"
	}
	switch {
	case r.Entry.Kind == journal.DestinationEntry:
		row.URL = portalURL(s.ID)
	case r.Entry.Kind == journal.TeachingEntry:
		row.URL = causeURL(s.ID)
	case s.ID != "":
		row.URL = subjectURL(s)
	case e.Run != "":
		row.ID, row.URL = v.T("event.kind.bulk"), e.Run
	}
	return row
}

// exportTime bounds each write of an export; the whole may take as long as it needs.
const exportTime = 30 * time.Second

// export answers GET /audit/export?format=csv|jsonl with the records that the form selects, as `audit export` writes
// them.
func (p *Pages) export(v *visit) *page {
	q := v.r.URL.Query()
	d := auditForm(q)
	format := audit.Format(q.Get("format"))
	f := v.recordFilter(d)
	if d.Wrong != "" && d.WrongField != "id" || !slices.Contains(audit.Formats(), format) {
		check(&problem{status: http.StatusUnprocessableEntity, key: "export"})
	}
	s := audit.Selection{RecordFilter: f}
	if d.ID == "" {
		s.Policy, s.Tenant = d.Policy, d.Tenant
	}
	kind := "application/x-ndjson"
	if format == audit.CSV {
		kind = "text/csv; charset=utf-8"
	}
	name := "audit-" + v.Now.Format("20060102-150405") + "." + string(format)
	return p.download(v, "the audit", kind, name, func(to io.Writer) error {
		_, err := audit.Export(v.r.Context(), v.o, to, s, format, nil)
		return err
	})
}

// download answers with the file that write writes, while the reader may read it. If write fails when a part was
// written, it cuts the connection off, so that nobody takes that for the whole.
func (p *Pages) download(v *visit, what, kind, name string, write func(to io.Writer) error) *page {
	to := &exportWriter{v: v, late: http.NewResponseController(v.w)}
	h := v.w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", `attachment; filename="`+name+`"`)
	switch err := write(to); {
	case err == nil:
		return nil
	case !to.began:
		h.Del("Content-Type")
		h.Del("Content-Disposition")
		check(err)
	case v.r.Context().Err() == nil:
		p.Log.Error("an export of "+what+" was cut off", zap.Error(err))
	}
	panic(http.ErrAbortHandler)
}

var errNoLonger = errors.New("who asked may read no longer")

// exportWriter gives each write its own deadline, and fails once the reader may no longer read.
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
	_ = e.late.SetWriteDeadline(time.Now().Add(exportTime)) // if it cannot, the server's applies
	return e.v.w.Write(b)
}
