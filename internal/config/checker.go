package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // for images without a zone database

	"go.uber.org/zap/zapcore"

	"retry-worker/internal/smallfile"
	"retry-worker/internal/text"
)

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

// need reports a setting that is missing.
func (c *checker) need(name, value, expected string) {
	if value == "" {
		c.add(name, "missing", expected)
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

// decode parses value into a field by the field's type and tag. The tag's keys: of, the allowed words; from and to, the
// bounds; page, what people open there; as, the form of a duration.
func (c *checker) decode(name, value string, tag reflect.StructTag, field any) {
	if of := strings.Fields(tag.Get("of")); len(of) > 0 && !c.oneOf(name, value, of...) {
		return
	}
	switch f := field.(type) {
	case *string:
		*f = c.text(name, value, tag)
	case *int:
		*f = c.whole(name, value, tag)
	case *bool:
		*f = c.boolean(name, value)
	case *time.Duration:
		*f = c.duration(name, value, tag)
	case *[]string:
		*f = c.list(name, value)
	case *[]netip.Prefix:
		*f = c.networks(name, value)
	case **time.Location:
		*f = c.zone(name, value)
	case *zapcore.Level:
		*f, _ = zapcore.ParseLevel(value) // valid, because it is one of the words
	}
}

func (c *checker) text(name, value string, tag reflect.StructTag) string {
	if of := tag.Get("page"); of != "" {
		c.base(name, value, "https://HOST or https://HOST/PATH, where people open "+of)
		return strings.TrimRight(value, "/")
	}
	if tag.Get("as") == "address" && !isAddress(value) {
		c.add(name, strconv.Quote(value), "host:port, such as "+tag.Get("default"))
		return ""
	}
	return value
}

func isAddress(value string) bool {
	_, port, err := net.SplitHostPort(value)
	_, wrong := strconv.ParseUint(port, 10, 16)
	return err == nil && wrong == nil
}

// oneOf reports whether value is allowed.
func (c *checker) oneOf(name, value string, allowed ...string) bool {
	is := slices.Contains(allowed, value)
	if !is {
		c.add(name, strconv.Quote(value), text.Or(allowed...))
	}
	return is
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

// whole returns a whole number within the tag's bounds.
func (c *checker) whole(name, value string, tag reflect.StructTag) int {
	n, err := strconv.Atoi(value)
	least, _ := strconv.Atoi(tag.Get("from"))
	most, _ := strconv.Atoi(tag.Get("to"))
	if err != nil || n < least || n > most {
		c.add(name, strconv.Quote(value), fmt.Sprintf("a whole number from %d to %d", least, most))
	}
	return n
}

func (c *checker) boolean(name, value string) bool {
	b, err := strconv.ParseBool(value)
	if err != nil {
		c.add(name, strconv.Quote(value), "true or false")
	}
	return b
}

// duration returns a duration in the form that the tag names: milliseconds, a retention, or the usual one.
func (c *checker) duration(name, value string, tag reflect.StructTag) time.Duration {
	switch tag.Get("as") {
	case "milliseconds":
		return time.Duration(c.whole(name, value, tag)) * time.Millisecond
	case "retention":
		return c.retention(name, value)
	}
	d, err := time.ParseDuration(value)
	least, _ := time.ParseDuration(tag.Get("from"))
	most, _ := time.ParseDuration(tag.Get("to"))
	if err != nil || d < least || d > most {
		c.add(name, strconv.Quote(value), fmt.Sprintf("a duration from %s to %s, such as 10s", tag.Get("from"), tag.Get("to")))
	}
	return d
}

var retentionForm = regexp.MustCompile(`^([1-9]\d{0,5})([ydh])$`)

// maxRetention is shorter than the longest time.Duration.
const maxRetention = 200 * 366 * 24 * time.Hour

// retention returns a number of years, days or hours. A year counts as 366 days, so that no record goes too early.
func (c *checker) retention(name, value string) time.Duration {
	unit := map[string]time.Duration{"y": 366 * 24 * time.Hour, "d": 24 * time.Hour, "h": time.Hour}
	parts := retentionForm.FindStringSubmatch(value)
	if parts == nil {
		c.add(name, strconv.Quote(value), "years, days or hours, such as 5y, 90d or 48h")
		return 0
	}
	n, _ := strconv.Atoi(parts[1]) // its form is checked
	if time.Duration(n) > maxRetention/unit[parts[2]] {
		c.add(name, strconv.Quote(value), "at most 200 years")
	}
	return time.Duration(n) * unit[parts[2]]
}

func (c *checker) list(name, value string) []string {
	if value == "" {
		return nil
	}
	items := strings.Split(value, ",")
	for i, item := range items {
		items[i] = strings.TrimSpace(item)
		if items[i] == "" {
			c.add(name, strconv.Quote(value), "names separated by single commas")
			return nil
		}
	}
	return items
}

func (c *checker) networks(name, value string) (all []netip.Prefix) {
	for _, item := range c.list(name, value) {
		p, ok := network(item)
		if !ok {
			c.add(name, strconv.Quote(item), "networks such as 10.0.8.0/24, or addresses such as 10.0.8.7")
		}
		all = append(all, p)
	}
	return all
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

func (c *checker) zone(name, value string) *time.Location {
	zone, err := time.LoadLocation(value)
	if err != nil || strings.EqualFold(value, "local") {
		c.add(name, strconv.Quote(value), "a time zone such as America/Sao_Paulo")
	}
	return zone
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
