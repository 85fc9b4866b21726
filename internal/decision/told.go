package decision

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/text"
)

// maxTold bounds how long a claim waits since it was told to (R37, BIL-004-V3).
const maxTold = 240 * time.Minute

// retryAfterText is the header's name, as error texts quote it, before its value.
var retryAfterText = regexp.MustCompile(
	`(?i)retry[-_ ]?after["']?\s*[:=]?\s*["']?([0-9]{1,9}|[a-z]{3}, [0-9]{2} [a-z]{3} [0-9]{4} [0-9:]{8} GMT)`)

// RetryAfter returns how long a destination asks to wait, of what the variable retryAfter holds or, where that is
// empty, what the header of that name in the text does: seconds, or an instant as HTTP writes it. 0 is nothing.
func RetryAfter(variable, text string, now time.Time) time.Duration {
	value := strings.TrimSpace(variable)
	if value == "" && (strings.Contains(text, "etry") || strings.Contains(text, "ETRY")) {
		if found := retryAfterText.FindStringSubmatch(text); found != nil {
			value = found[1]
		}
	}
	if value == "" {
		return 0
	}
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := time.Parse(time.RFC1123, value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// told returns how long a failure says to wait before the claim is sent again: RetryAfter, or in words, such as "tente após
// 1 hora"; at most maxTold (R37). Only what goes to a destination is told so.
func (f *Failure) told(now time.Time) time.Duration {
	if f.Destination == "" {
		return 0
	}
	return min(max(RetryAfter(f.RetryAfter, f.Error, now), f.asked), maxTold)
}

// units of time, by the words for them.
var units = map[string]time.Duration{
	"s": time.Second, "seg": time.Second, "segs": time.Second, "segundo": time.Second, "segundos": time.Second,
	"sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second,
	"min": time.Minute, "mins": time.Minute, "minuto": time.Minute, "minutos": time.Minute, "minute": time.Minute,
	"minutes": time.Minute,
	"h":       time.Hour, "hs": time.Hour, "hr": time.Hour, "hrs": time.Hour, "hora": time.Hour, "horas": time.Hour,
	"hour": time.Hour, "hours": time.Hour,
}

// halves are numbers in words, doubled.
var halves = map[string]int64{"um": 2, "uma": 2, "one": 2, "an": 2, "a": 2, "meia": 1, "half": 1}

// asks tells of words whether they ask to wait (true), or that a time behind them is none to wait: one of the day, one that
// has passed, or the one in which nothing came.
var asks = func() map[string]bool {
	all := make(map[string]bool)
	for word := range strings.FieldsSeq("as das ha faz fazem ago since failed falhou falharam failure esgotado esgotada " +
		"exceeded excedido excedida expired expirou timeout timed attempt attempts tentativa tentativas limite limit") {
		all[word] = false
	}
	for word := range strings.FieldsSeq("aguarde aguardem aguardar aguardado aguardados espere esperar tente tentar retente " +
		"reenvie reenviar repita repetir wait retry again try") {
		all[word] = true
	}
	return all
}()

// farthest is how many words the unit may stand behind the one that asks to wait.
const farthest = 10

// toldInWords returns the longest wait that a text asks for in words; 0 where it asks for none.
func toldInWords(words *text.Words) (longest time.Duration) {
	asked := farthest + 1
	for i := range words.All {
		if asked++; words.GapBefore(i) == text.Clause {
			asked = farthest + 1
		}
		switch waits, known := asks[words.At(i)]; {
		case !known:
		case !waits:
			asked = farthest + 1
		case back(words, i, 1) != "ao": // as in "timeout ao aguardar"
			asked = 0
		}
		if asked <= farthest {
			longest = max(longest, amount(words, i))
		}
	}
	return longest
}

// back returns the word that stands so many before the i-th in its clause; empty where none does.
func back(words *text.Words, i, n int) string {
	for ; n > 0; n-- {
		if words.GapBefore(i) == text.Clause {
			return ""
		}
		i--
	}
	return words.At(i)
}

// amount returns the time that the i-th word ends, such as "30 min", "30min" or "meia hora"; 0 where it ends none.
func amount(words *text.Words, i int) time.Duration {
	word, before, earlier := words.At(i), back(words, i, 1), back(words, i, 2)
	digits := strings.TrimRight(word, "abcdefghijklmnopqrstuvwxyz")
	unit, n := units[word[len(digits):]], halves[before]
	switch {
	case unit == 0:
		return 0
	case digits != "":
		n = doubled(digits)
	case n == 0 && doubled(earlier) == 0: // with two numbers it is a decimal
		n = doubled(before)
	case earlier == "half":
		n = 1
	}
	return min(time.Duration(n)*(unit/2), maxTold)
}

// doubled returns twice a number of at most four digits; 0 for anything else.
func doubled(digits string) int64 {
	if n, err := strconv.ParseUint(digits, 10, 32); err == nil && len(digits) <= 4 {
		return 2 * int64(n)
	}
	return 0
}
