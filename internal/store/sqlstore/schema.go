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
			return fmt.Sprintf("the %s is %q, expected %q", name, found, want[name])
		}
	}
	return ""
}
