package catalogue

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"retry-worker/internal/decision"
)

// catalogueOf is the default with n more rules, codes, phrases and patterns by turns. salt makes it another.
func catalogueOf(n int, salt string) []byte {
	var rules strings.Builder
	for i := range n {
		switch i % 4 {
		case 0, 1:
			fmt.Fprintf(&rules, "      - {codes: [LOCAL_CODE_%d_END], reason: INVALID_REQUEST, team: ti}\n", i)
		case 2:
			fmt.Fprintf(&rules, "      - {name: phrase-%d, phrases: [lote numero %d recusado], reason: CLAIM_DENIED, team: faturamento}\n", i, i)
		default:
			fmt.Fprintf(&rules, "      - {name: pattern-%d, patterns: ['campo%d .{0,40} invalido'], reason: INVALID_MESSAGE, team: ti}\n", i, i)
		}
	}
	const last = "    transient:\n"
	content := bytes.Replace(defaultYAML, []byte(last), []byte(rules.String()+last), 1)
	return append(content, "# "+salt+"\n"...)
}

// BenchmarkReloadStall lets jobs, each a classification by the current catalogue, share one processor with a goroutine
// that reloads catalogues of 1,000 rules without a pause, and, for comparison, have it for themselves. It tells how long a job that
// is ready waits until it has run: a reload must not stall it by more than 1 ms. The time is that of the processor, which
// the process itself has used (the reload, the garbage collector, the job), so that what the operating system gives to
// other processes is not in it.
func BenchmarkReloadStall(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	files := [2]string{}
	for i := range files {
		files[i] = filepath.Join(b.TempDir(), "policies.yaml")
		if err := os.WriteFile(files[i], catalogueOf(1000, fmt.Sprint(i)), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for _, reloading := range []bool{false, true} {
		b.Run(fmt.Sprintf("reloading=%t", reloading), func(b *testing.B) {
			first, err := Load(files[0])
			if err != nil {
				b.Fatal(err)
			}
			var current atomic.Pointer[Catalogue] // as a Watcher has it
			current.Store(first)
			stop, done, reloads := make(chan struct{}), make(chan struct{}), 0
			go func() {
				defer close(done)
				for reloading {
					select {
					case <-stop:
						return
					default:
					}
					reloads++
					next, err := Load(files[reloads%2])
					if err != nil {
						panic(err) // the files are sound
					}
					current.Store(next)
				}
			}()
			took := classifyAlong(b, &current)
			close(stop)
			<-done
			slices.Sort(took)
			b.ReportMetric(micro(took[len(took)/2]), "p50-µs")
			b.ReportMetric(micro(took[len(took)*99/100]), "p99-µs")
			b.ReportMetric(micro(took[len(took)*999/1000]), "p99.9-µs")
			b.ReportMetric(micro(took[len(took)-1]), "max-µs")
			b.ReportMetric(float64(reloads), "reloads")
			if reloading && current.Load() == first {
				b.Fatal("nothing was reloaded")
			}
		})
	}
}

func micro(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// classifyAlong does one job after the other, and times each from the moment that it could run.
func classifyAlong(b *testing.B, current *atomic.Pointer[Catalogue]) (took []time.Duration) {
	message := "Envio 15037: LOCAL_CODE_5_END, campo999 do item 12 invalido " + strings.Repeat("at br.com.hospital.Envio(Envio.java:15037)\t", 10)
	for b.Loop() {
		ready := worked()
		runtime.Gosched()
		if m := current.Load().Policies["tiss-submission"].Rules.Classify(message, 0); m.Class != decision.Permanent {
			b.Fatal(m)
		}
		took = append(took, worked()-ready)
	}
	return took
}

// worked is the time of the processor that the process has used.
func worked() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

// BenchmarkParse of the default, and of one with 1,000 rules more: what a reload costs the watcher's goroutine.
func BenchmarkParse(b *testing.B) {
	for name, content := range map[string][]byte{"default": defaultYAML, "1000 rules": catalogueOf(1000, "")} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(name, content); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
