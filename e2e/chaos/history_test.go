package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"

	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/worker"
)

// Personal data as it turns up in error texts: nobody's, but their check digits are right.
var personal = []string{
	"111.444.777-35", "52998224725", "898001234567808", "maria.exemplo@example.com", "(11) 98765-4321", "4111 1111 1111 1111",
	"Maria Exemplo da Silva",
}

// canaries are what no sink may hold: the data as they are written, and their digits alone.
func canaries() (all []string) {
	for _, p := range personal {
		all = append(all, p)
		if digits := digitsOf(p); digits != p && len(digits) > 7 {
			all = append(all, digits)
		}
	}
	return append(all, "Maria Exemplo")
}

func digitsOf(s string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, s)
}

// aboutPersonal is an error text that names all of it.
func aboutPersonal(code string) string {
	return fmt.Sprintf("%s: paciente %s, CPF %s e %s, CNS %s, e-mail %s, tel. %s, cartão %s",
		code, personal[6], personal[0], personal[1], personal[2], personal[3], personal[4], personal[5])
}

// view is what `history -o json` and the API say of a claim.
type view struct {
	Subject, ID, Policy, State, Status string
	NextRetryTime, DeadLetterID        string
	RetryCount                         int64
	Episodes                           []struct{ Number int64 }
	Attempts                           []struct {
		AttemptNumber, RetryCount                   int64
		Error, Outcome, NextRetryTime, DeadLetterID string
		ProcessInstanceKey                          string // no number: JavaScript's are not exact enough
	}
}

// What was decided on the engine can be read: by `history`, beside the running worker and after it, and by the
// API, which say what the process got. And nothing personal is in any of it, nor in what the store keeps.
func TestHistoryOfARealRun(t *testing.T) {
	t.Parallel()
	for _, name := range stores {
		t.Run(name, func(t *testing.T) { playHistory(t, name) })
	}
}

// told is a run whose history is told.
type told struct {
	*devEngine
	t     *testing.T
	name  string
	url   string
	p     *program
	sinks map[string]string // what is to hold nothing personal, by where it was found
}

func playHistory(t *testing.T, name string) {
	begun := time.Now()
	r := &told{devEngine: openEngine(t), t: t, name: name, url: newURL[name](t), sinks: map[string]string{}}
	r.p = serve(t, settings{name: "worker", gateway: r.GatewayAddress(), url: r.url})
	retried, dead, recovered := r.claim(1), r.claim(2), r.claim(3)
	r.passes(retried, aboutPersonal("TIMEOUT"), 0, "pendente")
	r.passes(retried, aboutPersonal("HTTP 503"), 1, "pendente")
	r.passes(dead, aboutPersonal("INVALID_PATIENT_DATA"), 0, "falha")
	r.passes(recovered, aboutPersonal("TIMEOUT"), 0, "pendente")
	r.recovers(recovered)
	rejected := r.rejections()
	if v := r.view(recovered); v.Status != "entregue" {
		t.Errorf("%s is %s, want entregue after its success was reported", recovered, v.Status)
	}
	if v := r.view(retried); len(v.Episodes) != 1 || len(v.Attempts) != 2 {
		t.Errorf("%s has %d episodes and %d attempts, want one and two", retried, len(v.Episodes), len(v.Attempts))
	}
	r.unknown()
	r.sinks["metrics"] = r.p.metrics()
	r.keep("while the worker runs")
	beside := r.sinks["history "+retried+" -o json"]
	r.p.stop()
	r.keep("after the worker")
	if after := r.history(retried, "-o", "json"); after != beside {
		t.Errorf("after the worker `history` says %s, beside it %s", after, beside)
	}
	r.history(dead)
	r.sinks["log"] = r.p.out.Text()
	found := r.expectNothingPersonal()
	a := look(t, r.url)
	if a.kinds[journal.RejectionEntry] != rejected || a.kinds[journal.OutcomeEntry] != 1 {
		t.Errorf("the audit has the records %v, want %d rejections and an outcome", a.kinds, rejected)
	}
	report(t, "history and redaction, the engine, "+name, "4 analyses, an outcome, %d rejections: `history` as text and JSON beside the worker and after it, and the API, say what the processes got; %d canaries in %d sinks (%d KiB): none; %.1f s",
		rejected, len(canaries()), len(r.sinks), found>>10, time.Since(begun).Seconds())
}

