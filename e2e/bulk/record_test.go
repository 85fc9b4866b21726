package bulk

import (
	"bytes"
	"encoding/json"

	"retry-worker/e2e/harness"
)

// exporter makes the broker print every record that it commits, one JSON object a line.
var exporter = []string{
	"ZEEBE_BROKER_EXPORTERS_RECORDS_CLASSNAME=io.camunda.zeebe.broker.exporter.debug.DebugLogExporter",
	"ZEEBE_BROKER_EXPORTERS_RECORDS_ARGS_LOGLEVEL=info",
}

// recordMark stands before a record in the broker's output.
const recordMark = " records - {"

// record is one line of what the broker committed, with what the tests look at.
type record struct {
	Position              int64
	Key                   int64
	RecordType, ValueType string
	Intent                string
	Value                 struct {
		ProcessInstanceKey         int64
		ElementID, BpmnElementType string // PROCESS_INSTANCE
		Type                       string // JOB
		Name, Value                string // VARIABLE
	}
}

// history is what the broker says that it did, over all its restarts. It takes the broker's output.
type history struct {
	harness.Board
	pending   []byte
	last      int64                    // position of the newest record: a restart prints old ones again
	instances map[int64]*instance      // by their keys
	completed map[string]map[int64]int // how often each job was completed, by its type and key
}

// instance of a process as the broker has it.
type instance struct {
	reviews []int64 // keys of the jobs by which it waited for people
	endedBy string  // id of the end event it ended at; empty while it runs
	claim   string
}

func newHistory() *history {
	return &history{instances: make(map[int64]*instance), completed: make(map[string]map[int64]int)}
}

// Write takes a part of the broker's output.
func (h *history) Write(b []byte) (int, error) {
	h.Change(func() {
		h.pending = append(h.pending, b...)
		for {
			line, rest, found := bytes.Cut(h.pending, []byte("\n"))
			if !found {
				return
			}
			h.pending = rest
			if mark := bytes.Index(line, []byte(recordMark)); mark >= 0 {
				h.read(line[mark+len(recordMark)-1:])
			}
		}
	})
	return len(b), nil
}

// read takes one record. One that is no JSON was cut by a kill: the broker prints it again.
func (h *history) read(line []byte) {
	var r record
	if json.Unmarshal(line, &r) != nil || r.Position <= h.last {
		return
	}
	h.last = r.Position
	if r.RecordType != "EVENT" {
		return
	}
	switch {
	case r.ValueType == "PROCESS_INSTANCE" && r.Value.BpmnElementType == "END_EVENT" && r.Intent == "ELEMENT_COMPLETED":
		h.of(&r).endedBy = r.Value.ElementID
	case r.ValueType == "VARIABLE" && r.Value.Name == "claimId":
		_ = json.Unmarshal([]byte(r.Value.Value), &h.of(&r).claim) // the tests' own, and a text
	case r.ValueType == "JOB" && r.Intent == "CREATED" && r.Value.Type == "retry-review":
		i := h.of(&r)
		i.reviews = append(i.reviews, r.Key)
	case r.ValueType == "JOB" && r.Intent == "COMPLETED":
		if h.completed[r.Value.Type] == nil {
			h.completed[r.Value.Type] = make(map[int64]int)
		}
		h.completed[r.Value.Type][r.Key]++
	}
}

// of is the instance that a record is about.
func (h *history) of(r *record) *instance {
	key := r.Value.ProcessInstanceKey
	if h.instances[key] == nil {
		h.instances[key] = &instance{}
	}
	return h.instances[key]
}

// ends are how many instances ended at each end event; h is held.
func (h *history) ends() map[string]int {
	all := make(map[string]int)
	for _, i := range h.instances {
		if i.endedBy != "" {
			all[i.endedBy]++
		}
	}
	return all
}

// waiting are how many instances that run had so many reviews; h is held.
func (h *history) waiting() map[int]int {
	all := make(map[int]int)
	for _, i := range h.instances {
		if i.endedBy == "" {
			all[len(i.reviews)]++
		}
	}
	return all
}
