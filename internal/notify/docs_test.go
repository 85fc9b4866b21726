package notify_test

import (
	"reflect"
	"strings"
	"testing"

	"retry-worker/internal/journal"
	"retry-worker/internal/notify"
	"retry-worker/internal/testkit"
)

// TestDocumentNamesEverything that a webhook holds.
func TestDocumentNamesEverything(t *testing.T) {
	_, text, found := strings.Cut(testkit.Read(t, "../../docs/policies.md"), "### What a webhook says")
	if !found {
		t.Fatal("no such section")
	}
	for _, of := range []any{notify.Notice{}, notify.Data{}, notify.Summary{}, notify.Cause{}, notify.Ages{}, notify.Due{}, notify.Outage{}, notify.KnownCause{}, notify.Advised{},
		notify.NewCause{}, journal.News{}, journal.Before{}} {
		for i := range reflect.TypeOf(of).NumField() {
			name, _, _ := strings.Cut(reflect.TypeOf(of).Field(i).Tag.Get("json"), ",")
			if !reflect.TypeOf(of).Field(i).Anonymous && !strings.Contains(text, "`"+name+"`") {
				t.Errorf("the key %s of %T is not explained", name, of)
			}
		}
	}
	for _, word := range []string{notify.TypeNew, notify.TypeCauses, notify.TypeDigest, notify.TypeDown, notify.TypeUp} {
		if !strings.Contains(text, "`"+word+"`") {
			t.Errorf("the type %s is not explained", word)
		}
	}
	for _, r := range []notify.Result{notify.Failed, notify.Refused, notify.Dropped} {
		if !strings.Contains(text, "`notice_"+string(r)+"`") {
			t.Errorf("the event of %s is not explained", r)
		}
	}
}
