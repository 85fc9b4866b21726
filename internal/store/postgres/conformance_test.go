package postgres

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	realserver "retry-worker/e2e/harness/postgres"
	"retry-worker/internal/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Store { return open(t, realserver.Database(t)) })
}

func TestMigrations(t *testing.T) {
	storetest.RunMigrations(t, func(t *testing.T) storetest.Database {
		address := realserver.Database(t)
		return storetest.Database{
			Open: func(ctx context.Context) (storetest.Store, error) {
				db, err := Open(ctx, address)
				if err != nil {
					return nil, err
				}
				return db, nil
			},
			OpenReader: func(ctx context.Context) (storetest.Reader, error) {
				r, err := OpenReader(ctx, address)
				if err != nil {
					return nil, err
				}
				return r, nil
			},
			Exec: func(ctx context.Context, statement string) error {
				c, err := pgx.Connect(ctx, address)
				if err != nil {
					return err
				}
				defer c.Close(ctx)
				_, err = c.Exec(ctx, statement)
				return err
			},
		}
	})
}
