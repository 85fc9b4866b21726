package redact_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"retry-worker/internal/redact"
	"retry-worker/internal/testkit/seeded"
)

// datum is somebody's number or address as it was written, and its digits or local part, none of which
// may be left.
type datum struct{ written, secret string }

func digits(n int) *rapid.Generator[string] {
	return rapid.StringMatching(fmt.Sprintf(`[0-9]{%d}`, n))
}

var unseen = rapid.SampledFrom([]string{"\u200b", "\u200d", "\ufeff", "\u2060", "\u00ad", "\u202e", "\u0301", "\x1b[31m", "\x00"})

var zeros = rapid.SampledFrom([]rune{'0', '０', '٠', '०', '𝟎', '𝟬'})

// disguised writes digits in another script or with characters between them that nobody sees.
func disguised(t *rapid.T, written string) string {
	zero := zeros.Draw(t, "zero")
	hidden := ""
	if rapid.Bool().Draw(t, "hidden") {
		hidden = unseen.Draw(t, "unseen")
	}
	var b strings.Builder
	for i, r := range written {
		if i > 0 && '0' <= r && r <= '9' {
			b.WriteString(hidden)
		}
		if '0' <= r && r <= '9' {
			r += zero - '0'
		}
		b.WriteRune(r)
	}
	return b.String()
}

var gaps = rapid.SampledFrom([]string{".", "-", " ", "/", "_", "\u00a0", "\u2009", "\u2011", "–", " - ", ". ", "%20", "&nbsp;", `\u00a0`})

var cpfs = rapid.Custom(func(t *rapid.T) datum {
	d := cpfOf(digits(9).Draw(t, "nine"))
	g := gaps.Draw(t, "gap")
	forms := []string{
		d, punctuated(d), punctuated(wrong(d)), cut(d, []int{9, 2}, "-"), cut(d, []int{3, 3, 3, 2}, g), cut(wrong(d), []int{3, 3, 3, 2}, g, g, "-"),
		cut(d, []int{6, 5}, g), cut(d, []int{3, 3, 5}, "."), cut(d, []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, " "),
		disguised(t, d), disguised(t, punctuated(d)),
	}
	return datum{rapid.SampledFrom(forms).Draw(t, "CPF"), d[:9]}
}).Filter(func(d datum) bool { return net.ParseIP(d.written) == nil })

var cnss = rapid.Custom(func(t *rapid.T) datum {
	d := cnsOf(rapid.StringMatching(`[12789][0-9]{12}`).Draw(t, "thirteen"))
	forms := []string{d, cut(d, []int{3, 4, 4, 4}, gaps.Draw(t, "gap")), cut(wrong(d), []int{3, 4, 4, 4}, " "), disguised(t, d)}
	return datum{rapid.SampledFrom(forms).Draw(t, "CNS"), d[:14]}
})

var cards = rapid.Custom(func(t *rapid.T) datum {
	d := luhnOf(rapid.StringMatching(`[3-6][0-9]{11,17}`).Draw(t, "card"))
	g := rapid.SampledFrom([]string{" ", "-", "\u00a0", "\u2011"}).Draw(t, "gap")
	fours := make([]int, 0, 5)
	for left := len(d); left > 0; left -= 4 {
		fours = append(fours, min(4, left))
	}
	return datum{rapid.SampledFrom([]string{d, cut(d, fours, g), disguised(t, d)}).Draw(t, "written"), d}
}).Filter(func(d datum) bool { return len(d.secret) != 14 || cnpjOf(d.secret[:12]) != d.secret })

var phones = rapid.Custom(func(t *rapid.T) datum {
	area := rapid.SampledFrom([]string{"11", "21", "31", "48", "51", "61", "71", "85", "99"}).Draw(t, "area")
	n := "9" + digits(8).Draw(t, "number")
	parted := n[:5] + "-" + n[5:]
	forms := []string{
		"+55 " + area + " " + parted, "+55" + area + n, "+55 (" + area + ") " + parted, "(" + area + ") " + parted, "(" + area + ")" + n,
		area + " " + parted, area + "-" + parted, area + " " + n, area + n, "55" + area + n, "0" + area + n, parted,
		"tel:+55-" + area + "-" + parted, "telefone " + n, "+1 " + n[:3] + " " + n[3:6] + " " + n[5:], "%2B55" + area + n,
		disguised(t, "("+area+") "+parted),
	}
	return datum{rapid.SampledFrom(forms).Draw(t, "phone"), n[1:8]}
})

