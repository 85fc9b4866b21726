package config

import (
	"cmp"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kelseyhightower/envconfig"

	"retry-worker/internal/text"
)

// Variable is one setting. Also holds its other names.
type Variable struct {
	Group, Name, Default, Meaning string
	Also                          []string
}

// Variables returns all settings, grouped.
func Variables() (all []Variable) {
	group, groups := "", []string(nil)
	for _, env := range []any{&Settings{}, &parts{}} {
		fields(reflect.ValueOf(env).Elem(), func(tag reflect.StructTag, _ any) {
			if group = cmp.Or(tag.Get("group"), group); !slices.Contains(groups, group) { // until the next begins
				groups = append(groups, group)
			}
			name := tag.Get("env")
			if tag.Get("file") == "only" {
				name += "_FILE"
			}
			all = append(all, Variable{group, name, tag.Get("default"), tag.Get("desc"), strings.Fields(tag.Get("also"))})
			if tag.Get("file") == "yes" {
				all = append(all, Variable{Group: group, Name: name + "_FILE", Meaning: "file with " + name})
			}
		})
	}
	slices.SortStableFunc(all, func(a, b Variable) int {
		return slices.Index(groups, a.Group) - slices.Index(groups, b.Group)
	})
	return all
}

// fields calls do with the tag and the address of each field that has a variable, including fields of nested structs.
func fields(v reflect.Value, do func(tag reflect.StructTag, field any)) {
	for f, field := range v.Fields() {
		switch {
		case f.Tag.Get("env") != "":
			do(f.Tag, field.Addr().Interface())
		case f.Type.Kind() == reflect.Struct:
			fields(field, do)
		}
	}
}

// load fills each env from the environment. A setting with several names takes the value of the one that is set;
// different values are a problem.
func (c *checker) load(envs ...any) {
	var settings []reflect.Value
	var all []reflect.StructField
	for _, env := range envs {
		fields(reflect.ValueOf(env).Elem(), func(tag reflect.StructTag, field any) {
			name := c.variable(tag)
			settings = append(settings, reflect.ValueOf(setting{c, name, tag, field}))
			all = append(all, reflect.StructField{
				Name: "Setting" + strconv.Itoa(len(all)), Type: reflect.TypeFor[setting](),
				Tag: reflect.StructTag(fmt.Sprintf("envconfig:%q default:%q", name, tag.Get("default"))),
			})
		})
	}
	env := reflect.New(reflect.StructOf(all))
	for i, s := range settings {
		env.Elem().Field(i).Set(s)
	}
	c.note("", envconfig.Process("", env.Interface()))
}

// setting decodes a field for envconfig. It records a wrong value and goes on, where envconfig would stop at the first.
type setting struct {
	c        *checker
	variable string // that it is read from
	tag      reflect.StructTag
	field    any // a pointer
}

// Decode implements envconfig.Decoder. An empty variable counts as not set.
func (s setting) Decode(value string) error {
	name := s.tag.Get("env")
	if s.variable == name+"_FILE" && value != "" {
		value = s.c.secret(name, value)
	}
	if value = cmp.Or(value, s.tag.Get("default")); value != "" {
		s.c.decode(name, value, s.tag, s.field)
	}
	return nil
}

// variable returns the variable to read a setting from: its own name, another of its names, or that of its file.
func (c *checker) variable(tag reflect.StructTag) string {
	name := tag.Get("env")
	set, value := name, os.Getenv(name)
	for other := range strings.FieldsSeq(tag.Get("also")) {
		switch also := os.Getenv(other); {
		case also == "" || also == value:
		case value != "":
			c.both(set, other)
		default:
			set, value = other, also
			c.names = append(c.names, name, other)
		}
	}
	switch file := name + "_FILE"; {
	case tag.Get("file") == "" || os.Getenv(file) == "":
	case value != "" && value != tag.Get("default"):
		c.both(set, file)
	default:
		return file
	}
	return set
}

// Variables that Kubernetes injects for a Service named like this program or the engine.
var (
	linkName = regexp.MustCompile(`^(RETRY_WORKER|ZEEBE|CAMUNDA)_(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)
	linkPort = regexp.MustCompile(`^(RETRY_WORKER|ZEEBE|CAMUNDA)_(\w+_)?PORT$`) // a mistake unless an address
)

func serviceLink(name, value string) bool {
	return linkName.MatchString(name) || linkPort.MatchString(name) && strings.Contains(value, "://")
}

// unread returns a problem for each set name of ours that nothing reads, and a hint for each of other engine clients.
// It skips those that Kubernetes injects.
func unread() (unknown Problems, hints []string) {
	var known []string
	for _, v := range Variables() {
		known = append(append(known, v.Name), v.Also...)
	}
	slices.Sort(known)
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		ours := strings.HasPrefix(name, "RETRY_WORKER_")
		theirs := strings.HasPrefix(name, "ZEEBE_") || strings.HasPrefix(name, "CAMUNDA_")
		if !ours && !theirs || slices.Contains(known, name) || serviceLink(name, value) {
			continue
		}
		meant := text.Nearest(name, known)
		if meant != "" {
			meant = "did you mean " + meant + "?"
		}
		switch {
		case ours:
			unknown = append(unknown, strings.TrimSuffix(
				name+" is set, expected one of the names that `retry-worker serve --help` lists; "+meant, "; "))
		case value != "":
			hints = append(hints, name+" is set and not read; "+cmp.Or(meant, insteadOf(name)))
		}
	}
	slices.Sort(hints)
	return unknown, hints
}

// insteadOf says what to set instead of a name of another engine client.
func insteadOf(name string) string {
	if name == "ZEEBE_HOST" || strings.Contains(name, "ADDRESS") || strings.Contains(name, "CONTACTPOINT") {
		return "the engine's address is ZEEBE_ADDRESS for gRPC, ZEEBE_REST_ADDRESS for REST"
	}
	return "`retry-worker serve --help` lists what is"
}
