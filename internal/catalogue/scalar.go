package catalogue

import (
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/calendar"
	"retry-worker/internal/decision"
)

// The scalars that have a form of their own. What is wrong with a code, a status or a pattern is for the classifier
// to say.
type (
	code         string
	status       string
	tissCode     string
	variableName string
	emailAddress string
	webhookURL   string
	// destinationName has the form of all names.
	destinationName string
	// perMinute, growth and factor are 0 where they are absent.
	perMinute float64
	growth    struct {
		factor float64
		every  duration
	}
	factor float64
	// duration is 0 where it is absent.
	duration time.Duration
	// percent is a fraction in [0, 1).
	percent float64
)

// scalar says what a text of a type must be, and how a value is read of it.
type scalar struct {
	expected string
	// read sets v and reports whether text has the form.
	read func(text string, v reflect.Value) bool
}

var scalars = map[reflect.Type]scalar{
	reflect.TypeFor[duration](): {"a duration of whole numbers with their units, such as 500ms, 5s, 90m, 4h, 1h30m or 2d, " +
		"from 1ms to 366d", parsed(parseDuration)},
	reflect.TypeFor[percent]():   {"a percentage from 0% to less than 100%, such as 20%", parsed(parsePercent)},
	reflect.TypeFor[perMinute](): {"claims a minute from 1/min to 60000/min, such as 20/min", parsed(parsePerMinute)},
	reflect.TypeFor[growth](): {"a factor above 1 up to 10 and a duration from 1s to 1h, such as x2 every 15s",
		parsed(parseGrowth)},
	reflect.TypeFor[factor]():            {"a factor from x0.1 to x0.9, such as x0.5", parsed(parseFactor)},
	reflect.TypeFor[calendar.Days]():     {"days from 1 to 31, such as 1-5 or 1,10-12", parsed(calendar.ParseDays)},
	reflect.TypeFor[calendar.Weekdays](): {"days of the week, such as mon-fri or tue,thu", parsed(calendar.ParseWeekdays)},
	reflect.TypeFor[calendar.Hours](): {"hours from the first until before the second, such as 08:00-18:00 or 22:00-04:00",
		parsed(calendar.ParseHours)},
	reflect.TypeFor[destinationName](): {nameExpected, matched(nameForm)},
	reflect.TypeFor[variableName](): {"the name of a process variable: letters, digits and _, no digit first, at most 63",
		matched(variableForm)},
	reflect.TypeFor[emailAddress](): {"an e-mail address such as ti@hospital.example, without a name",
		parsed(parseEmailAddress)},
	reflect.TypeFor[webhookURL](): {"an address such as https://chat.hospital.example/hooks/retry, without user, password " +
		"and fragment", matched(webhookForm)},
}

// parsed reads what parse returns, be text sound or not.
func parsed[T any](parse func(text string) (T, bool)) func(string, reflect.Value) bool {
	return func(text string, v reflect.Value) bool {
		value, ok := parse(text)
		v.Set(reflect.ValueOf(value))
		return ok
	}
}

// matched takes a text as it is.
func matched(form *regexp.Regexp) func(string, reflect.Value) bool {
	return func(text string, v reflect.Value) bool {
		ok := form.MatchString(text)
		if ok {
			v.SetString(text)
		}
		return ok
	}
}

// longest duration that a catalogue may hold, as a job may ask for no more either.
const longest = 366 * 24 * time.Hour

var units = [...]struct {
	name   string
	length time.Duration
}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}}

// parseDuration takes whole numbers, each with its unit, the longest unit first: 90m, 1h30m, 500ms.
func parseDuration(text string) (duration, bool) {
	var total time.Duration
	next := 0
	for text != "" {
		digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
		n, err := strconv.ParseInt(text[:digits], 10, 64)
		text = text[digits:]
		unit := text[:len(text)-len(strings.TrimLeft(text, "dhms"))]
		for next < len(units) && units[next].name != unit {
			next++
		}
		if err != nil || next == len(units) || n > int64(longest/units[next].length) {
			return 0, false
		}
		total += time.Duration(n) * units[next].length
		text, next = text[len(unit):], next+1
	}
	if total < time.Millisecond || total > longest {
		return 0, false
	}
	return duration(total), true
}

