package api

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxParameterBytes of one parameter of a query.
const maxParameterBytes = 1000

// parameters are those of a request's query, each at most once.
type parameters map[string]string

// readParameters reads a request's query, which has no parameters but these: a slip in a name would go unseen, and a list
// would not be the one that was asked for.
func readParameters(r *http.Request, known ...string) (parameters, *refusal) {
	all, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, invalid("invalid_parameter", "the query cannot be read: expected name=value&name=value, with everything else than letters and digits %%-encoded")
	}
	p := parameters{}
	for name, values := range all {
		switch {
		case !slices.Contains(known, name):
			return nil, invalid("unknown_parameter", "the parameter %.60q is not known, expected of %s", name, strings.Join(known, ", "))
		case len(values) > 1:
			return nil, invalid("invalid_parameter", "the parameter %s is given %d times, expected once", name, len(values))
		case len(values[0]) > maxParameterBytes || !printable(values[0]):
			return nil, invalid("invalid_"+name, "%s is no printable text of at most %d bytes", name, maxParameterBytes)
		}
		p[name] = values[0]
	}
	return p, nil
}

// instant is a parameter that is a point in time; zero where it is not there, or empty.
func (p parameters) instant(name string) (time.Time, *refusal) {
	if p[name] == "" {
		return time.Time{}, nil
	}
	return parseInstant(name, p[name])
}

// printable tells whether s can be the id or the name of anything: stores take no other text.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}
