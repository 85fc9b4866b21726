package calendar_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"retry-worker/internal/calendar"
	"retry-worker/internal/testkit"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	testkit.Must(t, err)
	return z
}

// window reads what Window.String writes.
func window(t testing.TB, text string) (w calendar.Window) {
	t.Helper()
	for part := range strings.SplitSeq(text, ", ") {
		if days, found := strings.CutPrefix(part, "days "); found {
			w.Days = days
		} else if days, found := strings.CutPrefix(part, "business days "); found {
			w.BusinessDays = days
		} else if strings.Contains(part, ":") {
			w.Hours = part
		} else if part != "always" {
			w.Weekdays = part
		}
	}
	if w.String() != text {
		t.Fatalf("%s is written %s", text, w)
	}
	return w
}

func of(t testing.TB, zoneName, set string, windows ...string) *calendar.Calendar {
	t.Helper()
	var all []calendar.Window
	for _, w := range windows {
		all = append(all, window(t, w))
	}
	c, err := calendar.New(zone(t, zoneName), all, calendar.Holidays(set))
	testkit.Must(t, err)
	return c
}

const saoPaulo = "America/Sao_Paulo"

func TestNextAndLastSafe(t *testing.T) {
	const office = "mon-fri, 08:00-18:00"
	for _, tt := range []struct{ zone, set, windows, at, next, lastSafe string }{
		{saoPaulo, "BR-SP", office, "2026-11-23T09:00", "2026-11-23T09:00", "2026-11-23T09:00"},
		{saoPaulo, "BR-SP", office, "2026-11-23T18:00", "2026-11-24T08:00", "2026-11-23T17:59"},
		{saoPaulo, "BR-SP", office, "2026-11-21T12:00", "2026-11-23T08:00", "2026-11-19T17:59"}, // the 20th is a holiday
		{saoPaulo, "BR-SP", office, "2026-12-24T19:00", "2026-12-28T08:00", "2026-12-24T17:59"},
		{saoPaulo, "BR", office, "2026-07-08T19:00", "2026-07-09T08:00", "2026-07-08T17:59"},
		{saoPaulo, "BR-SP", office, "2026-07-08T19:00", "2026-07-10T08:00", "2026-07-08T17:59"},
		{saoPaulo, "BR-SP", "days 1-5, 00:00-18:00", "2026-03-05T18:00", "2026-04-01T00:00", "2026-03-05T17:59"},
		{saoPaulo, "BR-SP", "business days 1-2", "2026-04-03T12:00", "2026-05-04T00:00", "2026-04-02T23:59"}, // Good Friday
		{saoPaulo, "BR-BANKS", "business days 1-2", "2025-03-02T12:00", "2025-03-05T00:00", "2025-02-04T23:59"},
		{saoPaulo, "BR-SP", "22:00-04:00", "2026-12-24T23:00", "2026-12-24T23:00", "2026-12-24T23:00"},
		{saoPaulo, "BR-SP", "22:00-04:00", "2026-12-25T01:00", "2026-12-26T22:00", "2026-12-24T23:59"},
		{saoPaulo, "BR-SP", "22:00-04:00", "2026-12-26T03:00", "2026-12-26T22:00", "2026-12-24T23:59"},
		{saoPaulo, "BR-SP", "mon-fri, 08:00-12:00; sat, 09:00-10:00", "2026-11-28T07:00", "2026-11-28T09:00", "2026-11-27T11:59"},
		{saoPaulo, "", "00:00-04:00", "2018-11-03T12:00", "2018-11-04T01:00", "2018-11-03T03:59"}, // midnight did not come
		{"Europe/Lisbon", "", "01:15-01:45", "2026-03-28T12:00", "2026-03-30T01:15", "2026-03-28T01:44"},
		{"America/New_York", "", "01:30-02:30", "2026-03-08T03:00", "2026-03-09T01:30", "2026-03-08T01:59"},
		{"America/New_York", "", "02:10-02:50", "2026-03-09T01:00", "2026-03-09T02:10", "2026-03-07T02:49"},
		{"America/New_York", "", "03:00-04:00", "2026-03-08T03:00", "2026-03-08T03:00", "2026-03-08T03:00"},
		{saoPaulo, "", "20:00-19:00", "2026-11-23T18:30", "2026-11-23T18:30", "2026-11-23T18:30"},
		{saoPaulo, "", "20:00-19:00", "2026-11-23T19:30", "2026-11-23T20:00", "2026-11-23T18:59"},
		{saoPaulo, "", office, "1999-12-31T19:00", "1999-12-31T19:00", "1999-12-31T19:00"}, // not known: open
		{saoPaulo, "", office, "2000-01-01T00:00", "2000-01-03T08:00", "1999-12-31T23:59"},
		{saoPaulo, "", office, "2000-01-04T07:00", "2000-01-04T08:00", "2000-01-03T17:59"},
		{saoPaulo, "BR", office, "2000-04-20T19:00", "2000-04-24T08:00", "2000-04-20T17:59"},
		{saoPaulo, "BR", office, "2049-04-15T19:00", "2049-04-19T08:00", "2049-04-15T17:59"},
		{saoPaulo, "", "20:00-24:00", "2049-12-31T07:00", "2049-12-31T20:00", "2049-12-30T23:59"},
		{saoPaulo, "", office, "2050-01-01T00:00", "2050-01-01T00:00", "2050-01-01T00:00"}, // not known: open
	} {
		c := of(t, tt.zone, tt.set, strings.Split(tt.windows, "; ")...)
		at, _ := time.ParseInLocation("2006-01-02T15:04", tt.at, c.Zone())
		if got := c.Next(at).Format("2006-01-02T15:04"); got != tt.next {
			t.Errorf("%s %s: next from %s on is %s, want %s", tt.set, tt.windows, tt.at, got, tt.next)
		}
		if got := c.LastSafe(at).Format("2006-01-02T15:04"); got != tt.lastSafe {
			t.Errorf("%s %s: last until %s is %s, want %s", tt.set, tt.windows, tt.at, got, tt.lastSafe)
		}
	}
}

