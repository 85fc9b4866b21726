package calendar

import (
	"cmp"
	_ "embed"
	"encoding/csv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Day is a date: days since 1970-01-01.
type Day int32

const secondsPerDay = 24 * 60 * 60

// DayOf returns the date that t, of 1970 or later, has where it is.
func DayOf(t time.Time) Day {
	_, offset := t.Zone()
	return Day((t.Unix() + int64(offset)) / secondsPerDay)
}

// Time returns the begin of d in UTC.
func (d Day) Time() time.Time { return time.Unix(int64(d)*secondsPerDay, 0).UTC() }

func (d Day) weekday() time.Weekday { return time.Weekday((d + 4) % 7) }

func dayOf(year int, month time.Month, day int) Day {
	return DayOf(time.Date(year, month, day, 0, 0, 0, 0, time.UTC))
}

// Holiday is a date that is closed.
type Holiday struct {
	Day Day
	// Name of the holiday, and the law that makes it one.
	Name, Law string
}

// String names h and its law.
func (h Holiday) String() string {
	if h.Law == "" {
		return h.Name
	}
	return h.Name + " (" + h.Law + ")"
}

// national is the set of holidays that all others add to.
const national = "BR"

// rule makes a holiday of each year.
type rule struct {
	month, day int // month 0: day counts from Easter Sunday
	shift      [7]int
	name, law  string
}

//go:embed holidays.csv
var table string

// rules returns the table by its sets.
var rules = sync.OnceValue(func() map[string][]rule {
	r := csv.NewReader(strings.NewReader(table))
	r.Comment = '#'
	rows, err := r.ReadAll()
	if err != nil {
		panic(err) // cannot be: the tests read the table
	}
	sets := make(map[string][]rule)
	for _, row := range rows {
		sets[row[0]] = append(sets[row[0]], parseRule(row[1], row[2], row[3]))
	}
	return sets
})

func parseRule(date, name, law string) rule {
	r := rule{name: name, law: law}
	date, shifts, _ := strings.Cut(date, " ")
	if fromEaster, movable := strings.CutPrefix(date, "easter"); movable {
		r.day, _ = strconv.Atoi(fromEaster)
	} else {
		r.month, _ = strconv.Atoi(date[:2])
		r.day, _ = strconv.Atoi(date[3:])
	}
	for _, shift := range strings.Fields(shifts) {
		weekday := slices.Index(weekdayNames[:], shift[:3])
		r.shift[weekday], _ = strconv.Atoi(shift[3:])
	}
	return r
}

func (r *rule) in(year int) Holiday {
	day := easter(year) + Day(r.day)
	if r.month != 0 {
		day = dayOf(year, time.Month(r.month), r.day)
	}
	return Holiday{day + Day(r.shift[day.weekday()]), r.name, r.law}
}

// easter returns Easter Sunday of a year from 1900 to 2099 (Carter).
func easter(year int) Day {
	moon := (204-11*(year%19))%30 + 21
	if moon > 48 {
		moon--
	}
	return dayOf(year, time.March, moon+7-(year+year/4+moon+1)%7)
}

// Sets lists the names of the sets of holidays: BR, one for each state, and BR-BANKS.
func Sets() []string { return slices.Sorted(maps.Keys(rules())) }

// Holidays returns the holidays of a set, those of the whole country included, in the order of their dates; nil for a set
// that there is none of.
func Holidays(set string) []Holiday {
	own, ok := rules()[set]
	if !ok {
		return nil
	}
	if set != national {
		own = slices.Concat(rules()[national], own)
	}
	var all []Holiday
	for year := firstYear; year < endYear; year++ {
		for i := range own {
			all = append(all, own[i].in(year))
		}
	}
	slices.SortStableFunc(all, func(a, b Holiday) int { return cmp.Compare(a.Day, b.Day) })
	return slices.CompactFunc(all, func(a, b Holiday) bool { return a.Day == b.Day })
}
