package api_test

import (
	"fmt"
	"net/http"
	"testing"

	"retry-worker/internal/decision"
)

// pages are the items of a list, page by page.
func (c *fixture) pages(path string) (pages [][]map[string]any) {
	c.t.Helper()
	for cursor := ""; ; {
		a := c.get("vera", path+cursor)
		if a.status != http.StatusOK || len(pages) > 50 {
			c.t.Fatalf("%s: got %d %s", path, a.status, a.text)
		}
		var page []map[string]any
		for _, i := range a.body["items"].([]any) {
			page = append(page, i.(map[string]any))
		}
		pages = append(pages, page)
		next, more := a.body["next"].(string)
		if !more {
			return pages
		}
		cursor = "&cursor=" + next
	}
}

// TestAuditPages: the records of a subject come in their order, a hundred on a page.
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

// A list is bounded whatever is asked for.
func TestDeadLetterListIsBounded(t *testing.T) {
	c := open(t)
	for n := range 205 {
		c.permanent(fmt.Sprintf("CLM-%03d-1", n))
	}
	for query, want := range map[string]string{"": "[50 50 50 50 5]", "limit=200": "[200 5]"} {
		var sizes []int
		for _, page := range c.pages("/dead-letters?" + query) {
			sizes = append(sizes, len(page))
		}
		if fmt.Sprint(sizes) != want {
			t.Errorf("%q: the pages have %v, want %s", query, sizes, want)
		}
	}
}
