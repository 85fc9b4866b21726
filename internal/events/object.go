package events

import (
	"strconv"
	"unicode/utf8"

	"retry-worker/internal/journal"
)

// object is a JSON object in the making. Publisher stands on the way of every decision, inside its transaction:
// encoding/json takes three times as long.
type object []byte

// name begins a member.
func (o object) name(name string) object {
	if last := o[len(o)-1]; last != '{' {
		o = append(o, ',')
	}
	o = append(o, '"')
	o = append(o, name...)
	return append(o, '"', ':')
}

func (o object) text(name, value string) object { return object(appendQuoted(o.name(name), value)) }

// textOrNull shows what is empty as null.
func (o object) textOrNull(name, value string) object {
	if value == "" {
		return append(o.name(name), "null"...)
	}
	return o.text(name, value)
}

func (o object) number(name string, n int64) object { return strconv.AppendInt(o.name(name), n, 10) }

// key of the engine is a text: a number would lose its last digits in JavaScript.
func (o object) key(name string, n int64) object {
	return append(strconv.AppendInt(append(o.name(name), '"'), n, 10), '"')
}

func (o object) boolean(name string, b bool) object { return strconv.AppendBool(o.name(name), b) }

// raw is a value that is JSON already.
func (o object) raw(name string, value []byte) object { return append(o.name(name), value...) }

func (o object) digest(name string, d journal.Digest) object {
	o = append(o.name(name), '"')
	for _, b := range d {
		o = append(o, hexDigits[b>>4], hexDigits[b&15])
	}
	return append(o, '"')
}

const hexDigits = "0123456789abcdef"

// appendQuoted appends s as a JSON string; what is no UTF-8 becomes U+FFFD.
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			if r, size := utf8.DecodeRuneInString(s[i:]); r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
		} else if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[start:i]...)
		switch {
		case c >= utf8.RuneSelf:
			b = append(b, "\uFFFD"...)
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}
