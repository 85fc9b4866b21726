package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"retry-worker/internal/smallfile"
	"retry-worker/internal/store/sqlstore"
)

// Reader reads the journal in a file while another process writes it. Its methods are safe for concurrent use.
type Reader struct {
	sqlstore.Reader
	file *file
	// still is the file's state if it is read as one that nobody writes; otherwise empty.
	still string
}

// OpenReader opens the journal in the file at path for reading. It creates and changes nothing. Its errors are one line
// that names the file.
func OpenReader(ctx context.Context, path string) (*Reader, error) {
	f, err := locate(path)
	if err != nil {
		return nil, err
	}
	switch info, err := os.Stat(f.path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &sqlstore.NotBegunError{Err: f.wrong("does not exist: name the file that the worker writes (RETRY_WORKER_DATABASE_URL)")}
	case err != nil:
		return nil, f.wrong("cannot be read (%v)", smallfile.Cause(err))
	case info.Size() == 0:
		return nil, &sqlstore.NotBegunError{Err: f.wrong("is empty: the worker has not begun it yet")}
	}
	way := forReading
	if f.size("-wal") == 0 { // nobody writes it
		way = frozen
	}
	r, err := f.reader(way)
	if err != nil {
		return nil, f.explain(err)
	}
	var application int64
	err = r.Pool.QueryRowContext(ctx, "SELECT application_id FROM pragma_application_id").Scan(&application)
	if err == nil && application != applicationID {
		err = errors.New("found no journal in it: name the file that the worker writes")
	}
	if err == nil {
		err = r.Known(ctx, f.name())
	}
	if err != nil {
		return nil, errors.Join(f.explain(err), r.Close())
	}
	return r, nil
}

func (f *file) reader(way url.Values) (*Reader, error) {
	pool, err := f.pool(way, readers)
	if err != nil {
		return nil, err
	}
	r := &Reader{Reader: sqlstore.NewReader(&dialect, pool), file: f}
	if snapshot := r.Snapshot; way.Has("immutable") {
		r.still = f.state()
		r.Snapshot = func(ctx context.Context, do func(tx sqlstore.Querier) error) error {
			return r.whole(snapshot(ctx, do))
		}
	}
	return r, nil
}

// whole returns err, or an error if a file that nobody wrote was written while it was read.
func (r *Reader) whole(err error) error {
	if r.still != "" && r.file.state() != r.still {
		return r.file.later("the worker began to write it while it was read: try again")
	}
	return err
}

// state returns a text that changes when the file is written: a writer begins by creating a write-ahead log.
func (f *file) state() string {
	info, err := os.Stat(f.path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(info.Size(), info.ModTime(), f.size("-wal"))
}

// Backup writes a copy of the journal as it stands into the file at path, which must be empty or absent. Other
// processes may write the journal meanwhile. After Backup returns nil the copy is durable, but its folder's entry may
// not be.
func (r *Reader) Backup(ctx context.Context, path string) error {
	path, err := filepath.Abs(path)
	if err == nil { // SQLite would take file:… for a URL
		_, err = r.Pool.ExecContext(ctx, "VACUUM INTO ?", path)
	}
	if err = r.whole(err); err != nil {
		return dialect.Failed("copy "+r.file.path+" to "+path, err, false)
	}
	return smallfile.Sync(path)
}
