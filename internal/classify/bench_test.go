package classify_test

import (
	"strings"
	"testing"
)

// stackTrace is about 2 kB that no rule knows.
var stackTrace = "java.lang.IllegalStateException: guia 1\n" +
	strings.Repeat("\tat br.com.hospital.faturamento.EnvioDeLote.executar(EnvioDeLote.java:118)\n", 27)

// The whole of the built-in catalogue on a short message and on 2 kB.
func BenchmarkShort(b *testing.B)      { benchmark(b, "CPF incorreto. Verifique e tente novamente.") }
func BenchmarkStackTrace(b *testing.B) { benchmark(b, stackTrace) }

func benchmark(b *testing.B, message string) {
	c := shipped()
	b.ReportAllocs()
	b.SetBytes(int64(len(message)))
	for b.Loop() {
		c.Classify(message, 0)
	}
}
