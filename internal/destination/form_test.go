package destination

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
)

// TestStoredForm: a State with every member that 1.0.0 records is written again as it was read. Were one gone or named
// anew, `audit verify` would call journals broken that hold it. Members may be added if they are left out when zero.
func TestStoredForm(t *testing.T) {
	recorded, err := os.ReadFile("testdata/state-1.0.0.json")
	must(t, err)
	var s State
	must(t, json.Unmarshal(recorded, &s))
	again, err := json.Marshal(s)
	must(t, err)
	if !bytes.Equal(again, bytes.TrimSpace(recorded)) {
		t.Errorf("the state of 1.0.0\n%sis written as\n%s", recorded, again)
	}
}
