package catalogue

import (
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

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

// scalar is what reads itself of a text; false where the text has not the form that expected describes.
type scalar interface {
	read(text string) bool
	expected() string
}

// longest duration that a catalogue may hold, as a job may ask for no more either.
const longest = 366 * 24 * time.Hour

var units = [...]struct {
	name   string
	length time.Duration
}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}}

// durationForm is for the schema; read says more.
const durationForm = `^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$`

// read takes whole numbers, each with its unit, the longest unit first: 90m, 1h30m, 500ms.
func (d *duration) read(text string) bool {
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
			return false
		}
		total += time.Duration(n) * units[next].length
		text, next = text[len(unit):], next+1
	}
	if total < time.Millisecond || total > longest {
		return false
	}
	*d = duration(total)
	return true
}

func (*duration) expected() string {
	return "a duration of whole numbers with their units, such as 500ms, 5s, 90m, 4h, 1h30m or 2d, from 1ms to 366d"
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

func (p *percent) read(text string) bool {
	if !percentForm.MatchString(text) {
		return false
	}
	n, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	*p = percent(n / 100)
	return err == nil
}

func (*percent) expected() string {
	return "a percentage from 0% to less than 100%, such as 20%"
}

// The forms of a pace.
var (
	perMinuteForm = regexp.MustCompile(`^([1-9][0-9]{0,4})(/min)?$`)
	growthForm    = regexp.MustCompile(`^x([1-9][0-9]?(?:\.[0-9]{1,2})?) every ([0-9a-z]+)$`)
	factorForm    = regexp.MustCompile(`^x(0\.[1-9][0-9]?)$`)
)

func (p *perMinute) read(text string) bool {
	found := perMinuteForm.FindStringSubmatch(text)
	if found == nil {
		return false
	}
	n, err := strconv.ParseFloat(found[1], 64)
	*p = perMinute(n)
	return err == nil && n <= maxPerMinute
}

// maxPerMinute is a thousand claims a second, beyond which no gate is needed.
const maxPerMinute = 60_000

func (*perMinute) expected() string { return "claims a minute from 1/min to 60000/min, such as 20/min" }

func (g *growth) read(text string) bool {
	found := growthForm.FindStringSubmatch(text)
	if found == nil || !g.every.read(found[2]) {
		return false
	}
	n, err := strconv.ParseFloat(found[1], 64)
	g.factor = n
	return err == nil && n > 1 && n <= 10 && time.Duration(g.every) >= time.Second && time.Duration(g.every) <= time.Hour
}

func (*growth) expected() string {
	return "a factor above 1 up to 10 and a duration from 1s to 1h, such as x2 every 15s"
}

func (f *factor) read(text string) bool {
	found := factorForm.FindStringSubmatch(text)
	if found == nil {
		return false
	}
	n, err := strconv.ParseFloat(found[1], 64)
	*f = factor(n)
	return err == nil && n <= 0.9
}

func (*factor) expected() string { return "a factor from x0.1 to x0.9, such as x0.5" }

func (n *destinationName) read(text string) bool {
	*n = destinationName(text)
	return nameForm.MatchString(text)
}

func (*destinationName) expected() string { return nameExpected }

var variableForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

func (v *variableName) read(text string) bool {
	if !variableForm.MatchString(text) {
		return false
	}
	*v = variableName(text)
	return true
}

func (*variableName) expected() string {
	return "the name of a process variable: letters, digits and _, no digit first, at most 63"
}

// emailForm is what mail servers take everywhere: no quoting, no comments, ASCII.
var emailForm = regexp.MustCompile(`^[A-Za-z0-9!#$%&'*+/=?^_{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_{|}~-]+)*@` + hostName +
	`$`)

// hostName is of labels of letters, digits and hyphens.
const hostName = `[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*`

// maxAddress is the characters of an e-mail address (RFC 5321).
const maxAddress = 254

func (a *emailAddress) read(text string) bool {
	local, _, _ := strings.Cut(text, "@")
	if len(text) > maxAddress || len(local) > 64 || !emailForm.MatchString(text) {
		return false
	}
	*a = emailAddress(text)
	return true
}

func (*emailAddress) expected() string {
	return "an e-mail address such as ti@hospital.example, without a name"
}

var webhookForm = regexp.MustCompile(`^https?://(` + hostName +
	`|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)?(\?[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*)?$`)

func (w *webhookURL) read(text string) bool {
	if !webhookForm.MatchString(text) {
		return false
	}
	*w = webhookURL(text)
	return true
}

func (*webhookURL) expected() string {
	return "an address such as https://chat.hospital.example/hooks/retry, without user, password and fragment"
}

// nameForm is that of policies, teams and rules: they stand in headers, metrics and addresses.
var nameForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)

const nameExpected = "a name of lower-case letters, digits and -, a letter first, at most 63"

// choices are the types of which only some texts are values.
var choices = map[reflect.Type][]string{
	reflect.TypeFor[decision.EmptyError]():   {string(decision.RejectEmptyError), string(decision.AssumeTransient)},
	reflect.TypeFor[decision.UnknownError](): {string(decision.RetryUnknown), string(decision.GiveUpUnknown)},
	reflect.TypeFor[decision.HandOver](): {string(decision.LearnNothing), string(decision.AdviseHandOver),
		string(decision.DecideHandOver)},
	reflect.TypeFor[decision.Reason]():      reasons,
	reflect.TypeFor[decision.ContextType](): textsOf(decision.ContextTypes()),
	reflect.TypeFor[Digest]():               {string(Daily), string(Weekly)},
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
