// Package smallfile reads and creates the files that settings and flags name. It takes up changes while the program
// runs, as a whole or not at all.
package smallfile

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// ErrTooLong says that a file is longer than allowed.
var ErrTooLong = errors.New("it is too long")

// Read returns the content of the regular file at path: a pipe, for instance, would wait for a writer. Its error does
// not name the path. If the file is longer than most, it returns the first bytes and ErrTooLong.
func Read(path string, most int) ([]byte, error) {
	content, _, err := read(path, most)
	return content, err
}

func read(path string, most int) ([]byte, fs.FileMode, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would wait for a writer
	if err != nil {
		return nil, 0, Cause(err)
	}
	defer f.Close() // nothing was written
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	if err != nil {
		return nil, 0, Cause(err)
	}
	content, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err == nil && len(content) > most {
		err = fmt.Errorf("%w: more than %d bytes", ErrTooLong, most)
	}
	return content, info.Mode(), Cause(err)
}

// Cause returns a file error without its path.
func Cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// Sync makes what was written to a file or a folder durable.
func Sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, Cause(err))
	}
	if err = cmp.Or(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("make %s durable: %w", path, Cause(err))
	}
	return nil
}

// ErrThere says that a file to be created exists.
var ErrThere = errors.New("exists already; name another, or remove it")

// Create makes a new file, readable by its owner only, and fills it by write. It gets its name only when it is complete
// and durable; otherwise nothing is left. The error is an ErrThere if the file exists.
func Create(name string, write func(part string) error) (err error) {
	part := name + ".part"
	file, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s %w", part, ErrThere)
	case err != nil:
		return fmt.Errorf("write %s: %w; name a file in a folder that can be written", name, Cause(err))
	}
	defer func() {
		if err != nil {
			_ = os.Remove(part)
		}
	}()
	_ = file.Close() // nothing was written
	// Checked after the part is created, so that the second of two writers sees the first's part or file.
	if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s %w", name, ErrThere)
	}
	if err := write(part); err != nil {
		return err
	}
	return errors.Join(os.Rename(part, name), Sync(filepath.Dir(name)))
}

// ErrExposed says that others can read or replace the file of a secret.
var ErrExposed = errors.New("others can reach it")

// exposed holds the permissions that such a file must not have: any for everybody, and writing for its group. The group
// may read, as Kubernetes needs for Secrets in containers that are not root.
const exposed fs.FileMode = 0o027

// ReadSecret is Read for a secret. Its error is an ErrExposed if others can read or replace the file.
func ReadSecret(path string, most int) ([]byte, error) {
	content, mode, err := read(path, most)
	if err != nil {
		return content, err
	}
	if mode = mode.Perm(); mode&exposed != 0 {
		return nil, fmt.Errorf("%w: it has mode %04o, expected 0600; `chmod 600` it (a Kubernetes Secret: defaultMode 0440), "+
			"and replace what is in it if others may have read it", ErrExposed, mode)
	}
	return content, checkFolders(path)
}

// maxLinks is how many links are followed, as in the system.
const maxLinks = 40

// checkFolders refuses a file that others could replace. The file, and each folder and link on its path, must belong to
// this user or root. No folder may be writable by everybody, unless it has the sticky bit, as a Kubernetes Secret's
// has: then nobody can remove another's files.
func checkFolders(path string) error {
	at, rest := "/", path
	if !filepath.IsAbs(path) {
		here, err := os.Getwd()
		if err != nil {
			return Cause(err)
		}
		rest = here + "/" + path
	}
	for links := 0; ; {
		info, err := os.Lstat(at)
		if err != nil {
			return Cause(err)
		}
		if err := checkOwner(at, info); err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(at)
			if links++; err != nil || links > maxLinks {
				return Cause(cmp.Or(err, error(syscall.ELOOP)))
			}
			if at, rest = filepath.Dir(at), to+"/"+rest; filepath.IsAbs(to) {
				at = "/"
			}
		}
		name, more, _ := strings.Cut(strings.TrimLeft(rest, "/"), "/")
		if name == "" {
			return nil
		}
		at, rest = filepath.Join(at, name), more // at has no links, so .. means its parent
	}
}

// checkOwner refuses a file, folder or link that others could replace.
func checkOwner(at string, info fs.FileInfo) error {
	if of, is := info.Sys().(*syscall.Stat_t); is && of.Uid != 0 && int(of.Uid) != os.Geteuid() {
		return fmt.Errorf("%w: %s belongs to the user %d, expected this one (%d) or root; `chown` it, and check what is in "+
			"the file", ErrExposed, at, of.Uid, os.Geteuid())
	}
	if mode := info.Mode(); info.IsDir() && mode&0o002 != 0 && mode&fs.ModeSticky == 0 {
		return fmt.Errorf("%w: it stands in the folder %s, which has mode %04o, so that everybody could put another in its "+
			"place; `chmod o-w` that folder, and check what is in the file", ErrExposed, at, mode.Perm())
	}
	return nil
}

