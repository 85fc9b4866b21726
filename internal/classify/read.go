package classify

import (
	"bytes"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/text"
)

// reading is a message as people read it: in lower case without accents, with entities and escapes decoded.
type reading struct {
	// message is the original.
	message string
	// plain has one byte for each character, and one blank for each run of white space.
	plain []byte
	// offsets holds the place in message of each character of plain, and of its end.
	offsets []int32
	words   []word
	// text has the words between single blanks; an address is one character.
	text  []byte
	chars text.Reading // owns the memory of plain and offsets
}

// word is one word, or one whole address, which counts as unreadable.
type word struct {
	// from and to are its place in plain, at is where it begins in text.
	from, to, at int
	// before is the gap between this word and the one before.
	before    gap
	isAddress bool
}

// gap is the strongest separator between two words.
type gap uint8

// The gaps, the weakest first.
const (
	spaceGap  gap = iota // a blank, a hyphen, a quotation mark
	pauseGap             // a comma, a colon, a bracket
	clauseGap            // the end of a sentence or of a line, or a semicolon
)

// read reads a message in place of the one before.
func (r *reading) read(message string) {
	r.chars.Read(message, nil)
	chars, from := r.chars.Chars, r.chars.From
	r.message, r.plain, r.offsets, r.words = message, chars[:0], from[:0], r.words[:0]
	open, before := false, clauseGap // whether a word goes on
	for i, char := range chars {
		c, at := folded[char], len(r.plain)
		switch inWord := isLetter(c) || isDigit(c); {
		case inWord && !open:
			r.words = append(r.words, word{from: at, before: before})
			open, before = true, spaceGap
		case !inWord:
			if open {
				r.words[len(r.words)-1].to, open = at, false
			}
			if before = max(before, gapOf(c)); char == '\n' || c == '.' && r.endsSentence(chars[i+1:]) {
				before = clauseGap
			}
		}
		if c != ' ' || at == 0 || r.plain[at-1] != ' ' {
			r.plain, r.offsets = append(r.plain, c), append(r.offsets, from[i])
		}
	}
	if open {
		r.words[len(r.words)-1].to = len(r.plain)
	}
	r.offsets = append(r.offsets, int32(len(message)))
	r.joinAddresses()
	r.text = append(r.text[:0], ' ')
	for i := range r.words {
		t := &r.words[i]
		if t.at = len(r.text); t.isAddress {
			r.text = append(r.text, '@')
		} else {
			r.text = append(r.text, r.plain[t.from:t.to]...)
		}
		r.text = append(r.text, ' ')
	}
}

// wordsBefore returns how many words begin before a place in text.
func (r *reading) wordsBefore(place int) int {
	return sort.Search(len(r.words), func(i int) bool { return r.words[i].at >= place })
}

// folded maps a character of a Reading to lower case, and to a blank if it resembles no ASCII character.
var folded = func() (table [256]byte) {
	for c := range table {
		switch {
		case c >= text.Sign || c <= ' ':
			table[c] = ' '
		case 'A' <= c && c <= 'Z':
			table[c] = byte(c) | 0x20
		default:
			table[c] = byte(c)
		}
	}
	return table
}()

func gapOf(c byte) gap {
	switch c {
	case ';', '|', '!', '?':
		return clauseGap
	case ',', ':', '(', ')', '[', ']', '{', '}', '=', '<', '>', '.':
		return pauseGap
	}
	return spaceGap
}

// endsSentence reports whether the full stop before rest ends a sentence.
func (r *reading) endsSentence(rest []byte) bool {
	if len(rest) > 0 && rest[0] > ' ' && rest[0] != '"' && rest[0] != '<' {
		return false
	}
	return !abbreviations[r.at(len(r.words)-1)]
}

// joinAddresses joins the words of each URL and each e-mail address into one word.
func (r *reading) joinAddresses() {
	if !bytes.ContainsAny(r.plain, "@/") {
		return
	}
	joins := func(a, b word) bool { return b.from == a.to+1 && strings.IndexByte("._+-", r.plain[a.to]) >= 0 }
	all, rest := r.words[:0], r.words
	for len(rest) > 0 {
		t := rest[0]
		rest = rest[1:]
		switch behind := r.plain[t.to:]; {
		case bytes.HasPrefix(behind, []byte("://")):
			for len(rest) > 0 && !bytes.ContainsAny(r.plain[t.to:rest[0].from], " \"'<>()[]{}|;,") {
				t.to, t.isAddress, rest = rest[0].to, true, rest[1:]
			}
		case len(rest) > 0 && behind[0] == '@' && rest[0].from == t.to+1:
			for ; len(all) > 0 && joins(all[len(all)-1], t); all = all[:len(all)-1] {
				t.from, t.before = all[len(all)-1].from, all[len(all)-1].before
			}
			t.to, t.isAddress = rest[0].to, true
			for rest = rest[1:]; len(rest) > 0 && joins(t, rest[0]); rest = rest[1:] {
				t.to = rest[0].to
			}
		}
		all = append(all, t)
	}
	r.words = all
}

