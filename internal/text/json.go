package text

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Object is a JSON object with its members in order. Those of nested objects stand for these, by dotted paths.
type Object []Member

// Member is a member of an Object: an Object only as an item of a list, otherwise []any, string, json.Number, bool or
// nil.
type Member struct {
	Path  string
	Value any
}

// Get returns the value at a path, or nil.
func (o Object) Get(path string) any {
	for _, m := range o {
		if m.Path == path {
			return m.Value
		}
	}
	return nil
}

// Decode decodes a JSON text. An object with two members of one name is an error: readers differ in which they take.
func Decode(encoded []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(encoded))
	d.UseNumber()
	return decode(d)
}

func decode(d *json.Decoder) (any, error) {
	begin, err := d.Token()
	delim, nested := begin.(json.Delim)
	if err != nil || !nested {
		return begin, err
	}
	o, list, seen := Object{}, []any{}, map[json.Token]bool{}
	for d.More() {
		var name json.Token
		if delim == '{' {
			if name, err = d.Token(); err != nil {
				return nil, err
			}
			if seen[name] {
				return nil, fmt.Errorf("the field %.60q is given twice in one object, expected once", name)
			}
			seen[name] = true
		}
		value, err := decode(d)
		if err != nil {
			return nil, err
		}
		switch below, is := value.(Object); {
		case delim == '[':
			list = append(list, value)
		case !is:
			o = append(o, Member{fmt.Sprint(name), value})
		default:
			for _, m := range below {
				o = append(o, Member{fmt.Sprint(name, ".", m.Path), m.Value})
			}
		}
	}
	if _, err = d.Token(); delim == '{' {
		return o, err
	}
	return list, err
}