// TestWindowIsOpenTwice where clocks are put back in it.
func TestWindowIsOpenTwice(t *testing.T) {
	c := of(t, "America/New_York", "", "01:00-01:30")
	first := time.Date(2026, 11, 1, 5, 0, 0, 0, time.UTC)
	for minutes, want := range map[time.Duration]bool{0: true, 29: true, 30: false, 59: false, 60: true, 89: true, 90: false} {
		if got := c.IsOpen(first.Add(minutes * time.Minute)); got != want {
			t.Errorf("%d minutes later it is open: %t", minutes, got)
		}
	}
	if got := c.Add(first, 45*time.Minute); !got.Equal(first.Add(75 * time.Minute)) {
		t.Errorf("it has been open for 45 minutes at %s", got)
	}
	// The run that ends comes back behind the begin of the next.
	c, first = of(t, saoPaulo, "", "23:50-23:30"), time.Date(2018, 2, 18, 1, 0, 0, 0, time.UTC)
	if got := c.Next(first.Add(45 * time.Minute)); !got.Equal(first.Add(50 * time.Minute)) {
		t.Errorf("it opens at %s", got)
	}
	if got := c.LastSafe(first.Add(95 * time.Minute)); !got.Equal(first.Add(90*time.Minute - time.Millisecond)) {
		t.Errorf("it was open at %s", got)
	}
}

func TestAdd(t *testing.T) {
	const overlapping = "mon-fri, 08:00-12:00; mon-fri, 11:00-18:00"
	at := func(text string) time.Time {
		instant, _ := time.ParseInLocation("2006-01-02T15:04", text, zone(t, saoPaulo))
		return instant
	}
	for _, tt := range []struct {
		set, windows, at string
		d                time.Duration
		want             string
	}{
		{"BR-SP", overlapping, "2026-12-24T17:00", time.Hour, "2026-12-24T18:00"},
		{"BR-SP", overlapping, "2026-12-24T17:00", 2 * time.Hour, "2026-12-28T09:00"},
		{"BR-SP", overlapping, "2026-12-24T17:00", 21 * time.Hour, "2026-12-29T18:00"},
		{"", "always", "1999-12-31T23:30", time.Hour, "2000-01-01T00:30"},
		{"", "always", "2000-01-01T00:00", time.Hour, "2000-01-01T01:00"},
		{"BR-SP", overlapping, "2050-01-01T00:00", time.Hour, "2050-01-01T01:00"},
	} {
		got := of(t, saoPaulo, tt.set, strings.Split(tt.windows, "; ")...).Add(at(tt.at), tt.d)
		if got.Format("2006-01-02T15:04") != tt.want {
			t.Errorf("%s: open for %s since %s: %s, want %s", tt.windows, tt.d, tt.at, got, tt.want)
		}
	}
}