// LookEvery is how often a Watcher reads its file. It compares contents: Kubernetes changes files by swapping links,
// which may leave time and size as they were.
const LookEvery = 5 * time.Second

// Watcher keeps the latest valid value of a file.
type Watcher[T any] struct {
	path    string
	read    func(path string) ([]byte, error)
	parse   func(path string, content []byte) (*T, error)
	current atomic.Pointer[T]
	// seen is the hash of the content at the last look, or why it could not be read; judged is what was put in force or
	// rejected last.
	seen, judged string
}

// Watch reads and parses the file at path and returns a Watcher, which Run starts. Its error is that of read or parse.
func Watch[T any](
	path string, read func(path string) ([]byte, error), parse func(path string, content []byte) (*T, error),
) (*Watcher[T], error) {
	w := &Watcher[T]{path: path, read: read, parse: parse}
	content, err := w.see()
	if _, err = w.take(content, err); err != nil {
		return nil, err
	}
	return w, nil
}

// Current returns the value in force, never nil. It is safe for concurrent use and never waits. Callers keep the value
// until their work is done.
func (w *Watcher[T]) Current() *T { return w.current.Load() }

// Run looks at the file every 5 s until ctx ends. It calls told with the value that a change has put in force. If a
// content is refused, it calls told once with the reason; the old value stays in force. Call it once.
func (w *Watcher[T]) Run(ctx context.Context, told func(inForce *T, rejected error)) {
	ticker := time.NewTicker(LookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			w.look(told)
		}
	}
}

// look takes the file up if it is new, and as it was at the last look: an editor may first empty a file.
func (w *Watcher[T]) look(told func(inForce *T, rejected error)) {
	before := w.seen
	content, err := w.see()
	if w.seen == before && w.seen != w.judged {
		told(w.take(content, err))
	}
}

// see reads the file.
func (w *Watcher[T]) see() (content []byte, err error) {
	content, err = w.read(w.path)
	if err == nil {
		w.seen = fmt.Sprint(sha256.Sum256(content))
	} else {
		w.seen = err.Error()
	}
	return content, err
}

// take puts what see returned in force, or rejects it.
func (w *Watcher[T]) take(content []byte, err error) (inForce *T, rejected error) {
	w.judged = w.seen
	if err == nil {
		inForce, err = w.parse(w.path, content)
	}
	if err == nil {
		w.current.Store(inForce)
	}
	return inForce, err
}

// maxPEM is the longest file of certificates or a key, in bytes; all public authorities take a fifth of it.
const maxPEM = 1 << 20

// Authorities returns the certificates of the PEM file at path, to trust instead of the system's; nil, meaning the
// system's, if path is empty. Its error is one line with setting and path.
func Authorities(setting, path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	const expected = "expected a PEM file with the certificates of the authorities to trust"
	content, err := Read(path, maxPEM)
	if err != nil {
		return nil, fmt.Errorf("%s is %q, which cannot be read (%w), %s", setting, path, err, expected)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("%s is %q, which holds no certificate, %s", setting, path, expected)
	}
	return pool, nil
}

// NamesOf returns a certificate's host names, then its addresses.
func NamesOf(c *x509.Certificate) []string {
	names := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// ReadPair returns a certificate's text, with its intermediate authorities, followed by its key's: a Watcher takes up
// both or neither. The error is one line that names the file.
func ReadPair(certFile, keyFile string) ([]byte, error) {
	cert, err := Read(certFile, maxPEM)
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %s: %w, expected a PEM file", certFile, err)
	}
	key, err := ReadSecret(keyFile, maxPEM)
	if err != nil {
		return nil, fmt.Errorf("read the certificate's key: %s: %w, expected a PEM file", keyFile, err)
	}
	return slices.Concat(cert, []byte("\n"), key), nil
}

// ParsePair returns the certificate and key that ReadPair has read. The error is one line that names both files, and
// shows nothing of the key.
func ParsePair(certFile, keyFile string, pair []byte) (*tls.Certificate, error) {
	c, err := tls.X509KeyPair(pair, pair)
	if err != nil {
		return nil, fmt.Errorf("the certificate %s and the key %s: %w; expected two PEM files that belong together", certFile,
			keyFile, plain(err))
	}
	return &c, nil
}

// plain returns err without any part of a key that it may quote.
func plain(err error) error {
	if _, of := errors.AsType[x509.CertificateInvalidError](err); of {
		return err
	}
	// crypto/tls says what is wrong first; what it found follows a quote or a line break.
	words := err.Error()
	if end := strings.IndexAny(words, "\"\n"); end >= 0 {
		words = words[:end] + "…"
	}
	return errors.New(words)
}
