package chaos_test

import (
	"context"
	"strings"
	"time"
)

// leaseLook is the time between two looks at the leases.
const leaseLook = 50 * time.Millisecond

// watchLeases reads who holds which lease, again and again until stop ends, and returns how many went from one process
// to another: none before the time is over that was read of it, by the clock of this machine, which is the stores' too.
// A process that opens a file has it for itself, and begins without leases.
func (h *house) watchLeases(stop context.Context) (passed int) {
	type lease struct {
		holder string
		until  int64
	}
	db, held := database(h.t, h.url), map[string]lease{}
	tick := time.NewTicker(leaseLook)
	defer tick.Stop()
	for stop.Err() == nil {
		<-tick.C
		rows, err := db.QueryContext(stop, "SELECT name, holder, expires_at FROM leases")
		for err == nil && rows.Next() {
			var name string
			var now lease
			if err = rows.Scan(&name, &now.holder, &now.until); err != nil {
				break
			}
			if before, known := held[name]; known && before.holder != now.holder {
				passed++
				if early := before.until - time.Now().UnixMilli(); early > 0 && !strings.HasPrefix(h.url, "sqlite:") {
					h.t.Errorf("the lease %s went from %s to %s %d ms before its end", name, before.holder, now.holder, early)
				}
			}
			held[name] = now
		}
		if rows != nil { // a worker that starts may have locked its file: the next look tells
			_ = rows.Close()
		}
	}
	return passed
}