func TestWhy(t *testing.T) {
	c := of(t, saoPaulo, "BR-SP", "days 1-5, 00:00-18:00", "business days 9")
	for at, want := range map[string]string{
		"2026-03-02T12:00": "",
		"2026-03-05T18:00": "outside days 1-5, 00:00-18:00; business days 9",
		"2027-01-01T22:00": "Confraternização Universal (Lei 662/1949)",
	} {
		instant, _ := time.ParseInLocation("2006-01-02T15:04", at, c.Zone())
		if got := c.Why(instant); got != want {
			t.Errorf("%s is closed because %q, want %q", at, got, want)
		}
	}
}

func TestNeverOpen(t *testing.T) {
	_, err := calendar.New(time.UTC, []calendar.Window{{}, window(t, "business days 1, sat")}, nil)
	if never, ok := errors.AsType[calendar.NeverOpenError](err); !ok || never.Error() != "window 2 is never open" {
		t.Errorf("got %v", err)
	}
}

func TestBadWindows(t *testing.T) {
	for _, bad := range []calendar.Window{
		{Days: "0"}, {Days: "32"}, {Days: "5-1"}, {BusinessDays: "1-"}, {Days: "a"}, {BusinessDays: "1;2"}, {Days: "-1"}, {Days: ","},
		{Weekdays: "seg"}, {Weekdays: "mon-"}, {Weekdays: "mon-fry"}, {Weekdays: "Mon"},
		{Hours: "8-18"}, {Hours: "08:00"}, {Hours: "08:00-08:00"}, {Hours: "08:00-25:00"}, {Hours: "24:00-04:00"}, {Hours: "08:60-09:00"},
	} {
		if _, err := calendar.New(time.UTC, []calendar.Window{{}, bad}, nil); bad.Check() == nil || err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// wall is a window as a clock on the wall has it: the names of its days, and its hours.
type wall struct {
	days, business, weekdays map[string]bool
	from, until              string
}

// The names that a set's ranges go through, twice, as one may go on with the first.
const (
	week = " mon tue wed thu fri sat sun mon tue wed thu fri sat sun "
	days = " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 "
)

func onTheWall(w calendar.Window) (o wall) {
	o.from, o.until, _ = strings.Cut(cmp.Or(w.Hours, "00:00-24:00"), "-")
	o.days, o.business, o.weekdays = members(w.Days, days), members(w.BusinessDays, days), members(w.Weekdays, week)
	return o
}

// members lists what a list such as mon,wed-fri has of names; nil for nothing.
func members(list, names string) map[string]bool {
	if list == "" {
		return nil
	}
	all := make(map[string]bool)
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if all[from] = true; isRange {
			_, rest, _ := strings.Cut(names, " "+from+" ")
			between, _, _ := strings.Cut(" "+rest, " "+to+" ")
			for _, name := range append(strings.Fields(between), to) {
				all[name] = true
			}
		}
	}
	return all
}

// oracle reports whether t is open.
func oracle(t time.Time, windows []wall, holidays map[calendar.Day]bool, z *time.Location) bool {
	t = t.In(z)
	today, clock := calendar.DayOf(t), t.Format("15:04")
	if holidays[today] {
		return false
	}
	for _, w := range windows {
		goesOn := w.until < w.from
		if clock >= w.from && (clock < w.until || goesOn) && begins(w, today, holidays) ||
			goesOn && clock < w.until && begins(w, today-1, holidays) {
			return true
		}
	}
	return false
}

func begins(w wall, d calendar.Day, holidays map[calendar.Day]bool) bool {
	isBusiness := func(d calendar.Day) bool {
		return !holidays[d] && d.Time().Weekday() != time.Saturday && d.Time().Weekday() != time.Sunday
	}
	n := 0
	for first := d - calendar.Day(d.Time().Day()) + 1; first <= d && w.business != nil; first++ {
		if isBusiness(first) {
			n++
		}
	}
	day, weekday := strconv.Itoa(d.Time().Day()), strings.ToLower(d.Time().Weekday().String()[:3])
	return !holidays[d] && (w.days == nil || w.days[day]) && (w.weekdays == nil || w.weekdays[weekday]) &&
		(w.business == nil || isBusiness(d) && w.business[strconv.Itoa(n)])
}

// TestProperties draws instants, half of them near a change of the clocks: what is open is open by the clock on the wall,
// Next and LastSafe are the nearest such instants and never go back.
func TestProperties(t *testing.T) {
	draws := 1_000_000
	if testing.Short() {
		draws = 20_000
	}
	calendars := []struct {
		zone, set string
		years     [2]int
		windows   []string
	}{
		{saoPaulo, "BR-SP", [2]int{2010, 2018}, []string{"days 1-5", "mon-fri, 23:30-00:30", "sat, 00:00-02:00"}},
		{saoPaulo, "BR-RJ", [2]int{2019, 2048}, []string{"business days 1-2, 08:00-18:00", "days 31, 22:00-04:00"}},
		{"Europe/Lisbon", "BR", [2]int{2010, 2048}, []string{"sun, 01:15-01:45", "mon,sun, 22:00-01:30", "sat-sun, 02:00-02:30"}},
		{"America/New_York", "BR-AC", [2]int{2010, 2048}, []string{"00:30-01:30", "sun, 02:10-02:50", "mon, 20:00-03:00"}},
		{"Atlantic/Azores", "", [2]int{2010, 2048}, []string{"sat, 23:00-00:45", "days 25-31, 00:15-00:30"}},
	}
	draw := rand.New(rand.NewPCG(1, 2))
	for _, k := range calendars {
		c, z, holidays := of(t, k.zone, k.set, k.windows...), zone(t, k.zone), map[calendar.Day]bool{}
		for _, h := range calendar.Holidays(k.set) {
			holidays[h.Day] = true
		}
		var windows []wall
		for _, w := range k.windows {
			windows = append(windows, onTheWall(window(t, w)))
		}
		open := func(at time.Time) bool { return oracle(at, windows, holidays, z) }
		begin := time.Date(k.years[0], 3, 1, 0, 0, 0, 0, z)
		seconds := time.Date(k.years[1], 12, 1, 0, 0, 0, 0, z).Unix() - begin.Unix()
		for range draws / len(calendars) {
			at := begin.Add(time.Duration(draw.Int64N(seconds)) * time.Second)
			if _, change := at.ZoneBounds(); draw.IntN(2) == 0 && !change.IsZero() && change.Year() < k.years[1] {
				at = change.Add(time.Duration(draw.Int64N(8*3600)-4*3600) * time.Second)
			}
			check(t, c, at, time.Duration(draw.Int64N(1<<uint(10+draw.IntN(12))))*time.Second, open)
		}
	}
}

func check(t *testing.T, c *calendar.Calendar, at time.Time, later time.Duration, open func(time.Time) bool) {
	t.Helper()
	next, last := c.Next(at), c.LastSafe(at)
	other := at.Add(later)
	switch {
	case c.IsOpen(at) != open(at):
		t.Fatalf("%s is open: %t", at, c.IsOpen(at))
	case !open(next) || next.Before(at) || !next.Equal(at) && open(next.Add(-time.Second)):
		t.Fatalf("next from %s on is %s", at, next)
	case !open(last) || last.After(at) || !last.Equal(at) && open(last.Add(time.Millisecond)):
		t.Fatalf("last until %s is %s", at, last)
	case open(other) && (next.After(other) || c.LastSafe(other).Before(at)):
		t.Fatalf("%s is open, but next from %s on is %s, and last until the former %s", other, at, next, c.LastSafe(other))
	case c.Next(other).Before(next) || c.LastSafe(other).Before(last):
		t.Fatalf("%s and %s are in another order than what follows or comes before", at, other)
	}
}

// TestHolidays compares every state's holidays from 2024 to 2035 with the dates that its laws give.
func TestHolidays(t *testing.T) {
	inAll := map[calendar.Day]bool{}
	for _, h := range calendar.Holidays("BR") {
		inAll[h.Day] = true
	}
	var got strings.Builder
	for _, set := range calendar.Sets() {
		for year := 2024; year <= 2035; year++ {
			fmt.Fprintf(&got, "%s %d:", set, year)
			for _, h := range calendar.Holidays(set) {
				if h.Day.Time().Year() == year && (set == "BR" || !inAll[h.Day]) {
					got.WriteString(h.Day.Time().Format(" 01-02"))
				}
			}
			got.WriteString("\n")
		}
	}
	if diff := gocmp.Diff(testkit.Read(t, "testdata/holidays.txt"), got.String()); diff != "" {
		t.Errorf("testdata/holidays.txt says otherwise (-want +got):\n%s", diff)
	}
}

func TestEveryStateHasASet(t *testing.T) {
	if sets := calendar.Sets(); len(sets) != 1+27+1 {
		t.Errorf("%d sets: %s", len(sets), sets)
	}
	for _, set := range calendar.Sets() {
		for _, h := range calendar.Holidays(set) {
			if h.Name == "" || h.Law == "" {
				t.Errorf("%s: %s has no name or law", set, h.Day.Time())
			}
		}
	}
}
