package scenarios

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/postgres"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

const (
	soakEvery   = 50 * time.Millisecond // a claim: 20 a second
	soakPortals = 40
	soakRoll    = 5 * time.Minute // a life of the worker, or half of a run that is shorter than two
	// The portals are down for soakDown at the end of each soakCycle.
	soakCycle, soakDown = 5 * time.Minute, 20 * time.Second
	sampleEvery         = 5 * time.Second
	// settled is when a life has filled its caches; samples before do not count.
	settled = time.Minute
	// soakDrain bounds how often the clock is moved by soakStep until the last claim has ended: slowly, as a claim that was sent
	// ahead is given up where nothing is heard of it for a while by that clock.
	soakDrain, soakStep = 2400, 10 * time.Second
)

// soakClaims are what happens to twenty claims, one after the other; those after them are accepted at once.
var soakClaims = []claim{
	failing("TIMEOUT"), failing("HTTP 503"), failing("TIMEOUT"), failing("Connection reset by peer"),
	{Failures: failing("INSURANCE_EXPIRED").Failures, Review: review{Discard: true}}, failing("INVALID_PATIENT_DATA"),
}

// watched is what is sampled, with its unit. The WAL of PostgreSQL is its files, 16 MB each.
var watched = []struct{ name, unit string }{
	{"memory", "MB"}, {"file descriptors", ""}, {"goroutines", ""}, {"WAL", "MB"}, {"p99 of analysis, a minute", "ms"},
}

// sample is what a life of the worker said of itself; NaN where it could not.
type sample struct {
	at      time.Duration
	life    int
	old     time.Duration // the life
	values  [5]float64
	buckets map[float64]float64 // of the analyses, by their upper bounds
}

// TestSoak runs the worker for as long as SOAK says (`make soak`) on each store: claims come, portals go down, people
// decide, the worker is rolled. Each claim ends once; what grows would show in the table that it prints.
func TestSoak(t *testing.T) {
	harness.SkipIfShort(t)
	asked := os.Getenv("SOAK")
	length, err := time.ParseDuration(asked)
	if err != nil || length < 4*settled {
		t.Fatalf("SOAK is %q, expected a length of at least %v, such as 10m", asked, 4*settled)
	}
	for _, store := range []string{"SQLite", "PostgreSQL"} {
		t.Run(store, func(t *testing.T) {
			s := onProcesses(t, byREST)
			s.deploy()
			s.soak(store, length)
		})
	}
}

func (s *processes) soak(store string, length time.Duration) {
	database := harness.Database(s.t.TempDir())
	wal := strings.TrimPrefix(database, "sqlite:") + "-wal"
	if store == "PostgreSQL" {
		server := postgres.New(s.t, postgres.Options{})
		var err error
		database, err = server.CreateDatabase(s.t.Context())
		testkit.Must(s.t, err)
		wal = filepath.Join(server.DataDir(), "pg_wal")
	}
	serve := func() *process { return s.serve("soak", "RETRY_WORKER_DATABASE_URL="+database) }
	w := serve()
	h := s.startPortal(w, submitClaim)
	begun, born, lives := time.Now(), time.Now(), 1
	roll, sampled := min(soakRoll, length/2), begun
	var keys []int64
	var samples []sample
	for tick := time.NewTicker(soakEvery); time.Since(begun) < length; <-tick.C {
		now := time.Since(begun)
		h.down.Store(now%soakCycle > soakCycle-soakDown)
		c := claim{}
		if n := len(keys) % 20; n < len(soakClaims) {
			c = soakClaims[n]
		}
		keys = append(keys, s.create("SUB_06", map[string]any{
			"claimId": s.claimID(len(keys)), "scenario": c,
			"operadora": fmt.Sprintf("portal-%02d", (len(keys)+len(keys)/20)%soakPortals),
		}))
		if time.Since(sampled) >= sampleEvery {
			sampled = sampled.Add(sampleEvery)
			samples = append(samples, w.sample(s.t, samples, now, lives, time.Since(born), wal))
		}
		if time.Since(born) >= roll && length-now > roll/2 {
			w.stop()
			w, born, lives = serve(), time.Now(), lives+1
			h.by.Store(w)
		}
	}
	h.down.Store(false)
	rate := float64(len(keys)) / time.Since(begun).Seconds()
	fmt.Print(soaked{store, length, samples}.table())
	for range soakDrain {
		if wait.Within(250*time.Millisecond, func() (over bool) {
			s.history.look(func() { over = s.all(keys, (*instance).over) })
			return over
		}) {
			break
		}
		s.advanceTo(s.clock.Now().Add(soakStep))
	}
	s.awaitEnded(keys...)
	jobs, timedOut := s.look(keys)
	w.stop()
	verified := strings.Split(s.command(database, "audit", "verify"), "\n")[0]
	s.done("soak on "+store, "%v, %.1f claims/s, %d lives, %d claims ended once, %d jobs, %d timed out; %s",
		length, rate, lives, len(keys), jobs, timedOut, verified)
}

