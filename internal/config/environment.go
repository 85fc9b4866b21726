package config

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // for images without a zone database

	"github.com/kelseyhightower/envconfig"
	"go.uber.org/zap/zapcore"

	"retry-worker/internal/smallfile"
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
			name := variableOf(tag)
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
// different values are a problem. So is a setting without another that its tag names as with.
func (c *checker) load(envs ...any) {
	var settings []setting
	var all []reflect.StructField
	for _, env := range envs {
		fields(reflect.ValueOf(env).Elem(), func(tag reflect.StructTag, field any) {
			name := c.variable(tag)
			settings = append(settings, setting{c, name, tag, field})
			all = append(all, reflect.StructField{
				Name: "Setting" + strconv.Itoa(len(all)), Type: reflect.TypeFor[setting](),
				Tag: reflect.StructTag(fmt.Sprintf("envconfig:%q default:%q", name, tag.Get("default"))),
			})
		})
	}
	env := reflect.New(reflect.StructOf(all))
	for i, s := range settings {
		env.Elem().Field(i).Set(reflect.ValueOf(s))
	}
	c.note("", envconfig.Process("", env.Interface()))
	for _, s := range settings {
		for _, other := range settings {
			name := variableOf(other.tag)
			if os.Getenv(s.variable) != "" && os.Getenv(other.variable) == "" &&
				slices.Contains(strings.Fields(s.tag.Get("with")), name) {
				what, _, _ := strings.Cut(other.tag.Get("desc"), "; ")
				c.problem(name, name+" is missing, expected beside "+variableOf(s.tag)+": "+what)
			}
		}
	}
}

// setting decodes a field for envconfig. It records a wrong value and goes on, where envconfig would stop at the first.
type setting struct {
	c        *checker
	variable string // that it is read from
	tag      reflect.StructTag
	field    any // a pointer
}

// variableOf returns the variable of a setting with that tag: that of a file if only that is read.
func variableOf(tag reflect.StructTag) string {
	if tag.Get("file") == "only" {
		return tag.Get("env") + "_FILE"
	}
	return tag.Get("env")
}

