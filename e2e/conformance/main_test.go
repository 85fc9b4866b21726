// Package conformance plays facts about the platform against an engine, through its protocols only: gRPC, the REST API
// of 8.6 and that of 8.8. One row is one fact and says where it is known from. Whoever wrote the rows had not read the
// development engine's core: one core for all tests is a risk of one error in all of them.
//
// ENGINE_UNDER_TEST names the engine:
//
//	(empty)                         the development engine, started twice: in the shapes 8.6 and 8.8
//	folder:/path                    a distribution of Zeebe that you have, started by its bin/broker
//	docker:image                    an image that you have, started by docker
//	grpc://host:port                a running engine over gRPC, without TLS
//	http://host:port, https://host  a running engine over REST; /v2 is put behind it. A user and a password may stand in
//	                                the address, a bearer token in ENGINE_UNDER_TEST_TOKEN
//
// Nothing but the empty value runs in `make test`. A running engine keeps the small processes that the rows deploy.
// Rows that an engine cannot play are left out on it and named in the output. `go test -v ./e2e/conformance` prints
// the table.
//
// The facts were last seen on real brokers, 8.5.8 and 8.6.0, on 28 November 2026.
package conformance_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"retry-worker/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m, harness.Parallel(8)) }

// source says where a fact is known from.
type source string

const (
	seen      source = "seen on 8.5.8 / 8.6.0 (November 2026)"
	described source = "the public description" // and what its maintainers answered
	assumed   source = "assumed"
	own       source = "the development engine's own rule" // other engines are not asked
)

// needs are what a row needs besides a door.
type needs int

const (
	clock   needs = 1 << iota // a clock to move; such rows run one after the other
	records                   // the engine's records, for incidents
	control                   // the counters of its actuator
)

// row is one fact.
type row struct {
	name  string
	from  source
	doors doors // that it is played through
	needs needs
	play  func(*play)
}

var table = slices.Concat(
	jobRows, errorRows, variableRows, gatewayRows, timerRows, messageRows, instanceRows, modelRows, restRows, ownRows,
)

func TestConformance(t *testing.T) {
	harness.SkipIfShort(t)
	r := results{engines: enginesUnderTest(t), got: map[string]string{}, run: time.Now().UnixMilli()}
	t.Run("moving the clock", func(t *testing.T) { r.play(t, true) })
	t.Run("beside one another", func(t *testing.T) { r.play(t, false) })
	for _, e := range r.engines {
		e.nameLeftOut()
	}
	t.Log(r.table())
}

// through reports whether the row is played through a door.
func (r *row) through(d door) bool { return r.doors&d.kind() != 0 }

// results are the rows'.
type results struct {
	engines []*engine
	run     int64 // tells this run from earlier ones on the engine

	mu  sync.Mutex
	got map[string]string // by row and door
}

// play plays either the rows that move the clock, one after the other, or the other rows, several at once.
func (r *results) play(t *testing.T, moving bool) {
	for i := range table {
		row := &table[i]
		if row.needs&clock != 0 != moving {
			continue
		}
		for _, e := range r.engines {
			for _, d := range e.doors {
				if e.missing(row) != "" || !row.through(d) {
					continue
				}
				id := fmt.Sprintf("c%d-%d-%d", r.run, i, d.kind())
				t.Run(row.name+"/"+d.name(), func(t *testing.T) {
					if !moving {
						t.Parallel()
					}
					t.Cleanup(func() { r.add(row.name+d.name(), t.Failed()) })
					ctx, cancel := context.WithTimeout(t.Context(), playTime)
					defer cancel()
					row.play(&play{T: t, door: d.during(ctx), ctx: ctx, engine: e, id: id})
				})
			}
		}
	}
}

func (r *results) add(name string, failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got[name] = map[bool]string{false: "ok", true: "FAILED"}[failed]
}

// table returns a table of all rows: the source of each, and its result through each door.
func (r *results) table() string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	line := func(name, from string, cell func(door) string) {
		fmt.Fprintf(w, "\n%s\t%s", name, from)
		for _, e := range r.engines {
			for _, d := range e.doors {
				fmt.Fprintf(w, "\t%s", cell(d))
			}
		}
	}
	line("fact", "known from", door.name)
	for _, row := range table {
		line(row.name, string(row.from), func(d door) string { return cmp.Or(r.got[row.name+d.name()], "-") })
	}
	_ = w.Flush()
	return out.String()
}
