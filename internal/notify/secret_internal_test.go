package notify

import (
	"errors"
	"os"
	"testing"

	"retry-worker/internal/smallfile"
	"retry-worker/internal/testkit"
)

// TestSecretThatOthersRead: neither the mail server's password nor a webhook's secret is taken from such a file.
func TestSecretThatOthersRead(t *testing.T) {
	file := testkit.File(t, "secret", []byte("whsec_c2VncmVkbyBkZSB1bSBob3NwaXRhbCBpbWFnaW5hcmlv"))
	testkit.Must(t, os.Chmod(file, 0o644))
	_, login := (&Mailer{server: MailServer{User: "a", PasswordFile: file}}).login()
	_, signing := signersOf(file)
	for _, err := range []error{login, signing} {
		if !errors.Is(err, smallfile.ErrExposed) {
			t.Errorf("got %v", err)
		}
	}
}