var mails = rapid.Custom(func(t *rapid.T) datum {
	local := rapid.StringMatching(`[a-zA-Z][a-zA-Z0-9]{2,8}([._+-][a-zA-Z0-9]{3,6})?`).Draw(t, "local")
	domain := rapid.StringMatching(`[a-zA-Z][a-zA-Z0-9-]{0,6}[a-z0-9](\.[a-z]{2,6}){1,2}`).Draw(t, "domain")
	sign := rapid.SampledFrom([]string{"@", "%40", "&#64;", `\u0040`, "＠"}).Draw(t, "sign")
	return datum{local + sign + domain, local + sign}
})

// around is any text that neither goes on the datum nor makes it one of the kinds that stay.
var around = rapid.Custom(func(t *rapid.T) string {
	words := rapid.SampledFrom([]string{"erro", " ", "HTTP 503", "CPF", "paciente ", "\"", "':", "<x>", "{", ", ", "TIMEOUT", "carteira", "R. ", "não", "\n", "(", ")", "=", "&", "%22", `\"`, "Maria", "5001", "10.0.0.1 ", "2025-01-12 "})
	parts := rapid.SliceOfN(rapid.OneOf(words, words, rapid.StringN(0, 6, -1)), 0, 8).Draw(t, "parts")
	return strings.Join(parts, "")
}).Filter(func(s string) bool { return !strings.ContainsAny(s, "$＄@[") && !strings.Contains(s, "//") })

// before ends, and after begins, with what is no part of a number, address or word.
func before(t *rapid.T) string {
	s := around.Draw(t, "before")
	return s + rapid.SampledFrom([]string{" ", "\n", `"`, "'", ":", "=", ">", "; ", "CPF ", "é ", `\"`, "&quot;", "%22", "x "}).Draw(t, "left")
}

func after(t *rapid.T) string {
	right := rapid.SampledFrom([]string{" ", "\n", `"`, "'", ",", ";", "<", ")", ". ", `\"`, "&quot;", "%22", " x", "?"}).Draw(t, "right")
	return right + strings.TrimLeftFunc(around.Draw(t, "after"), func(r rune) bool { return !unicode.IsLetter(r) })
}

// seen is what is left of a text for somebody who looks for digits or an address.
func seen(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '@', r == '%', r == '&', r == '#', r == '\\', r == '＠':
			return r
		}
		return -1
	}, s)
}

// TestNoDatumIsLeft: whatever stands around a datum in any of its written forms, it is gone; between words nothing but
// its placeholder is left.
func TestNoDatumIsLeft(t *testing.T) {
	for mark, data := range map[string]*rapid.Generator[datum]{"[CPF]": cpfs, "[CNS]": cnss, "[CARD]": cards, "[PHONE]": phones, "[E-MAIL]": mails} {
		t.Run(mark, func(t *testing.T) {
			seeded.Check(t, func(t *rapid.T) {
				d := data.Draw(t, "datum")
				text := before(t) + d.written + after(t)
				got := redact.Text(text)
				if strings.Contains(got, d.written) || strings.Contains(seen(got), seen(d.secret)) {
					t.Fatalf("%q is left\n of  %q\n got %q", d.secret, text, got)
				}
				if line := redact.Line(text, rapid.IntRange(0, 2*len(text)).Draw(t, "max")); strings.Contains(seen(line), seen(d.secret)) {
					t.Fatalf("%q is left in the line %q", d.secret, line)
				}
				alone := redact.Text("erro: " + d.written + " recusado")
				if mark != "[PHONE]" && alone != "erro: "+mark+" recusado" { // a telephone number's sign or label may stay
					t.Fatalf("%q became %q", d.written, alone)
				}
			})
		})
	}
}

// TestNamesAreTaken: a name behind any label and sign is gone.
func TestNamesAreTaken(t *testing.T) {
	words := rapid.SampledFrom([]string{"Maria", "JOSÉ", "João", "Conceição", "D'Ávila", "Costa-Lima", "Souza", "Nuñes", "Jo\u00e3o", "SILVA", "Ana"})
	labels := rapid.SampledFrom([]string{
		"nome: ", "nome=", "paciente ", "Paciente: ", "beneficiário ", "nomeBeneficiario=", "<ans:nomeBeneficiario>", `"nomePaciente":"`,
		`\"nome\":\"`, "&quot;nome&quot;:&quot;", "NOME DO PACIENTE: ", "Sra. ", "nome_titular: '", "patientName%22%3A%22", "CPF do beneficiário ",
	})
	ends := rapid.SampledFrom([]string{"", " não encontrado", `"`, "</ans:nomeBeneficiario>", ", CPF inválido", "; x", " - carteira 1", "&quot;", `\"`, "\n"})
	seeded.Check(t, func(t *rapid.T) {
		name := strings.Join(rapid.SliceOfN(words, 1, 5).Draw(t, "name"), rapid.SampledFrom([]string{" ", " da ", " e ", "  "}).Draw(t, "joint"))
		label, end := labels.Draw(t, "label"), ends.Draw(t, "end")
		if got := redact.Text(label + name + end); got != label+"[NAME]"+end {
			t.Fatalf("%q became %q", label+name+end, got)
		}
	})
}