func (r *told) claim(n int) string { return fmt.Sprintf("CLM-HISTORY-%s-%d", r.name, n) }

// passes plays one analysis to its process's end and holds history and API against what the process got.
func (r *told) passes(claim, problem string, count int64, status string) {
	r.t.Helper()
	instance, got, err := r.ends(wait.Context(r.t), analysis(claim, problem, count))
	testkit.Must(r.t, err)
	if got.text("originalError") != problem {
		r.t.Errorf("%s: the process has originalError %s, want it as it came", claim, got["originalError"])
	}
	v := r.view(claim)
	last := v.Attempts[len(v.Attempts)-1]
	if v.Status != status || v.NextRetryTime != got.text("nextRetryTime") || v.DeadLetterID != got.text("deadLetterId") ||
		fmt.Sprint(v.RetryCount) != string(got["retryCount"]) || last.ProcessInstanceKey != fmt.Sprint(instance) || last.AttemptNumber != int64(len(v.Attempts)) ||
		last.NextRetryTime != v.NextRetryTime || last.DeadLetterID != v.DeadLetterID {
		r.t.Errorf("%s: history has %+v, the process %d got %s", claim, v, instance, got)
	}
	if !strings.Contains(last.Error, "[CPF]") || !strings.Contains(last.Error, strings.SplitN(problem, ":", 2)[0]) {
		r.t.Errorf("%s: history has the error %q, want it redacted and else as it came", claim, last.Error)
	}
	text := r.history(claim)
	for _, want := range []string{claim, v.State, v.NextRetryTime, v.DeadLetterID, "episode 1"} {
		if !strings.Contains(text, want) {
			r.t.Errorf("`history %s` prints %q, want %q in it", claim, text, want)
		}
	}
}

// view of a claim: the same from the command line and from the API.
func (r *told) view(claim string) (v view) {
	r.t.Helper()
	var fromAPI view
	printed := r.history(claim, "-o", "json")
	status, body := testkit.Get(r.t, "http://"+r.p.http+"/api/v1/subjects/tiss-submission/"+claim)
	r.sinks["API "+claim] = body
	if status != http.StatusOK || json.Unmarshal([]byte(body), &fromAPI) != nil || json.Unmarshal([]byte(printed), &v) != nil || len(v.Attempts) == 0 {
		r.t.Fatalf("%s: the API answers %d %s, history prints %s", claim, status, body, printed)
	}
	if v.Subject != claim || fromAPI.ID != claim || v.Policy != "tiss-submission" {
		r.t.Errorf("%s: history is of %s, the API's answer of %s", claim, v.Subject, fromAPI.ID)
	}
	v.Subject, fromAPI.ID = "", ""
	if fmt.Sprintf("%+v", v) != fmt.Sprintf("%+v", fromAPI) {
		r.t.Errorf("%s: history says %+v, the API %+v", claim, v, fromAPI)
	}
	return v
}

// history runs the command for a claim that there is.
func (r *told) history(claim string, more ...string) string {
	r.t.Helper()
	out, code := once(r.t, r.url, append([]string{"history", claim}, more...)...)
	if code != 0 {
		r.t.Errorf("`history %s`: exit status %d, %s", claim, code, out)
	}
	r.sinks[strings.Join(append([]string{"history", claim}, more...), " ")] = out
	return out
}

// unknown asks for a claim that there is not.
func (r *told) unknown() {
	r.t.Helper()
	out, code := once(r.t, r.url, "history", "CLM-NOBODY-1")
	if code != 1 || strings.Count(out, "\n") != 1 {
		r.t.Errorf("`history` of an unknown claim: exit status %d, %q; want 1 and one line", code, out)
	}
	if status, body := testkit.Get(r.t, "http://"+r.p.http+"/api/v1/subjects/tiss-submission/CLM-NOBODY-1"); status != http.StatusNotFound {
		r.t.Errorf("the API answers %d %s for an unknown claim, want 404", status, body)
	}
}

