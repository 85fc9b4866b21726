package text

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Or joins words as alternatives in a sentence: "a, b or c".
func Or[T ~string](words ...T) string { return list(words, " or ") }

// And joins words as a list in a sentence: "a, b and c".
func And[T ~string](words ...T) string { return list(words, " and ") }

func list[T ~string](words []T, last string) string {
	var b strings.Builder
	for i, w := range words {
		switch {
		case i > 0 && i == len(words)-1:
			b.WriteString(last)
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(string(w))
	}
	return b.String()
}

// Apart returns a name such as forceRetry in lower case, with a text before each word that began with a capital letter.
func Apart(name, before string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteString(before)
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// Nearest returns the known text that was probably meant by text, or "". First choice is the one with the fewest
// different bytes, regardless of case: at most two, or an eighth of text. Otherwise it is the first of which one is a
// prefix of the other and at least half as long.
func Nearest(text string, known []string) string {
	best, least := "", max(2, len(text)/8)+1
	if len(text) > 80 {
		return ""
	}
	for _, k := range known {
		if d := distance(strings.ToLower(text), strings.ToLower(k)); d < least && d < len(k) {
			best, least = k, d
		}
	}
	if best != "" {
		return best
	}
	for _, k := range known {
		if short, long := min(len(text), len(k)), max(len(text), len(k)); 2*short >= long && text[:short] == k[:short] {
			return k
		}
	}
	return ""
}

// distance returns how many bytes must be inserted, removed or changed to turn a into b (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// Translated is a text for people that may differ by language.
type Translated struct {
	Portuguese string `yaml:"pt-BR"` // also for programs
	English    string `yaml:"en"`    // empty if it is the same as Portuguese
}

// In returns the text in a language, by its BCP 47 tag.
func (t Translated) In(language string) string {
	if language == "en" {
		return cmp.Or(t.English, t.Portuguese)
	}
	return t.Portuguese
}

// String returns the text for programs.
func (t Translated) String() string { return t.Portuguese }

// UnmarshalYAML reads a plain text, or a mapping from languages to texts.
func (t *Translated) UnmarshalYAML(read func(into any) error) error {
	if read(&t.Portuguese) == nil {
		return nil
	}
	type languages Translated
	return read((*languages)(t))
}

// Duration formats d as people and files write it, without trailing zero parts: 48h, 1h30m, 45m, 500ms.
func Duration(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-len("0s")]
		}
	}
	return s
}

// ISODuration formats d as ISO 8601: whole minutes as PT12M, otherwise seconds to the millisecond as PT5S or PT0.25S.
// It returns PT0S for 0 and less.
func ISODuration(d time.Duration) string {
	d = max(d, 0).Truncate(time.Millisecond)
	if d > 0 && d%time.Minute == 0 {
		return "PT" + strconv.FormatInt(int64(d/time.Minute), 10) + "M"
	}
	return "PT" + strconv.FormatFloat(float64(d.Milliseconds())/1000, 'f', -1, 64) + "S"
}

// LongestDuration is the longest that ParseDuration accepts.
const LongestDuration = 366 * day

const day = 24 * time.Hour

// durations matches ISO 8601 without years and months, whose length varies (PT30S, P1DT12H, PT0.5S), and the form of
// files (90m, 1h30m, 2d).
var durations = regexp.MustCompile(strings.ReplaceAll(
	`^(?:P(?:#W)?(?:#D)?(?:T(?:#H)?(?:#M)?(?:#S)?)?|(?:#d)?(?:#h)?(?:#m)?(?:#s)?(?:#ms)?)$`, "#", `([0-9]+(?:[.,][0-9]+)?)`))

// durationUnits holds the unit of each number in durations.
var durationUnits = [...]time.Duration{7 * day, day, time.Hour, time.Minute, time.Second,
	day, time.Hour, time.Minute, time.Second, time.Millisecond}

// fractionBefore matches a fraction that is followed by another number.
var fractionBefore = regexp.MustCompile(`[.,][0-9]+[A-Za-z]+[0-9]`)

// ParseDuration reads a duration in one of the two forms, to the millisecond. Only its last number may have a fraction.
// It returns false if s is neither, or longer than LongestDuration.
func ParseDuration(s string) (time.Duration, bool) {
	figures := durations.FindStringSubmatch(s)
	if figures == nil || s == "" || s[len(s)-1] == 'P' || s[len(s)-1] == 'T' || fractionBefore.MatchString(s) {
		return 0, false
	}
	total := 0.0
	for i, figure := range figures[1:] {
		if figure == "" {
			continue
		}
		n, err := strconv.ParseFloat(strings.Replace(figure, ",", ".", 1), 64)
		total += n * float64(durationUnits[i])
		if err != nil || total > float64(LongestDuration) {
			return 0, false
		}
	}
	return time.Duration(total).Round(time.Millisecond), true
}
