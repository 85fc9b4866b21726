package redact

// isNumber reports whether the digits that begin s prove to be somebody's, or are as many as a CPF's.
func isNumber(s string) bool {
	n := 0
	for n < len(s) && n < maxRun && looks[s[n]] == isDigit {
		n++
	}
	return n == 11 || verified([]byte(s[:n])) != none
}

// verified returns the kind of number that the check digits of d prove.
func verified(d []byte) kind {
	switch n := len(d); {
	case n == 11 && isCPF(d):
		return cpf
	case n == 15 && isCNS(d):
		return cns
	case n == 14 && (isCNPJ(d) || isTimestamp(d)), n == 17 && isTimestamp(d):
		return none
	case 13 <= n && n <= 19 && isLuhn(d):
		return card
	}
	return none
}

// isCPF checks the two check digits of 11 digits.
func isCPF(d []byte) bool {
	return checkDigit(d[:9], 11) == d[9] && checkDigit(d[:10], 11) == d[10]
}

// isCNPJ checks the two check digits of 14 digits, a company's number.
func isCNPJ(d []byte) bool {
	return checkDigit(d[:12], 9) == d[12] && checkDigit(d[:13], 9) == d[13]
}

// checkDigit returns the digit that is to follow d, modulo 11: weights from 2 to most from the right, over and over.
func checkDigit(d []byte, most int) byte {
	sum := 0
	for i, c := range d {
		sum += int(c-'0') * (2 + (len(d)-1-i)%(most-1))
	}
	return '0' + byte(sum*10%11%10)
}

// isCNS checks 15 digits of a Cartão Nacional de Saúde: 1 and 2 are definitive, 7, 8, 9 provisional.
func isCNS(d []byte) bool {
	sum := 0
	for i, c := range d {
		sum += int(c-'0') * (15 - i)
	}
	return startsCNS(d) && sum%11 == 0
}

func startsCNS(d []byte) bool { return d[0] == '1' || d[0] == '2' || d[0] >= '7' }

// isLuhn checks the last digit of a payment card's number.
func isLuhn(d []byte) bool {
	sum, all := 0, 0
	for i := range d {
		v := int(d[len(d)-1-i] - '0')
		all |= v
		if i%2 == 1 {
			if v *= 2; v > 9 {
				v -= 9
			}
		}
		sum += v
	}
	return all != 0 && sum%10 == 0
}

// isTimestamp recognises 20250112104000, with or without milliseconds.
func isTimestamp(d []byte) bool {
	return isYear(value(d[:4])) && isDay(value(d[4:6]), value(d[6:8])) &&
		value(d[8:10]) < 24 && value(d[10:12]) < 60 && value(d[12:14]) < 61
}

func isYear(v int) bool       { return 1900 <= v && v < 2100 }
func isDay(month, d int) bool { return 1 <= month && month <= 12 && 1 <= d && d <= 31 }

func value(d []byte) int {
	v := 0
	for _, c := range d {
		v = min(v*10+int(c-'0'), 1e6)
	}
	return v
}

// isBrazilian checks a telephone number with its area code, and optionally 0 or 55 before it: nine
// digits from 9 on for a mobile, eight from 2 on for a land line (from 6 on: a mobile as of old).
func isBrazilian(d []byte) bool {
	switch n := len(d); {
	case n >= 12 && d[0] == '5' && d[1] == '5':
		d = d[2:]
	case n >= 11 && d[0] == '0':
		d = d[1:]
	}
	n := len(d)
	return n == 11 && isArea(d) && d[2] == '9' || n == 10 && isArea(d) && d[2] >= '2'
}

// areas has a bit for each second digit of the area codes (DDD) in use, by the first.
var areas = [10]uint16{1: 0b11_1111_1110, 2: 0b01_1001_0110, 3: 0b01_1011_1110, 4: 0b11_1111_1110, 5: 0b00_0011_1010,
	6: 0b11_1111_1110, 7: 0b10_1011_1010, 8: 0b11_1111_1110, 9: 0b11_1111_1110}

func isArea(d []byte) bool { return areas[d[0]-'0']>>(d[1]-'0')&1 == 1 }
