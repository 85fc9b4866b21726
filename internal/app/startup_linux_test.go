package app

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// What a loader or a debugger wrote into a mapping is nowhere else: dropping that would end the process.
func TestUnchangedMappings(t *testing.T) {
	const smaps = `00400000-00500000 r-xp 00000000 08:01 42                                 /bin/retry-worker
Rss:                1024 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
00500000-00580000 r--p 00100000 08:01 42                                 /bin/retry-worker
Anonymous:             4 kB
VmFlags: rd mr mw me
00580000-00600000 r--p 00180000 08:01 42                                 /bin/retry-worker
Anonymous:             0 kB
00600000-00700000 rw-p 00200000 08:01 42                                 /bin/retry-worker
Anonymous:             0 kB
00700000-00800000 r--p 00000000 08:01 43                                 /lib/other.so
Anonymous:             0 kB
00800000-00900000 rw-p 00000000 00:00 0
Anonymous:             0 kB
x-y r-xp 00000000 08:01 42                                 /bin/retry-worker
Anonymous:             0 kB
`
	want := []mapping{{0x400000, 0x500000}, {0x580000, 0x600000}}
	if got := unchanged(strings.NewReader(smaps), "/bin/retry-worker"); !slices.Equal(got, want) {
		t.Errorf("found %x, expected %x", got, want)
	}
}

// The process goes on working, with less of its file mapped.
func TestDropStartup(t *testing.T) {
	before := ofFile(t)
	dropStartup()
	if after := ofFile(t); after >= before {
		t.Errorf("%d kB of the file are mapped afterwards, %d before; expected less", after, before)
	}
}

// ofFile is how much of files this process has mapped, in kB.
func ofFile(t *testing.T) (kilobytes int) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "RssFile:")
	if _, err := fmt.Sscan(rest, &kilobytes); err != nil {
		t.Fatal(err)
	}
	return kilobytes
}
