package notify

import (
	"cmp"
	"context"
	"crypto/tls"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net"
	"net/http"
	"net/mail"
	"strconv"
	"strings"
	texttemplate "text/template"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	gomail "github.com/wneessen/go-mail"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/smallfile"
)

const (
	// PublishTime bounds one try to send a notice (outbox.Patience).
	PublishTime = time.Minute
	// talkTime bounds connecting and logging in to a mail server, and then handing in a message.
	talkTime  = 40 * time.Second
	quitTime  = time.Second // for the end of the conversation, which nobody waits for
	maxSecret = 4096        // bytes of a secret's file
)

// Encryption is that of a mail server's connection. The set is closed.
type Encryption string

// The encryptions.
const (
	ImplicitTLS Encryption = "implicit" // from the first byte on
	RequiredTLS Encryption = "required" // by STARTTLS, or nothing is sent
	Plaintext   Encryption = "none"
)

// MailServer is the server that e-mail is handed in to.
type MailServer struct {
	Host         string
	Port         int
	Encryption   Encryption
	User         string // who logs in; empty for nobody
	PasswordFile string `env:"RETRY_WORKER_SMTP_PASSWORD_FILE" with:"RETRY_WORKER_SMTP_URL" desc:"file with the password of the mail server's user, read for each connection"`
	CAFile       string `env:"RETRY_WORKER_SMTP_CA_FILE" with:"RETRY_WORKER_SMTP_URL" desc:"PEM file to trust for the mail server instead of the system's authorities, read for each connection"`
	From         mail.Address
}

// Mailer sends notices by e-mail. Safe for concurrent use.
type Mailer struct {
	server MailServer
	render *renderer
}

// NewMailer returns a Mailer; it connects for each message.
func NewMailer(server MailServer, words Words, zone *time.Location) *Mailer {
	return &Mailer{server: server, render: newRenderer(words, zone)}
}

// Send sends a notice to an address. Its error is a *Failure.
func (m *Mailer) Send(ctx context.Context, id string, n *Notice, address string) error {
	msg, err := m.message(id, n, address)
	if err != nil {
		return refused(fmt.Sprintf("compose an e-mail: %v", err))
	}
	ctx, cancel := context.WithTimeout(ctx, PublishTime)
	defer cancel()
	client, err := m.dial(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	err = client.Send(msg)
	time.AfterFunc(quitTime, cancel)
	if !msg.IsDelivered() { // otherwise only what came after it failed
		return byMail(ctx, "send the message", err, address)
	}
	return nil
}

// Check returns an error unless the mail server takes a connection, and the user if there is one.
func (m *Mailer) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, PublishTime)
	defer cancel()
	client, err := m.dial(ctx)
	if err != nil {
		return err
	}
	time.AfterFunc(quitTime, cancel)
	_ = client.Close()
	return nil
}

// message returns the e-mail; it is the same each time it is sent.
func (m *Mailer) message(id string, n *Notice, address string) (*gomail.Msg, error) {
	subject, plain, page, err := m.render.render(n)
	if err != nil {
		return nil, err
	}
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	msg.FromMailAddress(&m.server.From)
	if err := msg.To(address); err != nil {
		return nil, errors.New("the address is not valid") // the library's error would name it
	}
	_, domain, _ := strings.Cut(m.server.From.Address, "@")
	msg.SetMessageIDWithValue(id + "@" + domain)
	msg.SetDateWithValue(n.Timestamp)
	msg.Subject(subject)
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no machine answers
	msg.SetGenHeader("X-Auto-Response-Suppress", "All")
	msg.SetBoundary("part-" + id)
	msg.SetBodyString(gomail.TypeTextPlain, plain)
	msg.AddAlternativeString(gomail.TypeTextHTML, page)
	return msg, nil
}

// dial connects, and logs in if the server has a user. The connection closes when ctx ends, so that a server that
// hangs holds nobody up.
func (m *Mailer) dial(ctx context.Context) (*gomail.Client, error) {
	client, err := m.client(ctx)
	if err != nil {
		return nil, refused("connect to the mail server: " + err.Error())
	}
	if err := client.DialWithContext(ctx); err != nil {
		return nil, byMail(ctx, "connect to the mail server "+client.ServerAddr(), err, "")
	}
	return client, nil
}

// client returns a client whose connection lasts as long as ctx.
func (m *Mailer) client(ctx context.Context) (*gomail.Client, error) {
	roots, err := smallfile.Authorities("RETRY_WORKER_SMTP_CA_FILE", m.server.CAFile)
	if err != nil {
		return nil, err
	}
	login, err := m.login()
	if err != nil {
		return nil, err
	}
	trust := &tls.Config{ServerName: m.server.Host, MinVersion: tls.VersionTLS12, RootCAs: roots}
	dial := new(net.Dialer).DialContext
	if m.server.Encryption == ImplicitTLS {
		dial = (&tls.Dialer{Config: trust}).DialContext
	}
	return gomail.NewClient(m.server.Host, append(login, gomail.WithPort(m.server.Port), gomail.WithTimeout(talkTime),
		gomail.WithTLSConfig(trust), gomail.WithTLSPolicy(policies[m.server.Encryption]), gomail.WithoutNoop(),
		gomail.WithDialContextFunc(func(dialing context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(dialing, network, address)
			if err == nil {
				context.AfterFunc(ctx, func() { _ = conn.Close() })
			}
			return conn, err
		}))...)
}

