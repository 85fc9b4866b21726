package access

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"retry-worker/internal/testkit/seeded"
	"retry-worker/internal/webserver"
)

func at(t *testing.T, address string) netip.Prefix {
	t.Helper()
	return webserver.Network(netip.MustParseAddr(address))
}

// The waits that one address is given when it comes again as soon as it may: six in all for nothing, then doubling.
func TestThrottleWaitsLongerAndLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		throttle, from := newThrottle(), at(t, "10.0.0.1")
		var waits []time.Duration
		for len(waits) < 9 {
			wait := throttle.fail(from, time.Now())
			if wait == 0 {
				wait = throttle.fail(from, time.Now()) // at once
			}
			waits = append(waits, wait)
			time.Sleep(wait)
		}
		if want := []time.Duration{0, 0, 0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second}; !slices.Equal(waits, want) {
			t.Errorf("waits %v, want %v", waits, want)
		}
		if wait := throttle.wait(at(t, "10.0.0.2"), time.Now()); wait != 0 {
			t.Errorf("another address waits %v", wait)
		}
	})
}

func TestThrottleForgives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		throttle, from := newThrottle(), at(t, "10.0.0.1")
		for range 100 { // somebody who slips once in a while never waits
			if wait := throttle.fail(from, time.Now()) + throttle.fail(from, time.Now()); wait != 0 {
				t.Fatalf("waits %v", wait)
			}
			time.Sleep(2 * time.Minute)
		}
	})
}

func TestThrottleInAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		throttle := newThrottle()
		wait, tried := time.Duration(0), 0
		for ; wait == 0; tried++ {
			wait = throttle.fail(at(t, fmt.Sprintf("10.0.%d.1", tried)), time.Now())
		}
		if tried != 32 || wait != time.Second { // 30 for nothing, one that costs a second, and this one
			t.Errorf("after %d addresses: %v", tried, wait)
		}
		for range 20 {
			time.Sleep(wait)
			throttle.fail(at(t, "10.1.0.1"), time.Now())
			wait = throttle.wait(at(t, "10.2.0.1"), time.Now())
		}
		if wait > inAll.most {
			t.Errorf("everybody waits %v, want at most %v", wait, inAll.most)
		}
	})
}

// What is forgotten first is what failed longest ago, not what came first.
func TestThrottleMemoryIsBounded(t *testing.T) {
	throttle := newThrottle()
	now := time.Unix(1_800_000_000, 0)
	fail := func(i int) {
		now = now.Add(inAll.forgiven)
		throttle.fail(netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 32), now)
	}
	for i := range maxAddresses {
		fail(i)
	}
	fail(0)
	fail(maxAddresses)
	if throttle.each[at(t, "10.0.0.0")] == nil || throttle.each[at(t, "10.0.0.1")] != nil {
		t.Error("the address that failed again is forgotten, or the quietest is not")
	}
	for i := range 2 * maxAddresses {
		fail(i)
	}
	if len(throttle.each) != maxAddresses || throttle.order.Len() != maxAddresses {
		t.Errorf("remembers %d addresses in a list of %d, want %d", len(throttle.each), throttle.order.Len(), maxAddresses)
	}
}

// One failure is forgiven each minute, not each time that somebody looks.
func TestForgiveKeepsTheRest(t *testing.T) {
	begin := time.Unix(1_800_000_000, 0)
	f := failures{n: 5, since: begin}
	for seconds, want := range map[int]int{59: 5, 60: 4, 90: 4, 119: 4, 120: 3, 600: 0} {
		g := f
		for s := 45; s <= seconds; s += 45 {
			g.forgive(perAddress, begin.Add(time.Duration(s)*time.Second))
		}
		if g.forgive(perAddress, begin.Add(time.Duration(seconds)*time.Second)); g.n != want {
			t.Errorf("after %d s: %d failures, want %d", seconds, g.n, want)
		}
	}
}

// Many at once are no way around: of a thousand guesses in one moment no more are answered than cost nothing.
func TestThrottleAtOnce(t *testing.T) {
	throttle, from, now := newThrottle(), at(t, "10.0.0.1"), time.Unix(1_800_000_000, 0)
	var counted atomic.Int32
	var all sync.WaitGroup
	for range 1000 {
		all.Go(func() {
			if throttle.fail(from, now) == 0 {
				counted.Add(1)
			}
		})
	}
	all.Wait()
	if n := counted.Load(); n != int32(perAddress.free)+1 {
		t.Errorf("%d did not wait, want %d", n, perAddress.free+1)
	}
}

// However the clock jumps, nobody waits longer than the longest wait, and nobody waits for ever.
func TestThrottleWithAJumpingClock(t *testing.T) {
	seeded.Check(t, func(r *rapid.T) {
		throttle, from, now := newThrottle(), netip.MustParsePrefix("10.0.0.1/32"), time.Unix(1_800_000_000, 0)
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(-100_000, 100_000).Draw(r, "seconds")) * time.Second)
			wait := throttle.fail(from, now)
			if wait < 0 || wait > perAddress.most {
				r.Fatalf("waits %v", wait)
			}
			if wait > 0 && throttle.fail(from, now.Add(wait)) != 0 {
				r.Fatalf("still waits after %v", wait)
			}
		}
	})
}
