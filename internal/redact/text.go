package redact

import "math"

// Text is s without personal data: a mark that names the kind stands for each datum. See the package
// comment for what is taken and what never is. Text(Text(s)) is Text(s); it is valid UTF-8 if s is; it
// takes time in proportion to len(s) and allocates only where there is something to take.
func Text(s string) string {
	sc := scanner{in: s, stop: math.MaxInt}
	sc.scan()
	return sc.edits.apply(s[:sc.pos])
}
