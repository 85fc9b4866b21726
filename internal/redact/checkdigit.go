package redact

// isNumber reports whether s begins with a number whose check digits prove it somebody's, or with as many digits as a
// CPF has.
func isNumber(s string) bool {
	n := 0
	for n < len(s) && n < maxRun && looks[s[n]] == isDigit {
		n++
	}
	return n == 11 || n == 9 && nineAndTwo.MatchString(s) || verified([]byte(s[:n])) != none
}

// verified returns the kind of number that the check digits of d prove.
func verified(d []byte) kind {
	switch n := len(d); {
	case n == 11 && isCPF(d):
		return cpf
	case n == 15 && isCNS(d):
		return cns
	case n == 14 && isCNPJ(d), (n == 14 || n == 17) && timestamp.Match(d):
		return none
	case 13 <= n && n <= 19 && isLuhn(d):
		return card
	}
	return none
}

// isCPF checks 11 digits, and isCNPJ 14, a company's number.
func isCPF(d []byte) bool  { return endsInChecks(d, 11) }
func isCNPJ(d []byte) bool { return endsInChecks(d, 9) }

// endsInChecks reports whether the last two digits of d are its check digits, modulo 11 with weights up to most.
func endsInChecks(d []byte, most int) bool {
	n := len(d) - 2
	return checkDigit(d[:n], most) == d[n] && checkDigit(d[:n+1], most) == d[n+1]
}

// checkDigit returns the check digit of d, modulo 11. The weights go from 2 to most, from the right, over and over.
func checkDigit(d []byte, most int) byte {
	sum := 0
	for i, c := range d {
		sum += int(c-'0') * (2 + (len(d)-1-i)%(most-1))
	}
	return '0' + byte(sum*10%11%10)
}

// isCNS checks 15 digits of a Cartão Nacional de Saúde. A definitive card begins with 1 or 2, a provisional one with 7,
// 8 or 9.
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
		v := int(d[len(d)-1-i]-'0') << (i % 2)
		sum, all = sum+v/10+v%10, all|v
	}
	return all != 0 && sum%10 == 0
}

var (
	nineAndTwo, timestamp = pattern("nineAndTwo"), pattern("timestamp")
	brazilian, ip         = pattern("brazilian"), pattern("ip")
)
