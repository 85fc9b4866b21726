package decision

import "math/bits"

// numberIndex finds the rules of a number.
type numberIndex struct {
	rules   map[string]*numberRules
	longest int
	seen    bloom // the numbers of up to longKey digits
}

// numberRules are the places of the matchers of one number, by what it must be; 0 for none.
type numberRules struct{ code, status, tiss int }

// of is nil where no rule has the number.
func (x *numberIndex) of(number string) *numberRules {
	if len(number) > x.longest || len(number) <= longKey && !x.seen.mayHave(keyOf(number)) {
		return nil
	}
	return x.rules[number]
}

// add is the number's rules to be filled in.
func (x *numberIndex) add(number string) *numberRules {
	if x.rules == nil {
		x.rules = make(map[string]*numberRules)
	}
	if x.rules[number] == nil {
		x.rules[number] = &numberRules{}
		x.longest = max(x.longest, len(number))
		if len(number) <= longKey {
			x.seen.add(keyOf(number))
		}
	}
	return x.rules[number]
}

// eachNumber calls found for every whole number in text, with where it stands: digits with no digit beside them, nor
// one of '.', ',', '-' with a digit behind it (R3). So 503 is not in "15037", "503.504.111-22" or "1.504,00".
func eachNumber(text string, found func(from, to int)) {
	for i := nextDigit(text, 0); i < len(text); i = nextDigit(text, i+1) {
		from := i
		for i < len(text) && isDigit(text[i]) {
			i++
		}
		if !separated(at(text, from-1), at(text, from-2)) && !separated(at(text, i), at(text, i+1)) {
			found(from, i)
		}
	}
}

// nextDigit is where the first digit stands from i on; at least len(text) where none does.
func nextDigit(text string, i int) int {
	for ; i+8 <= len(text); i += 8 {
		if digits := digitsIn(eight(text[i:])); digits != 0 {
			return i + bits.TrailingZeros64(digits)/8
		}
	}
	for i < len(text) && !isDigit(text[i]) {
		i++
	}
	return i
}

// separated tells whether a separator beside a number, and the character behind it, make it part of another.
func separated(separator, behind byte) bool {
	return (separator == '.' || separator == ',' || separator == '-') && isDigit(behind)
}

// isAnyNumber tells that a whole number is one wherever it stands.
func isAnyNumber(string, int, int) bool { return true }

// at is the byte at i, 0 outside s.
func at(s string, i int) byte {
	if i < 0 || i >= len(s) {
		return 0
	}
	return s[i]
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isNumber(code string) bool {
	for i := range len(code) {
		if !isDigit(code[i]) {
			return false
		}
	}
	return code != ""
}