// String returns d in the form that it is read in.
func (d duration) String() string {
	var b strings.Builder
	rest := time.Duration(d)
	for _, u := range units {
		if u.name == "d" && rest%u.length != 0 {
			continue // 36h, not 1d12h
		}
		if n := rest / u.length; n > 0 {
			b.WriteString(strconv.FormatInt(int64(n), 10) + u.name)
			rest -= n * u.length
		}
	}
	return b.String()
}

var percentForm = regexp.MustCompile(`^[0-9]{1,2}(\.[0-9]{1,3})?%$`)

func parsePercent(text string) (percent, bool) {
	if !percentForm.MatchString(text) {
		return 0, false
	}
	n, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	return percent(n / 100), err == nil
}

// The forms of a pace.
var (
	perMinuteForm = regexp.MustCompile(`^([1-9][0-9]{0,4})(/min)?$`)
	growthForm    = regexp.MustCompile(`^x([1-9][0-9]?(?:\.[0-9]{1,2})?) every ([0-9a-z]+)$`)
	factorForm    = regexp.MustCompile(`^x(0\.[1-9][0-9]?)$`)
)

// maxPerMinute is a thousand claims a second, beyond which no gate is needed.
const maxPerMinute = 60_000

func parsePerMinute(text string) (perMinute, bool) {
	n, _, ok := number(perMinuteForm, text)
	return perMinute(n), ok && n <= maxPerMinute
}

func parseGrowth(text string) (growth, bool) {
	n, rest, ok := number(growthForm, text)
	every, okEvery := parseDuration(rest)
	return growth{n, every}, ok && okEvery && n > 1 && n <= 10 &&
		time.Duration(every) >= time.Second && time.Duration(every) <= time.Hour
}

func parseFactor(text string) (factor, bool) {
	n, _, ok := number(factorForm, text)
	return factor(n), ok && n <= 0.9
}

// number returns the number in text that is the first group of form, and the last group.
func number(form *regexp.Regexp, text string) (n float64, last string, ok bool) {
	groups := form.FindStringSubmatch(text)
	if groups == nil {
		return 0, "", false
	}
	n, err := strconv.ParseFloat(groups[1], 64)
	return n, groups[len(groups)-1], err == nil
}

var variableForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

// emailForm is what mail servers take everywhere: no quoting, no comments, ASCII.
var emailForm = regexp.MustCompile(`^[A-Za-z0-9!#$%&'*+/=?^_{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_{|}~-]+)*@` + hostName +
	`$`)

// hostName is of labels of letters, digits and hyphens.
const hostName = `[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*`

// maxAddress is the characters of an e-mail address (RFC 5321).
const maxAddress = 254

func parseEmailAddress(text string) (emailAddress, bool) {
	local, _, _ := strings.Cut(text, "@")
	if len(text) > maxAddress || len(local) > 64 || !emailForm.MatchString(text) {
		return "", false
	}
	return emailAddress(text), true
}

var webhookForm = regexp.MustCompile(`^https?://(` + hostName +
	`|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)?(\?[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*)?$`)

// nameForm is that of policies, teams and rules: they stand in headers, metrics and addresses.
var nameForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)

const nameExpected = "a name of lower-case letters, digits and -, a letter first, at most 63"

// choices are the types of which only some texts are values.
var choices = map[reflect.Type][]string{
	reflect.TypeFor[decision.EmptyError]():   {string(decision.RejectEmptyError), string(decision.AssumeTransient)},
	reflect.TypeFor[decision.UnknownError](): {string(decision.RetryUnknown), string(decision.GiveUpUnknown)},
	reflect.TypeFor[decision.Reason]():       reasons,
	reflect.TypeFor[decision.ContextType]():  textsOf(decision.ContextTypes()),
}

var reasons = textsOf(decision.RuleReasons())

// numeric are the types of texts that may be written as whole numbers.
var numeric = map[reflect.Type]bool{
	reflect.TypeFor[code](): true, reflect.TypeFor[status](): true, reflect.TypeFor[tissCode](): true,
	reflect.TypeFor[decision.Reason](): true,
}

func textsOf[T ~string](values []T) (texts []string) {
	for _, v := range values {
		texts = append(texts, string(v))
	}
	return texts
}
