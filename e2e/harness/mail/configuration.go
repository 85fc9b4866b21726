package mail

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"text/template"

	"retry-worker/e2e/harness"
)

// What is in a server's folder.
const (
	configuration = "exim.conf"
	inbox         = "inbox"
	certificate   = "certificate.pem"
	privateKey    = "key.pem"
	// A file of these names makes the server behave so; that of slow holds seconds.
	deferring, refusing, slow = "deferring", "refusing", "slow"
)

// settings of Exim: nothing of the machine's, everything in one folder, as a user without rights.
var settings = template.Must(template.New("").Delims("<<", ">>").Parse(`
exim_user = <<.User>>
exim_group = <<.Group>>
admin_groups = <<.Group>>
never_users =
deliver_drop_privilege = true
keep_environment =
add_environment = PATH=/usr/bin:/bin
primary_hostname = correio.teste
spool_directory = <<.Dir>>/spool
log_file_path = <<.Dir>>/%s.log
pid_file_path = <<.Dir>>/exim.pid
local_interfaces = 127.0.0.1
daemon_smtp_ports = <<.Port>> : <<.SecurePort>>
tls_on_connect_ports = <<.SecurePort>>
tls_advertise_hosts = *
tls_certificate = <<.Dir>>/certificate.pem
tls_privatekey = <<.Dir>>/key.pem
host_lookup =
rfc1413_query_timeout = 0s
queue_run_max = 1
acl_smtp_mail = check_sender
acl_smtp_rcpt = check_recipient

begin acl
check_sender:
  warn    condition = ${if exists{<<.Dir>>/slow}}
          delay     = ${readfile{<<.Dir>>/slow}{}}s
  defer   message   = 4.3.2 system not accepting mail now
          condition = ${if exists{<<.Dir>>/deferring}}
  deny    message   = 5.7.1 sender not allowed
          condition = ${if exists{<<.Dir>>/refusing}}
  accept
check_recipient:
  require message       = 5.7.0 authentication required
          authenticated = *
  accept

begin routers
everybody:
  driver = accept
  transport = inbox

begin transports
inbox:
  driver = appendfile
  directory = <<.Dir>>/inbox
  maildir_format
  create_directory
  envelope_to_add
  return_path_add
  batch_max = 100
  user = <<.User>>
  group = <<.Group>>

begin retry
* * F,1h,1s

begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_condition = ${if and{{eq{$auth2}{<<.Name>>}}{eq{$auth3}{<<.Password>>}}}}
  server_set_id = $auth2
  server_advertise_condition = ${if def:tls_in_cipher}
login:
  driver = plaintext
  public_name = LOGIN
  server_prompts = Username:: : Password::
  server_condition = ${if and{{eq{$auth1}{<<.Name>>}}{eq{$auth2}{<<.Password>>}}}}
  server_set_id = $auth1
  server_advertise_condition = ${if def:tls_in_cipher}
`))

// configure writes what the server reads when it starts.
func (s *Server) configure() error {
	uid, gid := account()
	var text strings.Builder
	err := settings.Execute(&text, map[string]string{
		"Dir": s.folder.Path, "User": strconv.Itoa(uid), "Group": strconv.Itoa(gid), "Name": user, "Password": password,
		"Port": strconv.Itoa(s.ports[0]), "SecurePort": strconv.Itoa(s.ports[1]),
	})
	if err != nil {
		return fmt.Errorf("write Exim's settings: %w", err)
	}
	return s.give(configuration, text.String(), 0o600)
}

// give the server a file.
func (s *Server) give(name, content string, mode os.FileMode) error {
	temporary := s.path(name + ".new")
	if err := os.WriteFile(temporary, []byte(content), mode); err != nil {
		return err
	}
	if err := harness.GiveToNobody(temporary); err != nil {
		return err
	}
	return os.Rename(temporary, s.path(name))
}

// account that the server runs as.
func account() (uid, gid int) {
	if u := harness.Nobody(); u != nil {
		return int(u.Uid), int(u.Gid)
	}
	return os.Getuid(), os.Getgid()
}