var analysisBucket = regexp.MustCompile(`(?m)^retry_analysis_duration_seconds_bucket\{.*le="([^"]+)"\} (\S+)$`)

// sample asks a worker for its metrics.
func (p *process) sample(t *testing.T, before []sample, at time.Duration, life int, old time.Duration, wal string) sample {
	t.Helper()
	text := p.get(t, p.Ops+"/metrics")
	x := sample{at: at, life: life, old: old, buckets: make(map[float64]float64)}
	for _, m := range analysisBucket.FindAllStringSubmatch(text, -1) {
		le, _ := strconv.ParseFloat(m[1], 64)
		n, _ := strconv.ParseFloat(m[2], 64)
		x.buckets[le] += n
	}
	for i, name := range []string{"process_resident_memory_bytes", "process_open_fds", "go_goroutines"} {
		_, after, _ := strings.Cut(text, "\n"+name+" ")
		x.values[i], _ = strconv.ParseFloat(strings.SplitN(after, "\n", 2)[0], 64)
	}
	_ = filepath.WalkDir(wal, func(_ string, entry os.DirEntry, err error) error { // files come and go
		if err == nil && !entry.IsDir() {
			if info, err := entry.Info(); err == nil {
				x.values[3] += float64(info.Size())
			}
		}
		return nil
	})
	x.values[0], x.values[3], x.values[4] = x.values[0]/1e6, x.values[3]/1e6, math.NaN()
	for i := len(before) - 1; i >= 0 && before[i].life == life; i-- {
		if at-before[i].at >= time.Minute-sampleEvery/2 {
			x.values[4] = 1000 * quantile(before[i].buckets, x.buckets, 0.99)
			break
		}
	}
	return x
}

// quantile between two looks at a histogram, within its bucket in proportion, as Prometheus has it.
func quantile(before, after map[float64]float64, q float64) float64 {
	bounds := make([]float64, 0, len(after))
	for le := range after {
		bounds = append(bounds, le)
	}
	slices.Sort(bounds)
	low, below := 0.0, 0.0
	for _, le := range bounds {
		n, rank := after[le]-before[le], q*(after[math.Inf(1)]-before[math.Inf(1)])
		if n >= rank && n > below {
			if math.IsInf(le, 1) {
				return low
			}
			return low + (le-low)*(rank-below)/(n-below)
		}
		low, below = le, n
	}
	return math.NaN()
}

// soaked is what one store showed.
type soaked struct {
	store   string
	length  time.Duration
	samples []sample
}

// table has the median and the largest of each value, and its medians in the first and the last third of the run: what grows
// shows there.
func (r soaked) table() string {
	var b strings.Builder
	for i, what := range watched {
		var all, first, last []float64
		for _, x := range r.samples {
			if y := x.values[i]; !math.IsNaN(y) && x.old >= settled {
				all = append(all, y)
				if x.at < r.length/3 {
					first = append(first, y)
				} else if x.at > r.length*2/3 {
					last = append(last, y)
				}
			}
		}
		fmt.Fprintf(&b, "PRINT | %s, %s | %.1f | %.1f | %.1f | %.1f |\n", strings.TrimSuffix(what.name+" "+what.unit, " "), r.store,
			middle(all), slices.Max(append(all, 0)), middle(first), middle(last))
	}
	return b.String()
}

// middle returns the median of what was seen; 0 where nothing was.
func middle(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(all))[len(all)/2]
}
