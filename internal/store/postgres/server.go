package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// oldest PostgreSQL that the journal is made for.
const oldest = 15

// server is what a connection says of where it leads.
type server struct {
	number                  int // 150010 is 15.10
	version, encoding, user string
	standby, readOnly       bool
}

const inspectText = `SELECT current_setting('server_version_num')::int, current_setting('server_version'),
	current_setting('server_encoding'), current_user, pg_is_in_recovery(), current_setting('default_transaction_read_only')::bool`

// inspect asks the server, and refuses one that is not fit.
func inspect(ctx context.Context, c *pgx.Conn) (server, error) {
	var s server
	err := c.QueryRow(ctx, inspectText).Scan(&s.number, &s.version, &s.encoding, &s.user, &s.standby, &s.readOnly)
	if err != nil {
		return server{}, err
	}
	return s, s.fit()
}

func (s *server) fit() error {
	switch {
	case s.number < oldest*10000:
		return refuse("the server is PostgreSQL %s; %d or newer is needed: upgrade it, or name another in the address",
			s.version, oldest)
	case s.encoding != "UTF8":
		return refuse("the database's encoding is %s; UTF8 is needed: create it with ENCODING 'UTF8' TEMPLATE template0",
			s.encoding)
	default:
		return nil
	}
}

// errStandby may pass: a standby can be promoted.
var errStandby = errors.New("the server is a standby, which cannot be written; it may be promoted, or name the " +
	"primary in the address")

// writable refuses a server that cannot be written.
func (s *server) writable() error {
	switch {
	case s.standby:
		return errStandby
	case s.readOnly:
		return refuse("default_transaction_read_only is on for the user %s; name the primary in the address, or set it "+
			"off for this user and database", s.user)
	default:
		return nil
	}
}
