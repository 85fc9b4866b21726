package gatewaytest

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestFetched(t *testing.T) {
	for _, tt := range []struct {
		doc   string
		names []string
		want  string
	}{
		{`{"a":1,"b":2}`, nil, `{"a":1,"b":2}`},
		{`{"a":1,"b":2}`, []string{"b"}, `{"b":2}`},
		{`{"a":1,"b":2}`, []string{"c"}, `{}`},
		{`{"a":1,"b":2,"c":3}`, []string{"c", "a"}, `{"a":1,"c":3}`},
		{` { "a" : {"b":[1,"}"]} , "b" : "\"," } `, []string{"b"}, `{"b" : "\"," }`},
		{`{"\u0061":1,"b":2}`, []string{"a"}, `{"\u0061":1}`},
		{`{}`, []string{"a"}, `{}`},
	} {
		got := fetched(tt.doc, tt.names)
		if !sameJSON(got, tt.want) {
			t.Errorf("%s of %s: %s, want %s", tt.names, tt.doc, got, tt.want)
		}
	}
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

// FuzzFetched holds the walk over the text against a decoder.
func FuzzFetched(f *testing.F) {
	for _, doc := range []string{`{"a":{"b":"}"},"c":[{}],"":null}`, `{"a\"b":"\\","c":1e9}`, `{ }`, `{"á":"\u00e1"}`} {
		f.Add(doc, "a")
		f.Add(doc, "c")
	}
	f.Fuzz(func(t *testing.T, doc, name string) {
		if !isObject(doc) {
			return
		}
		want := decoded(doc)
		for key := range want {
			if key != name {
				delete(want, key)
			}
		}
		got := fetched(doc, []string{name})
		if !isObject(got) || !sameJSON(got, encoded(want)) {
			t.Errorf("%q of %s: %s, want %s", name, doc, got, encoded(want))
		}
	})
}

func TestPadded(t *testing.T) {
	for _, doc := range []string{`{}`, `{"a":1}`, ` { "a" : 1 } `} {
		got := padded(doc, 500)
		if len(strings.TrimSpace(got)) < 495 || len(got) > 500 || !isObject(got) {
			t.Errorf("%s was padded to %d bytes, valid %v: %s", doc, len(got), isObject(got), got)
		}
	}
	if got := padded(`{"a":1}`, 3); got != `{"a":1}` {
		t.Errorf("a document that is larger became %s", got)
	}
}

func TestJobHeapIsInOrderWhateverIsTakenOut(t *testing.T) {
	h := jobHeap{before: byKey}
	jobs := map[int64]*job{}
	for n := range int64(500) {
		key := n * 7919 % 501
		jobs[key] = &job{Job: Job{Key: key}}
		h.push(jobs[key])
	}
	for key, j := range jobs {
		if key%3 == 0 {
			h.remove(j)
			delete(jobs, key)
		}
	}
	var got []int64
	for h.len() > 0 {
		got = append(got, h.pop().Key)
	}
	if len(got) != len(jobs) || !slices.IsSorted(got) {
		t.Errorf("%d of %d jobs came out, sorted: %v", len(got), len(jobs), slices.IsSorted(got))
	}
}
