package sqlite

import (
	"context"
	"path/filepath"

	"retry-worker/internal/smallfile"
)

// Backup writes a copy of the journal as it stands into the file at path, which must be empty or not there, beside the
// process that writes it: however much is committed meanwhile. When it returns without an error the copy is durable;
// its folder may not be.
func (r *Reader) Backup(ctx context.Context, path string) error {
	// A connection of its own: query_only, which the readers have, keeps VACUUM from its work.
	pool, err := r.file.pool(forCopying, 1)
	if err != nil {
		return r.file.explain(err)
	}
	if path, err = filepath.Abs(path); err == nil { // file:… would be taken for an address
		_, err = pool.ExecContext(ctx, "VACUUM INTO ?", path)
	}
	if closed := pool.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return failed("copy "+r.file.path+" to "+path, err, false)
	}
	return smallfile.Sync(path)
}
