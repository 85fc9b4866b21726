package decision

// Texts are mostly letters. What looks for something rarer in them looks at eight bytes at a time, as one number.

const (
	ones  uint64 = 0x0101010101010101
	highs uint64 = 0x80 * ones
)

// eight are the first eight bytes of s.
func eight(s string) uint64 {
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// holdMark tells whether one of eight bytes is a control character, a quote or a backslash: ASCII from whose like a
// subtraction borrows the highest bit.
func holdMark(bytes uint64) bool {
	control, quote, backslash := bytes-' '*ones, bytes^'"'*ones-ones, bytes^'\\'*ones-ones
	return (control|quote|backslash)&^bytes&highs != 0
}

// holdDigit tells whether one of eight bytes is a digit: ASCII that carries into its highest bit with 0x80−'0' added,
// but not with 0x80−'9'−1.
func holdDigit(bytes uint64) bool {
	low := bytes &^ highs
	return (low+(0x80-'0')*ones)&^(low+(0x80-'9'-1)*ones)&^bytes&highs != 0
}
