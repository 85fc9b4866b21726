// Package smallfile reads the files that people name in settings and flags.
package smallfile

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ErrTooLong says that a file has more bytes than are read.
var ErrTooLong = errors.New("it is too long")

// Read returns the content of the file at path. Its error does not name the path, and is ErrTooLong, beside the first
// bytes, where there are more than most.
func Read(path string, most int) ([]byte, error) {
	content, _, err := read(path, most)
	return content, err
}

func read(path string, most int) ([]byte, fs.FileMode, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, Cause(err)
	}
	defer f.Close() // read only
	info, err := f.Stat()
	if err != nil {
		return nil, 0, Cause(err)
	}
	content, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err == nil && len(content) > most {
		err = fmt.Errorf("%w: more than %d bytes", ErrTooLong, most)
	}
	return content, info.Mode(), Cause(err)
}

// ReadRegular is Read for files that are read again and again: opening a pipe would wait for its other end.
func ReadRegular(path string, most int) ([]byte, error) {
	if err := regular(path); err != nil {
		return nil, err
	}
	return Read(path, most)
}

func regular(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	return Cause(err)
}

// Cause returns what is wrong with a file, without its path.
func Cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// Sync returns once what was written to a file, or a folder, is durable.
func Sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, Cause(err))
	}
	err = f.Sync()
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("make %s durable: %w", path, Cause(err))
	}
	return nil
}

// maxAuthorities is the bytes of a file with certificates; those of all public authorities are a fifth of it.
const maxAuthorities = 1 << 20

// Authorities returns the certificates of the PEM file at path, to trust instead of the system's; nil, which is those,
// for no path. Its error is one line that names the setting and the path.
func Authorities(setting, path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	const expected = "expected a PEM file with the certificates of the authorities to trust"
	content, err := Read(path, maxAuthorities)
	if err != nil {
		return nil, fmt.Errorf("%s is %q, which cannot be read (%w), %s", setting, path, err, expected)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("%s is %q, which holds no certificate, %s", setting, path, expected)
	}
	return pool, nil
}
