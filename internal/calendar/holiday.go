package calendar

import (
	"cmp"
	_ "embed"
	"encoding/csv"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Day is a date, in days since 1970-01-01.
type Day int32

const secondsPerDay = 24 * 60 * 60

// DayOf returns the date of t, which is not before 1970, in t's zone.
func DayOf(t time.Time) Day {
	_, offset := t.Zone()
	return Day((t.Unix() + int64(offset)) / secondsPerDay)
}

// Time returns the beginning of d in UTC.
func (d Day) Time() time.Time { return time.Unix(int64(d)*secondsPerDay, 0).UTC() }

// weekday returns d's index in weekdayNames.
func (d Day) weekday() int { return int(d+3) % 7 }

func dayOf(year int, month time.Month, day int) Day {
	return DayOf(time.Date(year, month, day, 0, 0, 0, 0, time.UTC))
}

// Holiday is a date on which a calendar is closed.
type Holiday struct {
	Day Day
	// Name of the holiday, and the law that makes it one.
	Name, Law string
}

// String returns the name of h and its law.
func (h Holiday) String() string {
	if h.Law == "" {
		return h.Name
	}
	return h.Name + " (" + h.Law + ")"
}

// national is the set that all other sets include.
const national = "BR"

//go:embed holidays.csv
var table string

// rows returns the table: set, date, name, law.
var rows = sync.OnceValue(func() [][]string {
	r := csv.NewReader(strings.NewReader(table))
	r.Comment = '#'
	all, err := r.ReadAll()
	if err != nil {
		panic(err) // cannot be: the tests read the table
	}
	return all
})

// dateOf returns the day of a year that the table's date means.
func dateOf(year int, date string) (d Day) {
	fixed, shifts, _ := strings.Cut(date, " ")
	if fromEaster, movable := strings.CutPrefix(fixed, "easter"); movable {
		days, _ := strconv.Atoi(fromEaster)
		d = easter(year) + Day(days)
	} else {
		t, _ := time.Parse("01-02", fixed)
		d = dayOf(year, t.Month(), t.Day())
	}
	for shift := range strings.FieldsSeq(shifts) {
		if by, ok := strings.CutPrefix(shift, weekdayNames[d.weekday()]); ok {
			days, _ := strconv.Atoi(by)
			return d + Day(days)
		}
	}
	return d
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
func Sets() (names []string) {
	for _, row := range rows() {
		names = append(names, row[0])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Holidays returns the holidays of a set, with the national ones, by date; nil if there is no such set.
func Holidays(set string) (all []Holiday) {
	if !slices.Contains(Sets(), set) {
		return nil
	}
	for _, row := range rows() {
		for year := firstYear; year < endYear && (row[0] == national || row[0] == set); year++ {
			all = append(all, Holiday{dateOf(year, row[1]), row[2], row[3]})
		}
	}
	slices.SortStableFunc(all, func(a, b Holiday) int { return cmp.Compare(a.Day, b.Day) })
	return slices.CompactFunc(all, func(a, b Holiday) bool { return a.Day == b.Day })
}
