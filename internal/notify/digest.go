package notify

import (
	"time"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/deadletter"
)

// digestKinds are the digests, in the order in which they are made.
var digestKinds = [...]struct {
	digest catalogue.Digest
	kind   deadletter.NoticeKind
	name   string
}{{catalogue.Weekly, deadletter.WeeklyNotice, TypeWeekly}, {catalogue.Daily, deadletter.DailyNotice, TypeDaily}}

// schedule is when digests are due: each day, or each Monday, at a time of day where the teams live.
type schedule struct {
	hour, minute int
	zone         *time.Location
}

// due returns the last day whose digest's time has come. A time of day that the clocks pass over is due when they have;
// one that they show twice is due once: a day has one digest.
func (s schedule) due(d catalogue.Digest, now time.Time) (day string) {
	local := now.In(s.zone)
	y, m, date := local.Date()
	step := 1
	if d == catalogue.Weekly {
		step, date = 7, date-(int(local.Weekday())+6)%7 // back to Monday
	}
	if time.Date(y, m, date, s.hour, s.minute, 0, 0, s.zone).After(now) {
		date -= step
	}
	return time.Date(y, m, date, 12, 0, 0, 0, time.UTC).Format(time.DateOnly)
}
