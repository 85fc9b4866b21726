package bpmn

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// deepest is the deepest nesting of elements.
const deepest = 100

// node is an XML element.
type node struct {
	xml.Name
	attributes []xml.Attr
	children   []*node
	text       strings.Builder
}

func (n *node) attribute(name string) string {
	for _, a := range n.attributes {
		if a.Name.Space == "" && a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// all returns the children in a name space with one of the names.
func (n *node) all(space string, names ...string) (found []*node) {
	for _, c := range n.children {
		if c.Space == space && slices.Contains(names, c.Local) {
			found = append(found, c)
		}
	}
	return found
}

func parseXML(content []byte) (*node, error) {
	d := xml.NewDecoder(bytes.NewReader(content))
	top := &node{}
	for stack := []*node{top}; ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("it is no XML: %w", err)
		}
		parent := stack[len(stack)-1]
		switch t := token.(type) {
		case xml.StartElement:
			if len(stack) > deepest {
				return nil, fmt.Errorf("its elements are nested more than %d deep", deepest)
			}
			n := &node{Name: t.Name, attributes: slices.Clone(t.Attr)}
			parent.children = append(parent.children, n)
			stack = append(stack, n)
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		case xml.CharData:
			parent.text.Write(t)
		}
	}
	if len(top.children) != 1 || top.children[0].Space != bpmnSpace || top.children[0].Local != "definitions" {
		return nil, errors.New("it is no BPMN 2.0: <definitions> is expected as its outermost element")
	}
	return top.children[0], nil
}