// policies are the library's names of the encryptions. It sees by itself that a connection is already encrypted.
var policies = map[Encryption]gomail.TLSPolicy{ImplicitTLS: gomail.TLSOpportunistic, RequiredTLS: gomail.TLSMandatory,
	Plaintext: gomail.NoTLS}

// login returns the options to log in; none if there is no user. Without TLS a password goes to this machine alone;
// the settings ensure that.
func (m *Mailer) login() ([]gomail.Option, error) {
	if m.server.User == "" {
		return nil, nil
	}
	password, err := secret(m.server.PasswordFile)
	if err != nil {
		return nil, fmt.Errorf("RETRY_WORKER_SMTP_PASSWORD_FILE: %w", err)
	}
	how := gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover)
	if m.server.Encryption == Plaintext {
		how = gomail.WithOpportunisticSMTPAuth(gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthSCRAMSHA1,
			gomail.SMTPAuthPlainNoEnc, gomail.SMTPAuthLoginNoEnc)
	}
	return []gomail.Option{how, gomail.WithUsername(m.server.User), gomail.WithPassword(password)}, nil
}

// secret returns a file's content, without the space around it.
func secret(path string) (string, error) {
	content, err := smallfile.ReadSecret(path, maxSecret)
	if err != nil {
		return "", fmt.Errorf("the secret's file cannot be read: %w", err)
	}
	text := strings.TrimSpace(string(content))
	if text == "" {
		return "", errors.New("the secret's file is empty")
	}
	return text, nil
}

const (
	postTime  = 20 * time.Second // for one webhook call, as Standard Webhooks recommend
	maxAnswer = 4 << 10          // bytes that are read of an answer
	// A secret is the prefix and base64 of 24 to 64 bytes; the lengths include the prefix.
	secretPrefix            = "whsec_"
	leastSecret, mostSecret = len(secretPrefix) + 32, len(secretPrefix) + 88
)

// Poster sends notices as webhooks. Safe for concurrent use.
type Poster struct{ client *http.Client }

// NewPoster returns a Poster that sends by client.
func NewPoster(client *http.Client) *Poster { return &Poster{client} }

// Send posts a body that is signed, as of now, with the receiver's secret. The secret's file is read for each call.
func (p *Poster) Send(ctx context.Context, to *catalogue.Webhook, id, body string, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, postTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL, strings.NewReader(body))
	if err != nil {
		return refused("the webhook's address cannot be used")
	}
	if err := sign(request.Header, to.SecretFile, id, body, now); err != nil {
		return refused("sign the webhook: " + err.Error())
	}
	request.Header.Set("Content-Type", "application/json; charset=utf-8")
	answer, err := p.client.Do(request)
	if err != nil {
		return failure(false, "post the webhook: "+plainly(err))
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer)) // only the status counts
	return judge(answer)
}

// judge returns a *Failure unless the receiver took the notice.
func judge(a *http.Response) error {
	said := strings.TrimSpace("the receiver answered " + strconv.Itoa(a.StatusCode) + " " + http.StatusText(a.StatusCode))
	switch code := a.StatusCode; {
	case code/100 == 2:
		return nil
	case code/100 == 3:
		return refused(said + ": redirects are not followed; correct the team's webhook url")
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests, code/100 != 4:
		f := failure(false, said)
		seconds, _ := strconv.ParseUint(a.Header.Get("Retry-After"), 10, 20)
		f.After = time.Duration(seconds) * time.Second
		return f
	default:
		return refused(said)
	}
}

// sign sets the headers of Standard Webhooks, with one signature for each secret in the file.
func sign(h http.Header, secretFile, id, body string, now time.Time) error {
	signers, err := signersOf(secretFile)
	if err != nil {
		return err
	}
	signatures := make([]string, len(signers))
	for i, s := range signers {
		if signatures[i], err = s.Sign(id, now, []byte(body)); err != nil {
			return err
		}
	}
	h.Set(standardwebhooks.HeaderWebhookID, id)
	h.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	h.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	return nil
}

// signersOf returns a signer for each secret in a file, one a line: a receiver may change its secret while both hold.
func signersOf(file string) (all []*standardwebhooks.Webhook, err error) {
	text, err := secret(file)
	if err != nil {
		return nil, err
	}
	for word := range strings.FieldsSeq(text) {
		s, err := standardwebhooks.NewWebhook(word)
		if err != nil || !strings.HasPrefix(word, secretPrefix) || len(word) < leastSecret || len(word) > mostSecret {
			return nil, fmt.Errorf("the secret's file holds something else, expected on each line %s and base64 of 24 to 64 "+
				"bytes", secretPrefix)
		}
		all = append(all, s)
	}
	return all, nil
}

