package mail

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Message is a mail in the server's inbox.
type Message struct {
	// To are the addresses of its envelope, From is the sender's.
	To   []string
	From string
	// Subject is decoded.
	Subject string
	// Text is that of all its parts, decoded.
	Text string
	// Raw is the mail as it was received, headers included.
	Raw []byte
}

// Messages returns the mails in the inbox, the oldest first.
func (s *Server) Messages() ([]Message, error) {
	files, err := filepath.Glob(s.folder.Join(inbox, "new", "*"))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(files, func(a, b string) int { return cmp.Compare(delivered(a), delivered(b)) })
	var all []Message
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read the inbox: %w", err)
		}
		m, err := parse(raw)
		if err != nil {
			return nil, fmt.Errorf("read the mail %s: %w", file, err)
		}
		all = append(all, m)
	}
	return all, nil
}

// delivered returns when a file of the inbox was delivered, in microseconds. Its name is
// SECOND.MmicrosecondPprocess.HOST, without leading zeros in the microsecond.
func delivered(file string) (at int64) {
	var second, micro int64
	if n, _ := fmt.Sscanf(filepath.Base(file), "%d.M%dP", &second, &micro); n < 2 {
		return 0 // not a name of Exim's
	}
	return second*1_000_000 + micro
}

// Log returns what the server wrote about connections and deliveries.
func (s *Server) Log() string {
	text, _ := os.ReadFile(s.path("main.log")) // no file before the first connection
	return string(text)
}

// Defer makes the server answer 451 to each mail until Accept.
func (s *Server) Defer() error { return s.give(deferring, "") }

// Accept ends Defer.
func (s *Server) Accept() error { return os.Remove(s.path(deferring)) }

func parse(raw []byte) (Message, error) {
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return Message{}, err
	}
	decoder := mime.WordDecoder{}
	subject, err := decoder.DecodeHeader(m.Header.Get("Subject"))
	if err != nil {
		return Message{}, err
	}
	to, err := m.Header.AddressList("Envelope-To")
	if err != nil {
		return Message{}, err
	}
	parsed := Message{Subject: subject, Raw: raw, From: strings.Trim(m.Header.Get("Return-Path"), "<>")}
	for _, a := range to {
		parsed.To = append(parsed.To, a.Address)
	}
	var text strings.Builder
	err = decode(&text, textproto.MIMEHeader(m.Header), m.Body)
	parsed.Text = text.String()
	return parsed, err
}

// decode adds the text of a body, or of all its parts.
func decode(text *strings.Builder, header textproto.MIMEHeader, body io.Reader) error {
	switch strings.ToLower(header.Get("Content-Transfer-Encoding")) {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	kind, parameters, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(kind, "multipart/") {
		_, err = io.Copy(text, body)
		return err
	}
	for parts := multipart.NewReader(body, parameters["boundary"]); ; {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = decode(text, part.Header, part)
		}
		if err != nil {
			return err
		}
	}
}
