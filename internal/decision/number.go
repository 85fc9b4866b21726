package decision

// numberRules are the places of the rules that one number may match, by what it must be; 0 for none.
type numberRules struct{ code, status, tiss int }

// eachNumber calls found for every whole number in text, with where it stands: digits with no digit beside them, nor
// one of '.', ',', '-' with a digit behind it (R3). So 503 is not in "15037", "503.504.111-22" or "1.504,00".
func eachNumber(text string, found func(from, to int)) {
	for i := 0; i < len(text); i++ {
		if !isDigit(text[i]) {
			continue
		}
		from := i
		for i < len(text) && isDigit(text[i]) {
			i++
		}
		if !separated(at(text, from-1), at(text, from-2)) && !separated(at(text, i), at(text, i+1)) {
			found(from, i)
		}
	}
}

// separated tells whether a separator beside a number, and the character behind it, make it part of another.
func separated(separator, behind byte) bool {
	return (separator == '.' || separator == ',' || separator == '-') && isDigit(behind)
}

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