// recovers reports a claim's success.
func (r *told) recovers(claim string) {
	r.t.Helper()
	_, _, err := r.ends(wait.Context(r.t), &pb.CreateProcessInstanceRequest{BpmnProcessId: "UNMAPPED", Version: -1, Variables: jsonOf(map[string]any{
		"analysis": worker.RecordRetryOutcome, "claimId": claim, "retryOutcome": "success",
	})})
	testkit.Must(r.t, err)
}

// rejections puts personal data where the worker refuses what it finds, and returns how many there were.
func (r *told) rejections() int {
	r.t.Helper()
	data := aboutPersonal("TIMEOUT")
	before, err := r.Counters(r.t.Context())
	testkit.Must(r.t, err)
	all := []map[string]any{
		{"claimId": data, "submissionError": passing},
		{"claimId": r.claim(4), "submissionError": passing, "retryCount": data},
		{"claimId": r.claim(4), "submissionError": passing, "lastSubmissionTime": data},
		{"claimId": r.claim(4), "retryOutcome": data, "analysis": worker.RecordRetryOutcome},
	}
	var instances []int64
	for _, given := range all {
		if given["analysis"] == nil {
			given["analysis"] = worker.AnalyzeRetry
		}
		instances = append(instances, r.start(r.t, &pb.CreateProcessInstanceRequest{BpmnProcessId: "UNMAPPED", Version: -1, Variables: jsonOf(given)}))
	}
	r.expectCounters(r.t, before, map[string]int{"incidents pending": len(all)})
	for _, instance := range instances {
		_, err := r.CancelProcessInstance(r.t.Context(), &pb.CancelProcessInstanceRequest{ProcessInstanceKey: instance})
		testkit.Must(r.t, err)
	}
	r.expectCounters(r.t, before, map[string]int{"incidents pending": 0})
	return len(all)
}

// keep notes everything that the store holds now: the bytes of SQLite's files, or every column of every table.
func (r *told) keep(when string) {
	r.t.Helper()
	if path, ok := strings.CutPrefix(r.url, "sqlite:"); ok {
		for _, ending := range []string{"", "-wal", "-shm"} {
			content, err := os.ReadFile(path + ending)
			if err == nil {
				r.sinks["file journal.db"+ending+" "+when] = string(content)
			} else if !os.IsNotExist(err) {
				r.t.Fatal(err)
			}
		}
		return
	}
	db, ctx := database(r.t, r.url), context.Background()
	var tables []string
	each(ctx, r.t, db, "SELECT quote_ident(table_name) FROM information_schema.tables WHERE table_schema = 'public'", func(scan func(...any) error) error {
		var table string
		defer func() { tables = append(tables, table) }()
		return scan(&table)
	})
	var all strings.Builder
	for _, table := range tables {
		each(ctx, r.t, db, "SELECT t::text FROM "+table+" t", func(scan func(...any) error) error {
			var row string
			err := scan(&row)
			fmt.Fprintln(&all, table, row)
			return err
		})
	}
	r.sinks["tables "+when] = all.String()
}

// expectNothingPersonal looks into every sink, and returns how many bytes that were. That a sink is the right one
// shows by what was made of the data: the store, the log and the history hold their marks.
func (r *told) expectNothingPersonal() (size int) {
	r.t.Helper()
	marked := 0
	for where, text := range r.sinks {
		size += len(text)
		if strings.Contains(text, "[CPF]") && strings.Contains(text, "[NAME]") {
			marked++
		}
		for _, canary := range canaries() {
			if strings.Contains(strings.ToLower(text), strings.ToLower(canary)) {
				r.t.Errorf("%s holds %q", where, canary)
			}
		}
	}
	if !strings.Contains(r.sinks["log"], "[CPF]") || !strings.Contains(r.sinks["file journal.db after the worker"]+r.sinks["tables after the worker"], "[CPF]") || marked < 5 {
		r.t.Errorf("%d of %d sinks hold the marks of what was redacted: they are not what they are taken for", marked, len(r.sinks))
	}
	return size
}
