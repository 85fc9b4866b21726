package sim

import (
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"retry-worker/e2e/harness"
)

const (
	// weather is how long things go wrong in a world, before each claim must come to its end.
	weather = 5 * time.Hour
	// shortSeeds and seeds are how many worlds a test plays.
	shortSeeds, seeds = 2, 12
	// storySteps is how long a story is at most that shrinking is content with, mostShrinking and mostTosses what it tries for that.
	storySteps, mostShrinking, mostTosses = 50, 5 * time.Minute, 64
)

// TestSeeds plays worlds, each by its seed, and holds every step against what may be. SIM_SEED replays one; PROOF_SIM
// (a duration) plays new ones for so long, SIM_TRACES (a folder) has what they did for the specifications.
func TestSeeds(t *testing.T) {
	if seed := harness.Setting(t, "SIM_SEED", -1); seed >= 0 {
		tell(t, play(t, plan{seed: uint64(seed), horizon: weather}))
		return
	}
	first, last, until := uint64(1), uint64(seeds), time.Time{}
	if testing.Short() {
		last = shortSeeds
	}
	if text := os.Getenv("PROOF_SIM"); text != "" {
		long, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		first, last, until = uint64(time.Now().UnixMilli()), 1<<63, time.Now().Add(long)
	}
	began, told, dir := time.Now(), &traces{}, os.Getenv("SIM_TRACES")
	var mu sync.Mutex
	played, lasted := 0, time.Duration(0)
	each(t, first, last, until, func(t *testing.T, seed uint64) {
		s := play(t, plan{seed: seed, horizon: weather})
		if s.failed != "" {
			t.Logf("seed %d is being shrunk: %s", seed, s.failed)
			tell(t, shrink(t, s))
		}
		mu.Lock()
		defer mu.Unlock()
		lasted += s.lasted
		if played++; dir != "" {
			told.add(s)
		}
	})
	if dir != "" {
		told.write(t, dir)
	}
	t.Logf("%d worlds of %.0f hours in %s", played, lasted.Hours(), time.Since(began).Round(time.Second))
}

// TestSameSeedSameTrace plays a world twice; PROOF_SAME is how many, with an hour of weather each.
func TestSameSeedSameTrace(t *testing.T) {
	const few = 2
	worlds, long := harness.Setting(t, "PROOF_SAME", few), weather
	if worlds > few {
		long = time.Hour
	}
	var same atomic.Int32
	each(t, 1, uint64(worlds), time.Time{}, func(t *testing.T, seed uint64) {
		one, two := play(t, plan{seed: seed, horizon: long}), play(t, plan{seed: seed, horizon: long})
		if one.trace != two.trace {
			i := 0
			for i < min(len(one.story), len(two.story)) && one.story[i] == two.story[i] {
				i++
			}
			t.Errorf("seed %d: traces %x and %x, which part behind line %d:\n%s\nand\n%s", seed, one.trace, two.trace, i,
				strings.Join(one.story[max(i-3, 0):min(i+3, len(one.story))], "\n"), strings.Join(two.story[max(i-3, 0):min(i+3, len(two.story))], "\n"))
			return
		}
		same.Add(1)
	})
	t.Logf("%d of %d worlds had the same trace twice", same.Load(), worlds)
}

// each does that for each seed, one world on each processor at a time, until an instant where there is one.
func each(t *testing.T, first, last uint64, until time.Time, do func(*testing.T, uint64)) {
	t.Run("worlds", func(t *testing.T) {
		seeds := make(chan uint64)
		for range runtime.GOMAXPROCS(0) {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for seed := range seeds {
					do(t, seed)
				}
			})
		}
		go func() {
			defer close(seeds)
			for seed := first; seed <= last && (until.IsZero() || time.Now().Before(until)); seed++ {
				seeds <- seed
			}
		}()
	})
}

// tell prints the story of a world, all of it, and how it is replayed.
func tell(t *testing.T, s *sim) {
	t.Logf("seed %d, trace %x, without %d of what the seed draws, %d steps:\n%s", s.seed, s.trace, len(s.without), len(s.story),
		strings.Join(s.story, "\n"))
	if s.failed != "" {
		t.Errorf("seed %d: %s\nreplay it with SIM_SEED=%d go test ./internal/sim", s.seed, s.failed, s.seed)
	}
}

// shrink returns a smaller world that breaks the same invariant, as soon. It takes claims, faults, outages, replicas and
// what people do away: all of a kind at once, then parts of what is left, with other luck where the same does not do.
func shrink(t *testing.T, s *sim) *sim {
	luck, began := 0, time.Now()
	long := func() bool { return len(s.story) > storySteps && time.Since(began) < mostShrinking }
	fails := func(tosses int, labels ...string) bool {
		for n := 0; n < tosses && long(); n++ {
			p := s.plan
			p.without, p.limit = map[string]bool{}, s.lasted+10*time.Minute
			maps.Copy(p.without, s.without)
			for _, label := range labels {
				p.without[label] = true
			}
			if luck++; n > 0 {
				p.luck = luck
			}
			less := play(t, p)
			if less.broken == s.broken && len(less.struck)+len(less.story) < len(s.struck)+len(s.story) {
				s = less
				return true
			}
		}
		return false
	}
	for tosses := 2; long() && tosses <= mostTosses; tosses *= 2 {
		kinds := map[string]int{}
		for _, label := range s.struck {
			kinds[kind(label)]++
		}
		for _, all := range slices.Sorted(maps.Keys(kinds)) {
			if kinds[all] > 1 {
				fails(tosses, all)
			}
		}
		for size := len(s.struck) / 2; size > 0; size /= 2 {
			for at := 0; at < len(s.struck) && long(); {
				if !fails(tosses, s.struck[at:min(at+size, len(s.struck))]...) {
					at += size
				}
			}
		}
	}
	return s
}
