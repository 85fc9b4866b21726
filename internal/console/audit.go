package console

import (
	"cmp"
	"errors"
	"io"
	"net/http"
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

// audit answers GET /audit with a page of the records that the form selects, or of the newest ones.
func (p *Pages) audit(v *visit) *page {
	head := must(v.o.Head(v.r.Context()))
	f, wrong := v.selection()
	d := view{"Head": head, "ID": f.Subject.ID, "Tenant": v.asked("tenant"),
		"Policies": options(append(v.Catalogue.Policies.Names(), f.Policy), f.Policy, v.policy),
		"Since":    v.asked("since"), "Until": v.asked("until"), "WrongField": wrong,
		"Wrong":    v.Or("audit.wrong."+wrong, ""),
		"Searched": f.RecordFilter != (journal.RecordFilter{}), "Rows": nil, "Next": "", "Export": "", "ExportCSV": ""}
	if wrong == "" || wrong == "id" { // a whole policy can be exported, though not listed
		d["Export"], d["ExportCSV"] = v.exportURL(f.Policy, audit.JSONLines), v.exportURL(f.Policy, audit.CSV)
	}
	pg := &page{name: "audit", data: d}
	if wrong != "" {
		pg.status = http.StatusUnprocessableEntity
		return pg
	}
	var records []journal.Entry
	if d["Searched"] == true {
		records, d["Next"] = v.forward(f.RecordFilter)
	} else {
		records, d["Next"] = v.latest(head.Record)
	}
	d["Rows"], pg.summary = journal.Views(records, v.auditRow), v.T("audit.summary", v.Number(head.Record))
	return pg
}

// asked returns a field of the audit's form.
func (v *visit) asked(name string) string {
	const most = 512 // bytes of an id
	return plain(v.r.URL.Query().Get(name), most)
}

// selection returns the records that the form asks for. wrong names a field that is wrong: id, which a list needs
// beside a policy, or an instant that cannot be read.
func (v *visit) selection() (f audit.Selection, wrong string) {
	var since, until bool
	f.Since, since = v.instant(v.asked("since"))
	f.Until, until = v.instant(v.asked("until"))
	f.Policy, f.Tenant = v.asked("policy"), v.asked("tenant")
	id := v.asked("id")
	if id != "" {
		f.Policy = cmp.Or(f.Policy, decision.DefaultPolicy)
		f.Subject = journal.Subject{Tenant: cmp.Or(f.Tenant, journal.DefaultTenant), Policy: f.Policy, ID: id}
	}
	switch {
	case id == "" && f.Policy != "":
		wrong = "id"
	case !since:
		wrong = "since"
	case !until:
		wrong = "until"
	}
	return f, wrong
}

// forward returns a page of the records that f selects, the oldest first, from after the cursor on, and the address of
// the next one.
func (v *visit) forward(f journal.RecordFilter) (records []journal.Entry, next string) {
	after, _ := strconv.ParseInt(v.r.URL.Query().Get("after"), 10, 64) // without a cursor: the first page
	records = must(v.o.Records(v.r.Context(), f, max(after, 0), pageRows+1))
	if len(records) > pageRows {
		records = records[:pageRows]
		next = v.here(field{"after", key(records[pageRows-1].Record)})
	}
	return records, next
}

// latest returns a page of all records up to head, the newest first, from before the cursor on, and the address of the
// next one.
func (v *visit) latest(head int64) (records []journal.Entry, next string) {
	before, err := strconv.ParseInt(v.r.URL.Query().Get("before"), 10, 64)
	if err != nil || before < 1 || before > head+1 {
		before = head + 1
	}
	// between returns the records above from and below before, one more than a page at most.
	between := func(from int64) []journal.Entry {
		all := must(v.o.Records(v.r.Context(), journal.RecordFilter{}, from, pageRows+1))
		return slices.DeleteFunc(all, func(r journal.Entry) bool { return r.Record >= before })
	}
	from := max(before-pageRows-1, 0)
	records = between(from)
	if len(records) < pageRows && from > 0 { // numbers are missing: look further down
		from = int64(sort.Search(int(from), func(from int) bool { return len(between(int64(from))) <= pageRows }))
		records = between(from)
	}
	slices.Reverse(records)
	if from > 0 {
		next = v.here(field{"before", key(from + 1)})
	}
	return records, next
}

// exportURL returns the address of the export of what the form asks for.
func (v *visit) exportURL(policy string, f audit.Format) string {
	return strings.Replace(v.here(field{"policy", policy}, field{"format", string(f)}), "/audit", "/audit/export", 1)
}

// auditRow is a record as the audit lists it. Says is what happened, URL where to read more.
type auditRow struct {
	event
	Kind, ID, URL, Policy, Says string
}

func (v *visit) auditRow(r *journal.Entry) auditRow {
	if a := r.Attempt; a != nil {
		e := v.attempt(r.Subject.Policy, a)
		says := v.T("event.attempt", e.Number) + " "
		if e.Why.Reason != "" {
			says += v.reason(e.Why.Reason) + ". "
		}
		return auditRow{e, v.T("event.kind.attempt"), r.Subject.ID, subjectURL(r.Subject), r.Subject.Policy, says + e.Text}
	}
	s, e := r.Subject, v.entry(r)
	row := auditRow{e, v.Or("event.kind."+string(r.Kind), string(r.Kind)), s.ID, "", s.Policy, e.Title}
	if e.Words != "" {
		row.Says += " “" + e.Words + "”"
	}
	switch {
	case r.Kind == journal.DestinationEntry:
		row.URL = portalURL(s.ID)
	case r.Kind == journal.TeachingEntry:
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
	f, wrong := v.selection()
	format := audit.Format(v.r.URL.Query().Get("format"))
	if wrong != "" && wrong != "id" || !slices.Contains(audit.Formats(), format) {
		check(&problem{status: http.StatusUnprocessableEntity, key: "export"})
	}
	kind := "application/x-ndjson"
	if format == audit.CSV {
		kind = "text/csv; charset=utf-8"
	}
	name := "audit-" + v.Now.Format("20060102-150405") + "." + string(format)
	return p.download(v, "the audit", kind, name, func(to io.Writer) error {
		_, err := audit.Export(v.r.Context(), v.o, to, f, format, nil)
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

// exportWriter gives each write its own deadline, and fails once the reader may no longer read.
type exportWriter struct {
	v     *visit
	late  *http.ResponseController
	began bool
}

func (e *exportWriter) Write(b []byte) (int, error) {
	if !access.Still(e.v.r.Context(), access.Read) {
		return 0, errors.New("who asked may read no longer")
	}
	e.began = true
	_ = e.late.SetWriteDeadline(time.Now().Add(exportTime)) // if it cannot, the server's applies
	return e.v.w.Write(b)
}