// Decode implements envconfig.Decoder. An empty variable counts as not set.
func (s setting) Decode(value string) error {
	name := s.tag.Get("env")
	if s.variable == name+"_FILE" && value != "" {
		value = s.c.secret(name, value)
	}
	if value = cmp.Or(value, s.tag.Get("default")); value != "" {
		s.c.read(name, value, s.tag, s.field)
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
		injected := linkName.MatchString(name) || linkPort.MatchString(name) && strings.Contains(value, "://")
		if !ours && !theirs || slices.Contains(known, name) || injected {
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

// checker reads settings and collects their problems. Secrets' values never appear in a problem.
type checker struct {
	problems []problem
	names    []string // pairs: a setting, and the name by which it was set
}

// problem is a setting and a line on what is wrong with it.
type problem struct{ setting, line string }

// problem adds a line about a setting, in the names that were used.
func (c *checker) problem(setting, line string) {
	c.problems = append(c.problems, problem{setting, c.said(line)})
}

// said replaces settings' names in a text with those that were used.
func (c *checker) said(text string) string { return strings.NewReplacer(c.names...).Replace(text) }

func (c *checker) add(name, found, expected string) {
	c.problem(name, fmt.Sprintf("%s is %s, expected %s", name, found, expected))
}

// note adds an error of a setting, unless it is nil.
func (c *checker) note(setting string, err error) {
	if err != nil {
		c.problems = append(c.problems, problem{setting, err.Error()})
	}
}

// both reports that two settings contradict each other.
func (c *checker) both(a, b string) {
	c.problems = append(c.problems, problem{a, a + " and " + b + " are both set, expected one of them"})
}

// about returns the problems of settings whose names begin with one of only; all if that is empty.
func (c *checker) about(only []string) (lines Problems) {
	for _, p := range c.problems {
		if len(only) == 0 || slices.ContainsFunc(only, func(of string) bool { return strings.HasPrefix(p.setting, of) }) {
			lines = append(lines, p.line)
		}
	}
	return lines
}

// read parses value into a field by the field's type and tag. The tag's keys: of, the allowed words; from and to, the
// bounds; page, what people open there; as, the form of a text or a duration.
func (c *checker) read(name, value string, tag reflect.StructTag, field any) {
	if page := tag.Get("page"); page != "" {
		c.base(name, value, "https://HOST or https://HOST/PATH, where people open "+page)
		value = strings.TrimRight(value, "/")
	}
	parsed, expected := parse(value, tag, field)
	if expected != "" {
		c.add(name, strconv.Quote(value), expected)
		return
	}
	reflect.ValueOf(field).Elem().Set(reflect.ValueOf(parsed))
}

// parse returns what a field is to hold, or what is expected instead of value.
func parse(value string, tag reflect.StructTag, field any) (parsed any, expected string) {
	valid := true
	switch field.(type) {
	case *int:
		return whole(value, tag)
	case *bool:
		b, err := strconv.ParseBool(value)
		parsed, valid, expected = b, err == nil, "true or false"
	case *time.Duration:
		return duration(value, tag)
	case *[]string:
		parsed, valid = list(value)
		expected = "names separated by single commas"
	case *[]netip.Prefix:
		parsed, valid = networks(value)
		expected = "networks such as 10.0.8.0/24, or addresses such as 10.0.8.7"
	case **time.Location:
		zone, err := time.LoadLocation(value)
		parsed, valid, expected = zone, err == nil && !strings.EqualFold(value, "local"), "a time zone such as America/Sao_Paulo"
	case *zapcore.Level:
		level, err := zapcore.ParseLevel(value)
		parsed, valid = level, err == nil
	case *string:
		parsed, valid = value, tag.Get("as") != "address" || isAddress(value)
		expected = "host:port, such as " + tag.Get("default")
	}
	if of := strings.Fields(tag.Get("of")); len(of) > 0 {
		valid, expected = slices.Contains(of, value), text.Or(of...)
	}
	if valid {
		expected = ""
	}
	return parsed, expected
}

// whole returns a whole number within the tag's bounds.
func whole(value string, tag reflect.StructTag) (n int, expected string) {
	n, err := strconv.Atoi(value)
	least, _ := strconv.Atoi(tag.Get("from"))
	most, _ := strconv.Atoi(tag.Get("to"))
	if err != nil || n < least || n > most {
		expected = fmt.Sprintf("a whole number from %d to %d", least, most)
	}
	return n, expected
}

// duration returns a duration in the form that the tag names: milliseconds, a retention, or the usual one.
func duration(value string, tag reflect.StructTag) (d time.Duration, expected string) {
	switch tag.Get("as") {
	case "milliseconds":
		n, expected := whole(value, tag)
		return time.Duration(n) * time.Millisecond, expected
	case "retention":
		return retention(value)
	}
	d, err := time.ParseDuration(value)
	least, _ := time.ParseDuration(tag.Get("from"))
	most, _ := time.ParseDuration(tag.Get("to"))
	if err != nil || d < least || d > most {
		expected = fmt.Sprintf("a duration from %s to %s, such as 10s", tag.Get("from"), tag.Get("to"))
	}
	return d, expected
}

var retentionForm = regexp.MustCompile(`^([1-9]\d{0,5})([ydh])$`)

// retention returns a number of years, days or hours, at most 200 years, which a time.Duration can hold. A year counts
// as 366 days, so that no record goes too early.
func retention(value string) (d time.Duration, expected string) {
	unit := map[string]time.Duration{"y": 366 * 24 * time.Hour, "d": 24 * time.Hour, "h": time.Hour}
	parts := retentionForm.FindStringSubmatch(value)
	if parts == nil {
		return 0, "years, days or hours, such as 5y, 90d or 48h"
	}
	n, _ := strconv.Atoi(parts[1]) // its form is checked
	if time.Duration(n) > 200*unit["y"]/unit[parts[2]] {
		return 0, "at most 200 years"
	}
	return time.Duration(n) * unit[parts[2]], ""
}

// list splits a text at commas. No item may be empty.
func list(value string) (items []string, valid bool) {
	for item := range strings.SplitSeq(value, ",") {
		items = append(items, strings.TrimSpace(item))
	}
	return items, !slices.Contains(items, "")
}

func networks(value string) (all []netip.Prefix, valid bool) {
	items, valid := list(value)
	for _, item := range items {
		p, ok := network(item)
		all, valid = append(all, p), valid && ok
	}
	return all, valid
}

// network parses a network; an address is a network of its own.
func network(text string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Masked(), true
	}
	a, err := netip.ParseAddr(strings.Trim(text, "[]"))
	a = a.Unmap().WithZone("")
	return netip.PrefixFrom(a, a.BitLen()), err == nil
}

func isAddress(value string) bool {
	_, port, err := net.SplitHostPort(value)
	_, wrong := strconv.ParseUint(port, 10, 16)
	return err == nil && wrong == nil
}

// base checks a URL that is shown, and that paths are put behind.
func (c *checker) base(name, value, expected string) {
	u := c.url(name, value, expected, "https", "http")
	if u != nil && (u.User != nil || strings.ContainsAny(value, "?#")) {
		c.add(name, "a URL with user, query or fragment", expected)
	}
}

var schemeForm = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]{0,15})://`)

// url returns a URL, or nil if value is invalid. Its problem shows only the scheme, since the rest may hold a secret.
func (c *checker) url(name, value, expected string, schemes ...string) *url.URL {
	scheme := schemeForm.FindStringSubmatch(value)
	u, err := url.Parse(value)
	switch {
	case scheme == nil:
		c.add(name, "no URL", expected)
	case !slices.Contains(schemes, strings.ToLower(scheme[1])):
		c.add(name, "a URL that begins with "+scheme[0], expected)
	case err != nil || u.Hostname() == "":
		c.add(name, "a URL that begins with "+scheme[0]+" and has no readable host", expected)
	default:
		return u
	}
	return nil
}

// authorities checks a file of certificates to trust.
func (c *checker) authorities(name, path string) {
	_, err := smallfile.Authorities(c.said(name), path)
	c.note(name, err)
}

// maxSecretBytes is the longest file of a secret.
const maxSecretBytes = 64 << 10

// secret returns the secret in a file, without surrounding white space. Docker and Kubernetes provide secrets as files;
// variables are visible to whoever may inspect the process.
func (c *checker) secret(name, path string) string {
	content, err := smallfile.ReadSecret(path, maxSecretBytes)
	text := strings.TrimSpace(string(content))
	switch {
	case err != nil:
		c.add(name+"_FILE", strconv.Quote(path), "a readable file with the value of "+name+" ("+err.Error()+")")
		return ""
	case text == "":
		c.add(name+"_FILE", strconv.Quote(path), "a file with the value of "+name+"; it is empty")
	}
	return text
}
