package mail

import (
	_ "embed"
	"fmt"
	"os"
	"strconv"
	"strings"
	"text/template"

	"retry-worker/e2e/harness"
)

// Names in the server's folder.
const (
	configuration = "exim.conf"
	inbox         = "inbox"
	certificate   = "certificate.pem"
	privateKey    = "key.pem"
	// While a file of this name exists, the server defers mail.
	deferring = "deferring"
)

// settings are Exim's: nothing of the machine's, everything in one folder, as a user without rights.
//
//go:embed exim.conf.tmpl
var settings string

// configure writes what the server reads at its start.
func (s *Server) configure() error {
	uid, gid := account()
	var text strings.Builder
	err := template.Must(template.New("").Delims("<<", ">>").Parse(settings)).Execute(&text, map[string]string{
		"Dir": s.folder.Path, "User": strconv.Itoa(uid), "Group": strconv.Itoa(gid), "Name": user, "Password": Password,
		"Port": strconv.Itoa(s.ports[0]), "SecurePort": strconv.Itoa(s.ports[1]),
	})
	if err != nil {
		return fmt.Errorf("write Exim's settings: %w", err)
	}
	return s.give(configuration, text.String())
}

// give replaces a file of the server's.
func (s *Server) give(name, content string) error {
	temporary := s.path(name + ".new")
	if err := os.WriteFile(temporary, []byte(content), 0o600); err != nil {
		return err
	}
	if err := harness.GiveToNobody(temporary); err != nil {
		return err
	}
	return os.Rename(temporary, s.path(name))
}

// account returns the user and group that the server runs as.
func account() (uid, gid int) {
	if u := harness.Nobody(); u != nil {
		return int(u.Uid), int(u.Gid)
	}
	return os.Getuid(), os.Getgid()
}
