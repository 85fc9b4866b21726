package api_test

import (
	"fmt"
	"net/http"
	"testing"

	"retry-worker/internal/decision"
)

// What a record holds is compared with the journal by TestAWorkerSaysWhatItsJournalSays (cmd/retry-worker).
func TestAuditPages(t *testing.T) {
	const claim, all = "CLM-001-1", 205
	c := open(t)
	for n := range all {
		id := claim
		if n%40 == 3 {
			id = "CLM-002-1" // somebody else's between them
		}
		c.Fail(decision.DefaultPolicy, id, "TIMEOUT", -1)
	}
	const path = "/subjects/tiss-submission/" + claim + "/audit"
	var sizes []int
	last := 0.0
	for _, page := range c.pages(path + "?tenant=") {
		sizes = append(sizes, len(page))
		for _, item := range page {
			if item["claimId"] != claim || item["record"].(float64) <= last {
				t.Errorf("after record %v: got %v of %v", last, item["record"], item["claimId"])
			}
			last = item["record"].(float64)
		}
	}
	if fmt.Sprint(sizes) != "[100 99]" {
		t.Errorf("the pages have %v records, want 100 and 99", sizes)
	}
	if a := c.get("vera", path+fmt.Sprintf("?cursor=%d", all+1)); a.status != http.StatusOK || len(a.body["items"].([]any)) != 0 || a.body["next"] != nil {
		t.Errorf("behind the last: got %d %v", a.status, a.body)
	}
}
