package redact_test

import (
	"fmt"
	"strings"
)

// Numbers that nobody has on purpose: made from arbitrary digits by computing the check digits here, in
// another way than the package does.

// cpfOf is nine digits and the two check digits of a CPF.
func cpfOf(nine string) string {
	ten := nine + mod11(nine, 10)
	return ten + mod11(ten, 11)
}

// mod11 is the check digit of a CPF or CNPJ where the weights fall from first, and go from 2 to 9 again.
func mod11(digits string, first int) string {
	sum, weight := 0, first
	for _, c := range digits {
		sum += int(c-'0') * weight
		if weight--; weight == 1 {
			weight = 9
		}
	}
	rest := 11 - sum%11
	if rest > 9 {
		rest = 0
	}
	return fmt.Sprint(rest)
}

// cnpjOf is twelve digits and the two check digits of a CNPJ.
func cnpjOf(twelve string) string {
	d := twelve + mod11(twelve, 5)
	return d + mod11(d, 6)
}

// cnsOf is thirteen digits and the two that make it a CNS.
func cnsOf(thirteen string) string {
	for last := range 100 {
		d := fmt.Sprintf("%s%02d", thirteen, last)
		sum := 0
		for i, c := range d {
			sum += int(c-'0') * (15 - i)
		}
		if sum%11 == 0 {
			return d
		}
	}
	panic("two digits reach every remainder of 11")
}

// luhnOf is digits and the check digit of a payment card.
func luhnOf(digits string) string {
	for last := range 10 {
		d := digits + fmt.Sprint(last)
		sum := 0
		for i := len(d) - 1; i >= 0; i -= 2 {
			sum += int(d[i] - '0')
			if i > 0 {
				double := 2 * int(d[i-1]-'0')
				sum += double/10 + double%10
			}
		}
		if sum%10 == 0 {
			return d
		}
	}
	panic("one digit reaches every remainder of 10")
}

// wrong is digits with another last one.
func wrong(digits string) string {
	last := digits[len(digits)-1]
	return digits[:len(digits)-1] + string('0'+(last-'0'+1)%10)
}

// cut writes digits in groups of such lengths with the separators between them, the last one repeated.
func cut(digits string, lengths []int, separators ...string) string {
	var b strings.Builder
	for i, n := range lengths {
		if i > 0 {
			b.WriteString(separators[min(i-1, len(separators)-1)])
		}
		b.WriteString(digits[:n])
		digits = digits[n:]
	}
	return b.String() + digits
}

func punctuated(cpf string) string { return cut(cpf, []int{3, 3, 3, 2}, ".", ".", "-") }

// beforeDate is two numbers and a date that would be a card's 14 digits up to the date's month.
var beforeDate = func() string {
	for i := 1000; ; i++ {
		if d := fmt.Sprintf("4000%d20250", i); luhnOf(d) == d+"1" {
			return fmt.Sprintf("4000 %d 2025-01-12", i)
		}
	}
}()

// luhnCNPJ is a CNPJ, and luhnInstant a date and time, that pass as a card's digits.
var luhnCNPJ, luhnInstant = first("12345678%04d", cnpjOf), first("2025011210%04d", func(s string) string { return s })

// first is the first number made from a format with four digits, below 60 each two, that passes Luhn.
func first(format string, of func(string) string) string {
	for i := 0; ; i++ {
		if d := of(fmt.Sprintf(format, i/60*100+i%60)); luhnOf(d[:13]) == d {
			return d
		}
	}
}

var (
	cpf      = cpfOf("123456780")
	otherCPF = cpfOf("987654320")
	badCPF   = wrong(cpf)
	cns      = cnsOf("7001234567890")
	badCNS   = wrong(cns)
	visa     = luhnOf("400012345678901")
	amex     = luhnOf("34001234567890")
	badCard  = wrong(visa)
	cnpj     = cnpjOf("123456780001")
	landLine = "3234-5678"
	mobile   = "91234-5678"
	zeebeKey = luhnOf("225179981368526")
	protocol = cpfOf("202501120")
	// Nobody's: made up for these tests.
	webToken  = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJvcGVyYWRvcmEifQ.c2lnbmF0dXJlLW9mLW5vYm9keQ"
	basicAuth = "cG9ydGFsOm5pbmd1ZW0="
)

// fill puts the numbers above in the places that name them.
var fill = strings.NewReplacer(
	"{cpf}", cpf, "{cpf.}", punctuated(cpf), "{cpf2}", otherCPF, "{cpf2.}", punctuated(otherCPF),
	"{bad}", badCPF, "{bad.}", punctuated(badCPF), "{bad-}", cut(badCPF, []int{9, 2}, "-"),
	"{cns}", cns, "{cns4}", cut(cns, []int{3, 4, 4, 4}, " "), "{badcns}", badCNS, "{badcns4}", cut(badCNS, []int{3, 4, 4, 4}, " "),
	"{card}", visa, "{card4}", cut(visa, []int{4, 4, 4, 4}, " "), "{card-}", cut(visa, []int{4, 4, 4, 4}, "-"),
	"{amex}", amex, "{amex3}", cut(amex, []int{4, 6, 5}, " "), "{badcard}", badCard, "{badcard4}", cut(badCard, []int{4, 4, 4, 4}, " "),
	"{cnpj}", cnpj, "{cnpj.}", cut(cnpj, []int{2, 3, 3, 4, 2}, ".", ".", "/", "-"),
	"{mobile}", mobile, "{land}", landLine, "{key}", zeebeKey, "{prot}", protocol,
	"{cpf3}", cpfOf("223456789"), "{cns.}", cut(cns, []int{3, 4, 4, 4}, "."), "{cns11}", cut(cns, []int{11, 4}, " "), "{cns3}", cut(cns, []int{3, 12}, "-"),
	"{card13}", luhnOf("400012345678"), "{card19}", luhnOf("600012345678901234"), "{card~}", cut(visa, []int{4, 4, 4, 4}, "\u00a0", "\u2011"),
	"{cardcnpj}", luhnCNPJ, "{instant}", luhnInstant, "{millis}", luhnOf("173667840012"), "{cards before a date}", beforeDate,
	"{uuid}", "12345678-"+cut(luhnOf("400012345678901"), []int{4, 4, 4, 4}, "-")+"12345678", "{uuid2}", cpfOf("503123456")[3:]+"-0000-0000-0000-000000000000",
	"{web}", webToken, "{basic}", basicAuth, "{900}", strings.Repeat("Ab1", 300),
).Replace
