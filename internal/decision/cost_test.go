package decision_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// hostile are pieces of which a message may be made to keep the classifier busy: nothing of it is ever matched.
var hostile = map[string]string{
	"ampersands": "&", "half entities": "&#x;&a;", "escapes": `\u`, "mojibake": "Ã", "accents by themselves": "\u0301", "no UTF-8": "\xff",
	"numbers": "503 ", "joined numbers": "503-", "statuses that are none": "(503 ", "codes that are none": "guia 1308 ", "lists of codes": "9999, ", "tags": "<a>1308",
	"a gram of a code": "UNAVAILABL ", "nearly a code": "SERVICE_UNAVAILABL_", "half a phrase": "conexao recusad ", "words of codes": "não unavailable ", "a pattern's literal": " refused by ", "two literals": "lote connection ",
}

// busy has no code of digits, so that numbers go the long way.
func busy() *classify.Classifier {
	return decisiontest.Rules(decisiontest.Transient("SERVICE_UNAVAILABLE"), byPhrase("phrase", "conexao recusada"), byStatus("statuses", "5xx"),
		byTISSCode("denials", "1308"), byPattern("patterns", `connection (?:was )?refused by [0-9]{1,40}`, `lote [0-9]{1,9} (?:nao|ja) processado`, `refused by [A-F0-9]{1,90}x`))
}

// TestHostileMessagesCostLinearMemory: four times the message allocates about four times as much, and within a few
// times its size unless numbers must each be looked at.
func TestHostileMessagesCostLinearMemory(t *testing.T) {
	c := busy()
	for name, piece := range hostile {
		short, long := strings.Repeat(piece, 1<<18/len(piece)), strings.Repeat(piece, 1<<20/len(piece))
		if m := c.Classify(long, 0); m.Name != "" {
			t.Errorf("%s: matched by %q", name, m.Name)
		}
		small, large := allocated(c, short), allocated(c, long)
		if large > 5*small+1<<16 {
			t.Errorf("%s: %d bytes for 256 kB, %d for 1 MB", name, small, large)
		}
		if large > 300<<20 {
			t.Errorf("%s: %d bytes for 1 MB", name, large)
		}
	}
}

func allocated(c *classify.Classifier, message string) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c.Classify(message, 0)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// BenchmarkHostile tells the cost of each byte of messages of two sizes; where it is the same, the cost is linear.
func BenchmarkHostile(b *testing.B) {
	c := busy()
	for name, piece := range hostile {
		for _, size := range []int{1 << 17, 1 << 20} {
			message := strings.Repeat(piece, size/len(piece))
			b.Run(fmt.Sprintf("%s/%d kB", name, size>>10), func(b *testing.B) {
				for b.Loop() {
					c.Classify(message, 0)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(size), "ns/byte")
			})
		}
	}
}

// TestPatternIsTriedOnce: its literal a thousand times is no reason to try it a thousand times; nor does a message
// without its literal cost what one with it does.
func TestPatternIsTriedOnce(t *testing.T) {
	c := decisiontest.Rules(byPattern("p", `refused by [0-9]{1,90}x`))
	allocations := func(message string) float64 {
		return testing.AllocsPerRun(20, func() { c.Classify(message, 0) })
	}
	once := allocations("refused by nobody " + strings.Repeat("and nobody else ", 100))
	often, never := allocations(strings.Repeat("refused by nobody ", 100)), allocations(strings.Repeat("refused for nobody ", 100))
	if often > once || never != 0 {
		t.Errorf("%v allocations for a literal once, %v for a hundred, %v for none", once, often, never)
	}
}

// TestBehindTheReach: codes and phrases are found wherever they stand, patterns in the first 64 kB.
func TestBehindTheReach(t *testing.T) {
	c := decisiontest.Rules(everything()...)
	for _, filler := range []string{"x ", "ã ", "&amp; "} {
		far := strings.Repeat(filler, 70_000)
		for message, want := range map[string]string{
			"duplicate claim": "DUPLICATE_CLAIM", "servi\u00e7o indispon\u00edvel": "phrases", "glosa 1308": "denials", "http 404": "statuses", "LoginInvalido": "faults", "lote 1 nao processado": "",
		} {
			if m := c.Classify(far+message, 0); m.Name != want {
				t.Errorf("%q behind 140 kB of %q is matched by %q, want %q", message, filler, m.Name, want)
			}
		}
		if m := c.Classify("lote 1 nao processado"+far, 0); m.Name != "patterns" || m.Text != "lote 1 nao processado" {
			t.Errorf("a pattern before 140 kB of %q: %q at %q", filler, m.Name, m.Text)
		}
	}
}
