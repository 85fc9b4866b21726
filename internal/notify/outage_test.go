package notify_test

import (
	"mime"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/journal"
	"retry-worker/internal/notify"
	"retry-worker/internal/statistics"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

// TestMails: what is told of outages, and on a Monday, in words that those who bill use, is a file of testdata for each.
func TestMails(t *testing.T) {
	outage := func(o notify.Outage) notify.Data {
		o.Destination, o.Label, o.Since = "unimed-sp", "Unimed SP", at("2026-11-21T17:02:00Z")
		return notify.Data{Outage: &o, URL: "https://retry.hospital.example/destinations"}
	}
	for name, tt := range map[string]struct {
		kind string
		data notify.Data
	}{
		"down-failures": {notify.TypeDown, outage(notify.Outage{Cause: "failures", Failed: 11, Admitted: 12, Held: 1210,
			NextTest: at("2026-11-21T17:25:00Z"), Deadline: at("2026-11-21T21:00:00Z")})},
		"down-probe":  {notify.TypeDown, outage(notify.Outage{Cause: "probe", Held: 1})},
		"down-person": {notify.TypeDown, outage(notify.Outage{Cause: "person"})},
		"up":          {notify.TypeUp, outage(notify.Outage{Until: at("2026-11-21T18:20:00Z"), Held: 210})},
		"up-nobody":   {notify.TypeUp, outage(notify.Outage{Until: at("2026-11-21T18:20:00Z")})},
		"digest": {notify.TypeDigest, notify.Data{Day: "2026-11-23", Open: notify.Summary{Count: 40},
			Due:       &notify.Due{Until: at("2026-11-24T10:00:00Z"), Count: 12, Amount: "184200.50"},
			FollowUps: map[string]int64{"": 1210, "ana.souza": 2}}},
		"digest-whole": {notify.TypeDigest, wholeDigest()},
		"news":         {notify.TypeNew, newsNotice().Data},
		"cause":        {notify.TypeCauses, newCauses()[0]},
		"causes":       {notify.TypeCauses, newCauses()[1]},
	} {
		t.Run(name, func(t *testing.T) {
			b := openMailbox(t, mailOptions{})
			tt.data.Team = "faturamento"
			const to = "faturamento@hospital.example"
			err := b.mailer(notify.Plaintext).Send(t.Context(), "id", &notify.Notice{Type: tt.kind, Timestamp: at("2026-11-21T17:03:00Z"), Data: tt.data}, to)
			testkit.Must(t, err)
			head, found := parts(t, b.deliveries()[0].message)
			told := ""
			for _, field := range []string{"Subject", "From", "To", "Date", "Message-ID", "Auto-Submitted", "MIME-Version"} {
				value, _ := new(mime.WordDecoder).DecodeHeader(head.Get(field))
				told += field + ": " + value + "\n"
			}
			golden.Check(t, "testdata/"+name+".txt", told+"\n"+strings.ReplaceAll(found["text/plain"], "\r\n", "\n"))
			golden.Check(t, "testdata/"+name+".html", strings.ReplaceAll(found["text/html"], "\r\n", "\n"))
		})
	}
}

// at returns an instant of RFC 3339.
func at(rfc3339 string) time.Time {
	t, err := time.Parse(time.RFC3339, rfc3339)
	if err != nil {
		panic(err)
	}
	return t
}

// newCauses are the data of a notice of one cause, and of several.
func newCauses() [2]notify.Data {
	known := notify.KnownCause{Policy: "tiss-submission", Reason: "TIMEOUT", Pattern: "glosa <b>", URL: "https://retry.hospital.example/causes/0a"}
	first := time.Date(2026, time.November, 21, 16, 2, 0, 0, time.UTC)
	news := journal.News{Failures: 12, Claims: 9, First: first, Last: first.Add(39 * time.Minute), Destination: "unimed-sp"}
	c := notify.NewCause{KnownCause: known, News: news, Label: "Unimed SP"}
	back := c
	back.Before = &journal.Before{Last: first.AddDate(0, -4, 0), Failures: 41, Recovered: 1, Closed: 30}
	return [2]notify.Data{{NewCauses: []notify.NewCause{c}}, {NewCauses: []notify.NewCause{back, c}, URL: "https://retry.hospital.example/"}}
}

// wholeDigest has something of everything that a digest may have.
func wholeDigest() notify.Data {
	oldest, value, half, claims := at("2026-11-01T10:00:00Z"), 0.9, 30.0, 4.0
	yes, no := true, false
	return notify.Data{Day: "2026-11-24", URL: "https://retry.hospital.example/dead-letters?team=faturamento",
		Open: notify.Summary{Count: 9, Amount: "1234.50", Causes: 3, Oldest: &oldest, OtherCount: 1, Top: []notify.Cause{
			{Policy: "tiss-submission", Reason: "AUTHORIZATION_DENIED", Count: 7, Pattern: "glosa <b>", Hint: "Peça a autorização.", Oldest: oldest, Amount: "10.00"},
			{Policy: "gone", Reason: "NEW_REASON", Count: 1, Oldest: oldest},
		}},
		Ages: &notify.Ages{Day: 1, Week: 2, Older: 6}, Expiring: 2,
		Taught: []notify.Taught{{KnownCause: notify.KnownCause{Policy: "tiss-submission", Reason: "TIMEOUT", Pattern: "x & y"}, Classification: "PERMANENT", At: oldest},
			{KnownCause: notify.KnownCause{Policy: "tiss-submission", Reason: "TIMEOUT"}, Classification: "TRANSIENT", At: oldest}},
		Advised: []notify.Advised{{KnownCause: newCauses()[0].NewCauses[0].KnownCause, Closed: 41}},
		KPIs: []statistics.KPI{
			{Policy: "tiss-submission", Name: "success_rate", Window: 24, Unit: "ratio", Value: &value, Goals: []statistics.Goal{
				{Rule: "RN-BIL-005", Kind: "target", Compare: ">=", Limit: 0.8, Holds: &yes}, {Rule: "RN-BIL-004", Kind: "target", Compare: ">=", Limit: 0.95, Holds: &no}}},
			{Policy: "tiss-submission", Name: "backoff_mean", Window: 168, Unit: "minutes", Value: &half, Goals: []statistics.Goal{
				{Rule: "RN-BIL-005", Kind: "alert", Compare: ">", Limit: 30, Holds: &no}, {Rule: "RN-BIL-004", Kind: "alert", Compare: ">", Limit: 20, Holds: &yes}}},
			{Policy: "job-queue", Name: "success_rate", Window: 24, Unit: "ratio"},
			{Policy: "job-queue", Name: "other", Window: 24, Unit: "seconds", Value: &value},
			{Policy: "job-queue", Name: "already_accepted", Window: 168, Unit: "claims", Value: &claims},
		}}
}