// Words are the texts of the console's pages in the receivers' language.
type Words interface {
	// Or returns the text of a key, such as reason.TIMEOUT or kpi.success_rate; fallback if there is none.
	Or(key, fallback string) string
	Number(n int64) string
	Decimal(x float64, decimals int) string
	// Advice says how the retries of a cause ended, if they hardly help, and what to do about it.
	Advice(learnt journal.Prospects) string
}

//go:embed templates
var files embed.FS

// renderer makes e-mail from notices, in Brazilian Portuguese. templates/sentences.txt holds the words, notice.txt
// and notice.html the layout. Texts are cleaned once more, since a notice comes from the outbox.
type renderer struct {
	words Words
	zone  *time.Location
	plain *texttemplate.Template
	page  *template.Template
}

func newRenderer(words Words, zone *time.Location) *renderer {
	r := &renderer{words: words, zone: zone}
	funcs := texttemplate.FuncMap{
		"say": r.say, "clean": func(text string) string { return clean(text, maxWord) },
		"named": r.named, "number": words.Number, "count": r.count, "worth": r.worth,
		"time": r.time, "day": day, "monday": isMonday, "quantity": r.quantity,
		"holds": func(is *bool) bool { return is != nil && *is },
		"came":  func(n *Notice) *Summary { return cmp.Or(n.Data.New, &Summary{}) }, "causes": causesOf,
		"advice": func(a Advised) string {
			return words.Advice(journal.Prospects{Recovered: a.Recovered, Lost: a.Closed - a.Recovered})
		},
		"outage": func(n *Notice) *Outage { return cmp.Or(n.Data.Outage, &Outage{}) },
	}
	r.plain = texttemplate.Must(texttemplate.New("").Funcs(funcs).ParseFS(files, "templates/*.txt"))
	r.page = template.Must(template.New("").Funcs(funcs).ParseFS(files, "templates/notice.html"))
	return r
}

// render returns a notice's subject, plain text and HTML page.
func (r *renderer) render(n *Notice) (subject, text, page string, err error) {
	var t, p strings.Builder
	if subject, err = r.say("subject", n); err != nil {
		return "", "", "", err
	}
	if err := r.plain.ExecuteTemplate(&t, "notice.txt", n); err != nil {
		return "", "", "", err
	}
	err = r.page.ExecuteTemplate(&p, "notice.html", n)
	return subject, t.String(), p.String(), err
}

// say returns a sentence of sentences.txt, on one line.
func (r *renderer) say(sentence string, about any) (string, error) {
	var text strings.Builder
	err := r.plain.ExecuteTemplate(&text, sentence, about)
	return strings.Join(strings.Fields(text.String()), " "), err
}

// causesOf returns the dead letters whose causes a notice lists; nil if it lists none.
func causesOf(n *Notice) *Summary {
	switch n.Type {
	case TypeNew:
		return cmp.Or(n.Data.New, &Summary{})
	case TypeDown, TypeUp, TypeCauses:
		return nil
	default:
		return &n.Data.Open
	}
}

// maxWord bounds the bytes of a text that is shown.
const maxWord = 400

// named returns what people call a team, a policy or a reason; its own name if they call it nothing else.
func (r *renderer) named(kind, name string) string {
	name = clean(name, maxWord)
	return r.words.Or(kind+"."+name, name)
}

// worth returns an amount in the form that follows a number; empty if there is none.
func (r *renderer) worth(amount string) string {
	cents, ok := (&decision.ContextValue{Type: decision.ContextMoney, Value: amount}).Cents()
	if !ok {
		return ""
	}
	return fmt.Sprintf(", R$ %s,%02d", r.words.Number(cents/100), cents%100)
}

func (r *renderer) count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return r.words.Number(n) + " " + many
}

// time returns an instant in the teams' time zone.
func (r *renderer) time(t time.Time) string { return t.In(r.zone).Format("02/01/2006 15:04") }

// day returns a day as it is written in Brazil.
func day(iso string) string {
	t, err := time.Parse(time.DateOnly, iso)
	if err != nil {
		return clean(iso, maxWord)
	}
	return t.Format("02/01/2006")
}

func (r *renderer) quantity(unit string, x float64) string {
	switch unit {
	case "ratio":
		return r.words.Decimal(x*100, 1) + " %"
	case "minutes":
		return r.words.Decimal(x, 1) + " min"
	case "claims":
		return r.words.Decimal(x, 0)
	case "seconds":
		return r.words.Decimal(x, 3) + " s"
	default:
		return r.words.Decimal(x, 2)
	}
}
