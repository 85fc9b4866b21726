package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// FirstEdition is why a journal of the first edition is refused.
const FirstEdition = "its tables are those of the first edition, which this retry-worker does not read: begin with " +
	"an empty journal, and keep that one with its own program"

// Known fails where the schema's version is not this binary's.
func Known(version int64) error {
	switch {
	case version > Version:
		return fmt.Errorf("its schema has version %d, this retry-worker knows up to version %d: start a newer one", version,
			Version)
	case version < 1:
		return errors.New("its schema names no version: restore the database from a backup")
	}
	return nil
}

// Incompatible returns, in one line, what of the schema is missing or is not what this binary makes: a journal of another
// build may name the same version. Of one that is written nothing else may change or refuse what is. It is empty where all
// is as it should be.
func (d *Dialect) Incompatible(ctx context.Context, tx Querier, written bool) (string, error) {
	want, err := d.Expected(ctx, d.Schema())
	if err != nil {
		return "", err
	}
	got, err := Describe(ctx, tx, d.Described)
	if err != nil {
		return "", err
	}
	maps.DeleteFunc(got, func(name, _ string) bool {
		kind, of, _ := strings.Cut(name, " ")
		if kind == "column" {
			of, _, _ = strings.Cut(of, ".")
			name = "table " + of
		}
		_, ours := want[name]
		return !ours && (!written || !slices.Contains([]string{"trigger", "rule", "policy", "constraint"}, kind))
	})
	what := differ(got, want)
	if what != "" {
		what = "its schema is not this retry-worker's: " + what + "; take away what was added, restore the database from a " +
			"backup, or, if another build made it, begin with an empty journal"
	}
	return what, nil
}

// Describe returns the rows of a query, each of which is a name and what that is, in one line.
func Describe(ctx context.Context, tx Querier, query string) (map[string]string, error) {
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[string]string{}
	for rows.Next() {
		var name, is string
		if err := rows.Scan(&name, &is); err != nil {
			return nil, err
		}
		all[name] = strings.Join(strings.Fields(is), " ")
	}
	return all, rows.Err()
}

// differ returns what got is not as want is, by names: the first, in one line; empty where nothing is.
func differ(got, want map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, known := want[name]; !known {
			return fmt.Sprintf("the %s is there, which the journal does not have", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		switch found, there := got[name]; {
		case !there:
			return fmt.Sprintf("the %s is missing", name)
		case found != want[name]:
			at := 0
			for at < min(len(found), len(want[name])) && found[at] == want[name][at] {
				at++
			}
			return fmt.Sprintf("the %s is %q, expected %q", name, around(found, at), around(want[name], at))
		}
	}
	return ""
}

// around is what of a text stands around a place.
func around(text string, at int) string {
	const before, behind = 30, 50
	from, to := max(at-before, 0), min(at+behind, len(text))
	part := text[from:to]
	if from > 0 {
		part = "…" + part
	}
	if to < len(text) {
		part += "…"
	}
	return part
}
