//go:build !linux && !darwin

package sqlite

// Inspect says where the journal's file is.
func Inspect(path string) (string, error) {
	f, err := locate(path)
	if err != nil {
		return "", err
	}
	return f.path, nil
}
