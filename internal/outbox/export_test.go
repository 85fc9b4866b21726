package outbox

import "time"

// ShortLease makes tests with real processes wait less for a dead one's lease. Call it before Run.
func (r *Relay) ShortLease(span time.Duration) { r.lease.span = span }
