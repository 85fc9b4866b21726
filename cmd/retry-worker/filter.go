package main

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"retry-worker/internal/spelling"
)

// filterAll chooses every open dead letter: that must be said.
const filterAll = "all"

// filterKeys of --filter key=value.
var filterKeys = []string{"policy", "team", "reason", "fingerprint", "ids", "context", "q", "older-than", "younger-than", "since",
	"until"}

// parseFilter reads what --filter chooses, as the API has it, with ages counted back from now. Its errors are wrong
// use.
func parseFilter(given []string, now time.Time) (map[string]string, error) {
	values := map[string]string{}
	var wrong []error
	for _, g := range given {
		key, value, pair := strings.Cut(g, "=")
		_, twice := values[key]
		switch {
		case g == filterAll:
		case !slices.Contains(filterKeys, key):
			wrong = append(wrong, unknownFilter(key))
		case !pair || strings.TrimSpace(value) == "":
			wrong = append(wrong, fmt.Errorf("--filter %s has no value, expected --filter %s=…", key, key))
		case twice:
			wrong = append(wrong, fmt.Errorf("--filter %s is given twice, expected once: all filters must fit", key))
		default:
			values[key] = value
		}
	}
	wrong = append(wrong, checkDeadReason("filter reason", values["reason"]))
	if slices.Contains(given, filterAll) && len(given) > 1 {
		wrong = append(wrong, errors.New("--filter all chooses every open dead letter, expected no other --filter with it"))
	}
	p := period{values["older-than"], values["younger-than"], values["since"], values["until"]}
	since, until, err := p.bounds("filter ", now)
	values["since"], values["until"] = since, until
	maps.DeleteFunc(values, func(key, value string) bool {
		return value == "" || key == "older-than" || key == "younger-than"
	})
	return values, wrongUse(append(wrong, err)...)
}

func unknownFilter(key string) error {
	meant := ""
	if near := spelling.Nearest(key, append([]string{filterAll}, filterKeys...)); near != "" {
		meant = "; did you mean " + near + "?"
	}
	return fmt.Errorf("--filter has %q, expected all, or key=value with a key of %s%s", inertLine(key, 60),
		strings.Join(filterKeys, ", "), meant)
}

// period bounds when dead letters were given up; what was not given is empty.
type period struct{ olderThan, youngerThan, since, until string }

func (p *period) register(flags *pflag.FlagSet) {
	flags.StringVar(&p.olderThan, "older-than", "", "only those given up longer ago than this, such as 2h or 3d")
	flags.StringVar(&p.youngerThan, "younger-than", "", "only those given up within this, such as 2h or 3d")
	flags.StringVar(&p.since, "since", "", "only those given up at this instant or later, a date or RFC 3339")
	flags.StringVar(&p.until, "until", "", "only those given up before this instant, a date or RFC 3339")
}

// moves reports whether it is another one each moment.
func (p *period) moves() bool { return p.olderThan+p.youngerThan != "" }

// bounds of it at that moment, as the API has them; an empty text is none. in stands before the names in errors.
func (p *period) bounds(in string, now time.Time) (since, until string, err error) {
	begin, err1 := boundOf(in, now, "since", p.since, "younger-than", p.youngerThan)
	end, err2 := boundOf(in, now, "until", p.until, "older-than", p.olderThan)
	if !begin.IsZero() {
		since = begin.Format(time.RFC3339Nano)
	}
	if !end.IsZero() {
		until = end.Format(time.RFC3339Nano)
	}
	err = errors.Join(err1, err2)
	if err == nil && since != "" && until != "" && !begin.Before(end) {
		err = fmt.Errorf("the period is empty: it begins at %s and ends at %s, expected an end that is later",
			begin.Format(time.RFC3339), end.Format(time.RFC3339))
	}
	return since, until, err
}

// boundOf returns one bound, which an instant or an age gives.
func boundOf(in string, now time.Time, name, instant, ageName, age string) (time.Time, error) {
	if age == "" {
		return boundFlag(in+name, instant)
	}
	if instant != "" {
		return time.Time{}, fmt.Errorf("--%s%s and --%s%s bound the same, expected one of them", in, ageName, in, name)
	}
	d, known := parseAge(age)
	if !known {
		return time.Time{}, fmt.Errorf("--%s%s is %q, expected an age such as 90m, 2h, 3d or 1w", in, ageName, age)
	}
	return now.Add(-d).UTC().Truncate(time.Millisecond), nil
}

var ageForm = regexp.MustCompile(`^(?:(\d{1,3})w)?(?:(\d{1,4})d)?((?:\d.*)?)$`)

// parseAge reads an age, such as 1w, 3d, 1d12h, 90m; it is above 0, and at most ten years.
func parseAge(s string) (time.Duration, bool) {
	const day, most = 24 * time.Hour, 3653 * 24 * time.Hour
	m := ageForm.FindStringSubmatch(s)
	if m == nil || s == "" {
		return 0, false
	}
	weeks, _ := strconv.Atoi(m[1]) // at most three digits, or none
	days, _ := strconv.Atoi(m[2])
	all := time.Duration(weeks)*7*day + time.Duration(days)*day
	if m[3] != "" {
		rest, err := time.ParseDuration(m[3])
		if err != nil || rest > most {
			return 0, false
		}
		all += rest
	}
	return all, all > 0 && all <= most
}
