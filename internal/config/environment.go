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

// Variable is one setting. Also are other names of it.
type Variable struct {
	Group, Name, Default, Meaning string
	Also                          []string
}

// Variables returns all settings, those of a group together.
func Variables() (all []Variable) {
	group, groups := "", []string(nil)
	for _, env := range []any{&Settings{}, &parts{}} {
		fields(reflect.ValueOf(env).Elem(), func(tag reflect.StructTag, _ any) {
			if group = cmp.Or(tag.Get("group"), group); !slices.Contains(groups, group) { // it goes on until the next begins
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

// fields calls do for each field that is read from a variable, those of structs within v among them, with its tag and
// its address.
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

// load fills each env from the environment. A setting with several names takes the value of the one that is set; two
// that say something else are a problem.
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

// setting decodes a field for envconfig. It notes a wrong value and goes on, where envconfig would stop at the first.
type setting struct {
	c        *checker
	variable string // read for it
	tag      reflect.StructTag
	field    any // its address
}

// Decode implements envconfig.Decoder. A variable that is set but empty counts as not set.
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

// variable returns the name of the variable that a setting is read from: its own, another one of it, or that of its
// file.
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

// What Kubernetes injects for a Service named retry-worker, retry-worker-and-more, or as the engine is.
var (
	linkName = regexp.MustCompile(`^(RETRY_WORKER|ZEEBE|CAMUNDA)_(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)
	linkPort = regexp.MustCompile(`^(RETRY_WORKER|ZEEBE|CAMUNDA)_(\w+_)?PORT$`) // a mistake, unless its value is a link's
)

func serviceLink(name, value string) bool {
	return linkName.MatchString(name) || linkPort.MatchString(name) && strings.Contains(value, "://")
}

// unread returns the names with one of the prefixes that are set and that nothing reads, each with the one that may be
// meant, but for those that Kubernetes injects for a Service.
func unread(prefixes ...string) map[string]string {
	var known []string
	for _, v := range Variables() {
		known = append(append(known, v.Name), v.Also...)
	}
	slices.Sort(known)
	meant := make(map[string]string)
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		ours := slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		if ours && !slices.Contains(known, name) && !serviceLink(name, value) {
			meant[name] = text.Nearest(name, known)
		}
	}
	return meant
}

// unknown refuses names of ours that nothing reads.
func unknown() (all Problems) {
	for name, near := range unread("RETRY_WORKER_") {
		line := name + " is set, expected one of the names that `retry-worker serve --help` lists"
		if near != "" {
			line += "; did you mean " + near + "?"
		}
		all = append(all, line)
	}
	return all
}

// hints tell of names of other clients of the engine that are set and that nobody reads, and what to set instead.
func hints() (all []string) {
	for name, near := range unread("ZEEBE_", "CAMUNDA_") {
		instead := "`retry-worker serve --help` lists what is"
		switch {
		case os.Getenv(name) == "":
			continue
		case near != "":
			instead = "did you mean " + near + "?"
		case name == "ZEEBE_HOST", strings.Contains(name, "ADDRESS"), strings.Contains(name, "CONTACTPOINT"):
			instead = "the engine's address is ZEEBE_ADDRESS for gRPC, ZEEBE_REST_ADDRESS for REST"
		}
		all = append(all, name+" is set and not read; "+instead)
	}
	slices.Sort(all)
	return all
}