// TestIdentifiersSurvive: claim ids and protocol numbers stay, whatever their digits are.
func TestIdentifiersSurvive(t *testing.T) {
	numbers := rapid.OneOf(
		rapid.StringMatching(`[0-9]{1,25}`), rapid.Map(digits(9), cpfOf), rapid.Map(rapid.StringMatching(`[12789][0-9]{12}`), cnsOf),
		rapid.Map(digits(15), luhnOf), rapid.StringMatching(`55119[0-9]{8}`),
	)
	claims := rapid.Custom(func(t *rapid.T) string {
		return "CLM-" + rapid.StringMatching(`([A-Z0-9]{1,6}-){0,3}`).Draw(t, "unit") + numbers.Draw(t, "number")
	})
	labels := rapid.SampledFrom([]string{
		"protocolo ", "Protocolo: ", "protocolo nº ", "número do protocolo: ", "PROTOCOLO Nº ", "protocol ", "protocol number ", "guia ", "Guia nº ",
		"lote ", "lote=", "NSU ", "NSU: ", `"protocolo":"`, `\"numeroProtocolo\":\"`, "<ans:numeroLote>", "&lt;protocolo&gt;", "protocolo%3D", "Protocolo já utilizado: ",
	})
	protocols := rapid.Custom(func(t *rapid.T) string { return labels.Draw(t, "label") + numbers.Draw(t, "number") })
	others := rapid.OneOf(
		rapid.Custom(func(t *rapid.T) string { // a UUID
			return rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`).Draw(t, "UUID")
		}),
		rapid.StringMatching(`[0-9a-f]{31}[a-f]`), rapid.StringMatching(`20[0-9]{2}-(0[1-9]|1[0-2])-[012][1-8]T[01][0-9]:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?Z`),
		rapid.StringMatching(`R\$ ?[0-9]{1,12},[0-9]{2}`), rapid.StringMatching(`(1[0-9]{2}|[1-9]?[0-9])(\.(1[0-9]{2}|[1-9]?[0-9])){3}:[0-9]{2,5}`),
		rapid.Map(digits(12), func(s string) string { return cut(cnpjOf(s), []int{2, 3, 3, 4, 2}, ".", ".", "/", "-") }),
	)
	around := rapid.SampledFrom([]string{"", " ", " x ", `"`, "'", ", erro 503 ", "\n", "(", ")", " CPF inválido; "})
	seeded.Check(t, func(t *rapid.T) {
		text := around.Draw(t, "before") + rapid.OneOf(claims, protocols, others).Draw(t, "identifier") + around.Draw(t, "after")
		if got := redact.Text(text); got != text {
			t.Fatalf("%q became %q", text, got)
		}
	})
}

// TestTextIsIdempotent, over texts made of all that means something to it.
func TestTextIsIdempotent(t *testing.T) {
	pieces := rapid.SampledFrom(fragments)
	seeded.Check(t, func(t *rapid.T) {
		holds(t, strings.Join(rapid.SliceOfN(pieces, 1, 30).Draw(t, "text"), ""))
		holds(t, rapid.String().Draw(t, "any text"))
		holds(t, string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")))
	})
}

type fataler interface{ Fatalf(string, ...any) }

// holds checks what is true of every text.
func holds(t fataler, s string) {
	got := redact.Text(s)
	if again := redact.Text(got); again != got {
		t.Fatalf("not idempotent\n text  %q\n once  %q\n twice %q", s, got, again)
	}
	if utf8.ValidString(s) && !utf8.ValidString(got) {
		t.Fatalf("%q became %q, which is no UTF-8", s, got)
	}
	for _, max := range [...]int{-1, 0, 2, 3, 17, len(s) / 2, len(s) + 20, 3*len(s) + 20} {
		line := redact.Line(s, max)
		whole := redact.Line(s, 3*len(s)+20)
		if len(line) > max && line != "" || !utf8.ValidString(line) || strings.ContainsFunc(line, unicode.IsControl) {
			t.Fatalf("the line of %q in %d bytes is %q", s, max, line)
		}
		if cut, isCut := strings.CutSuffix(line, "…"); !strings.HasPrefix(whole, line) && !(isCut && strings.HasPrefix(whole, cut)) {
			t.Fatalf("the line of %q in %d bytes is %q, not a beginning of %q", s, max, line, whole)
		}
	}
}
