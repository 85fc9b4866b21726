package fetch

import (
	"testing"
	"time"
)

func TestProgressIsOneLine(t *testing.T) {
	for want, p := range map[string]Progress{
		"download Zeebe 8.5.8: 120 of 212 MB, 12 s":                  {"Zeebe 8.5.8", Downloading, 120_000_000, 212_000_000, 12_900 * time.Millisecond},
		"unpack Zeebe 8.5.8: 3 MB, 0 s":                              {"Zeebe 8.5.8", Unpacking, 3_900_000, 0, 0},
		"wait for another process that fetches a Java runtime: 61 s": {"a Java runtime", Waiting, 0, 0, 61 * time.Second},
	} {
		if got := p.String(); got != want {
			t.Errorf("got %q, expected %q", got, want)
		}
	}
}
