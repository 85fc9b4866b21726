package redact_test

import (
	"math"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"retry-worker/internal/redact"
)

func TestLine(t *testing.T) {
	for _, c := range []struct {
		why, text string
		max       int
		want      string
	}{
		{"as it is", "TIMEOUT - Connection timeout after 30s", 100, "TIMEOUT - Connection timeout after 30s"},
		{"exactly as long", "TIMEOUT", 7, "TIMEOUT"},
		{"one byte too long", "TIMEOUT", 6, "TIM…"},
		{"nothing but the sign", "TIMEOUT", 3, "…"},
		{"not even the sign", "TIMEOUT", 2, ""},
		{"no room", "TIMEOUT", 0, ""},
		{"less than none", "TIMEOUT", -1, ""},
		{"no limit", "a\nb", math.MaxInt, "a b"},
		{"at the end of a character", "ação", 5, "a…"},
		{"line breaks of all kinds", "a\nb\rc\td\ve\ff\u0085g\u2028h\u2029i", 100, "a b c d e f g h i"},
		{"a forged line", "x\r\n{\"level\":\"info\"}", 100, "x  {\"level\":\"info\"}"},
		{"ANSI", "\x1b[31mred\x1b[0m \x1b]0;title\x07 \u009b1m", 100, "\ufffd[31mred\ufffd[0m \ufffd]0;title\ufffd \ufffd1m"},
		{"controls", "a\x00b\x08c\x7fd\u0080e", 100, "a\ufffdb\ufffdc\ufffdd\ufffde"},
		{"bidi", "a\u202eb\u2066c\u2069d\u200fe\u061cf", 100, "a\ufffdb\ufffdc\ufffdd\ufffde\ufffdf"},
		{"no width", "a\u200bb\ufeffc\u2060d\u00ade\U000e0041f", 100, "a\ufffdb\ufffdc\ufffdd\ufffde\ufffdf"},
		{"joiners", "👩\u200d⚕", 100, "👩\u200d⚕"},
		{"no UTF-8", "Jo\xe3o \xff\xc3", 100, "Jo\ufffdo \ufffd\ufffd"},
		{"other scripts", "çãé 日本語 ñ ¡!", 100, "çãé 日本語 ñ ¡!"},
		{"redacted first", "CPF {cpf} inválido", 100, "CPF [CPF] inválido"},
		{"redacted, then cut", "erro: {cpf} inválido", 12, "erro: […"[:6] + "…"},
		{"a mark that just fits", "erro: {cpf} inválido", 14, "erro: [CPF]…"},
		{"hidden digits do not come together", "1234567\x1b[1m80" + cpf[9:], 100, "[CPF]"},
		{"e-mail across the cut", "a: " + strings.Repeat("m", 60) + "@exemplo.com", 20, "a: [E-MAIL]"},
		{"a name across the cut", "paciente Maria da Silva Souza não encontrado", 16, "paciente …"},
		{"an opening bracket", "abc [x] defghij", 9, "abc [x…"},
	} {
		if got := redact.Line(fill(c.text), c.max); got != c.want {
			t.Errorf("%s: Line(%q, %d)\n got  %q\n want %q", c.why, fill(c.text), c.max, got, c.want)
		}
	}
}

// TestNoHalfNumberSurvivesTheCut, wherever it falls.
func TestNoHalfNumberSurvivesTheCut(t *testing.T) {
	text := fill("falha: CPF {bad}, CNS {cns4}, cartão {card-}, tel (11) {mobile}, ana.souza@exemplo.com.br, paciente Maria da Silva")
	for max := range 3 * len(text) {
		line := redact.Line(text, max)
		if strings.ContainsAny(line, "0123456789@") || strings.Contains(line, "ana") || strings.Contains(line, "Mar") {
			t.Errorf("Line(text, %d) is %q", max, line)
		}
	}
}

// TestNoHalfNumberSurvivesTheEndOfWhatIsRead: of a long text only the beginning is read, and what is left of it may be
// short.
func TestNoHalfNumberSurvivesTheEndOfWhatIsRead(t *testing.T) {
	const max, read = 100, 4*100 + 1<<15
	for tail := range 60 {
		text := `senha="` + strings.Repeat("a", read-tail) + `" ` + cpf + " recusado"
		if line := redact.Line(text, max); strings.ContainsAny(line, "0123456789") {
			t.Errorf("%d bytes before the end the line is %q", tail, line)
		}
	}
}

// TestHardTextsTakeLinearTime: what could make a scanner look ahead again and again costs about as much in one text as in 64
// pieces; were it quadratic, 64 times as much. What counts is this thread's CPU, which a busy machine makes dearer by a few times
// only.
func TestHardTextsTakeLinearTime(t *testing.T) {
	const size, times, tooMuch, negligible = 2 << 10, 64, 8, 4 * time.Millisecond
	for _, text := range hard {
		pieces := max(cost(t, repeat(text, size), times), negligible)
		whole := cost(t, repeat(text, times*size), 1)
		for try := 0; try < 2 && whole >= tooMuch*pieces; try++ {
			whole = cost(t, repeat(text, times*size), 1)
		}
		if whole >= tooMuch*pieces {
			t.Errorf("%q: %d times %d bytes cost %v, as many at once %v", text, times, size, pieces, whole)
		}
	}
}

// cost returns the CPU time that redacting text so many times takes.
func cost(t *testing.T, text string, times int) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	spent := func() time.Duration {
		const ofThread = 1 // RUSAGE_THREAD
		var u syscall.Rusage
		if err := syscall.Getrusage(ofThread, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	began := spent()
	for range times {
		redact.Text(text)
	}
	return spent() - began
}

func repeat(s string, size int) string { return strings.Repeat(s, size/len(s)+1)[:size] }