// at returns word i; empty if it is an address or out of range.
func (r *reading) at(i int) string {
	if i < 0 || i >= len(r.words) || r.words[i].isAddress {
		return ""
	}
	return string(r.plain[r.words[i].from:r.words[i].to])
}

// gapBefore returns the gap between word i and the one before.
func (r *reading) gapBefore(i int) gap {
	if i <= 0 || i >= len(r.words) {
		return clauseGap
	}
	return r.words[i].before
}

// Said is what a text tells besides its class.
type Said struct {
	// Perhaps reports that the portal may have taken the claim: words or a status say so, and nothing shows that it was
	// not sent (R33).
	Perhaps bool
	// Wait is the time that the text asks to wait, such as "tente após 1 hora" (R37); 0 if it does not ask.
	Wait time.Duration
}

// sayings maps the lists of phrases that tell something to the phrases' roles. They match within words, too.
var sayings = map[string]role{"perhaps": perhapsRole, "not sent": notSentRole, "wait": waitRole}

// ofStatus maps HTTP statuses to the roles of phrases that say the same.
var ofStatus = map[string]role{"429": notSentRole, "503": notSentRole, "502": perhapsRole, "504": perhapsRole}

// hear records what a phrase or a status of role r tells of whether the claim was sent.
func (s *search) hear(r role) {
	s.said.Perhaps = s.said.Perhaps || r == perhapsRole
	s.notSent = s.notSent || r == notSentRole
}

// conclude completes said once the words and numbers of the message are read.
func (s *search) conclude() {
	s.hear(ofStatus[strconv.Itoa(s.status)])
	s.said.Perhaps = s.said.Perhaps && !s.notSent
	for _, to := range s.asks[max(0, len(s.asks)-mostAsks):] {
		s.said.Wait = max(s.said.Wait, waitIn(s.clauseBehind(to)))
	}
}

const (
	// mostAsks is how many requests to wait are read, the last ones, so that a long text does not take seconds.
	mostAsks = 32
	// farthest is how many words after the word that asks to wait the time may stand.
	farthest = 10
)

// clauseBehind returns the rest of a clause, from a word on.
func (r *reading) clauseBehind(from int) []byte {
	to := from
	for to-from < farthest && r.gapBefore(to) != clauseGap {
		to++
	}
	if to == from {
		return nil
	}
	return r.plain[r.words[from].from-1 : r.words[to-1].to]
}

// times match 30 min, 30 (trinta) min, uma hora, 1h30, 1 hora e 30 minutos or half an hour; a number after a comma is
// only a part of one.
var times = regexp.MustCompile(`[^0-9a-z.,](?:([0-9]{1,4})(?: \([a-z ]{1,30}\))? ?|` +
	`(um|uma|one|an?) |(meia|half(?: an?)?) )` +
	`(?:(s|segs?|segundos?|secs?|seconds?)|(mins?|minutos?|minutes?)|(dias?|days?)|` +
	`(?:hs?|hrs?|horas?|hours?)(?:([0-9]{2})(?:m|min)?|(?: e| and)? ([0-9]{1,2}) ?(?:m|mins?|minutos?|minutes?))?)\b`)

// waitIn returns the longest time to wait that clause names, 0 if there is none.
func waitIn(clause []byte) (longest time.Duration) {
	if at := otherwise.FindIndex(clause); at != nil {
		clause = clause[:at[0]]
	}
	for _, m := range times.FindAllSubmatch(clause, -1) {
		n, unit := 1, time.Hour
		switch {
		case m[4] != nil:
			unit = time.Second
		case m[5] != nil:
			unit = time.Minute
		case m[6] != nil:
			unit = 24 * time.Hour
		}
		if m[1] != nil {
			n, _ = strconv.Atoi(string(m[1]))
		} else if m[3] != nil {
			unit /= 2
		}
		minutes, _ := strconv.Atoi(string(m[7]) + string(m[8])) // one is empty
		longest = max(longest, time.Duration(n)*unit+time.Duration(minutes)*time.Minute)
	}
	return longest
}
