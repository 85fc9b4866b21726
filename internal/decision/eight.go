package decision

import "encoding/binary"

// Texts are mostly letters. What looks for something rarer in them looks at eight bytes at a time, as one number.

const (
	ones  uint64 = 0x0101010101010101
	highs uint64 = 0x80 * ones
)

// eight are the first eight bytes of s.
func eight(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// marksIn has the highest bit of the first of eight bytes that is a control character, a quote or a backslash, ASCII from
// whose like a subtraction borrows that bit; behind it nothing is sure, as the borrowing goes on.
func marksIn(bytes uint64) uint64 {
	control, quote, backslash := bytes-' '*ones, bytes^'"'*ones-ones, bytes^'\\'*ones-ones
	return (control | quote | backslash) &^ bytes & highs
}

// latinIn tells whether eight bytes are ASCII and letters of Latin-1 in UTF-8: 0xc2 or 0xc3 and one more byte. open is not
// 0 where the first byte goes on with a letter, next where a ninth would.
func latinIn(bytes, open uint64) (next uint64, ok bool) {
	others := (bytes &^ ones) ^ 0xc2*ones // 0 for those two, never 1, which a subtraction would carry on to
	leads := (others - ones) &^ others & highs
	continued := bytes &^ (bytes << 1) & highs
	return leads >> 63, leads|continued == bytes&highs && continued == leads<<8|open<<7
}

// digitsIn has the highest bit of each of eight bytes that is a digit: ASCII that carries into its highest bit with
// 0x80−'0' added, but not with 0x80−'9'−1.
func digitsIn(bytes uint64) uint64 {
	low := bytes &^ highs
	return (low + (0x80-'0')*ones) &^ (low + (0x80-'9'-1)*ones) &^ bytes & highs
}

// gapsIn has the highest bit of each of eight bytes of a folded or normal text that is a gap: no byte of one is 1 off a
// gap, to which a subtraction would carry on.
func gapsIn(bytes uint64) uint64 {
	others := bytes ^ '_'*ones
	return (others - ones) &^ others & highs
}

// gapsAmong has a bit for each of the first 64 bytes of such a text: those that are gaps.
func gapsAmong(text []byte) (gaps uint64) {
	const gather = 0x0102040810204080 // multiplies the lowest bit of byte i to bit 56+i
	for i := 0; i < 64; i += 8 {
		gaps |= gapsIn(binary.LittleEndian.Uint64(text[i:])) >> 7 * gather >> 56 << i
	}
	return gaps
}
