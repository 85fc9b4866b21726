package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/journal"
)

// tokensFileVariable names the tokens file for the worker.
const tokensFileVariable = "RETRY_WORKER_AUTH_TOKENS_FILE"

type tokenFlags struct{ Name, Role, Teams, Expires, File, TokenFile string }

// madeToken is what `token new -o json` prints.
type madeToken struct {
	Name string      `json:"name"`
	Role access.Role `json:"role"`
	// Teams that the token is bound to; null means none.
	Teams *string `json:"teams"`
	// Expires is the last day (UTC) on which the token is valid; null means that it does not expire.
	Expires *string `json:"expires"`
	// Token is empty if it went into --token-file.
	Token string `json:"token"`
	// Line is the token's line for the tokens file.
	Line string `json:"line"`
	// File that the line was added to; null means none.
	File *string `json:"file"`
}

func (c *cli) tokenNew(_ *command, f *tokenFlags, _ []string) error {
	secret, t, err := f.make(time.Now())
	if err != nil {
		return &usageError{err}
	}
	if _, err := os.Lstat(f.TokenFile); f.TokenFile != "" && err == nil {
		fmt.Fprintf(c.errOut, "retry-worker: %s exists, no token was made\n", f.TokenFile)
		return nil
	}
	made := madeToken{Name: t.Name, Role: t.Role, Line: t.Line(), Teams: journal.OrNull(f.Teams), File: journal.OrNull(f.File)}
	if !t.Expires.IsZero() {
		made.Expires = journal.OrNull(t.Until())
	}
	if f.TokenFile == "" {
		made.Token = secret
		err = addToken(f.File, &t)
	} else {
		err = c.writeTo(f.TokenFile, func(to io.Writer) error { // write both files or neither
			_, err := fmt.Fprintln(to, secret)
			return errors.Join(err, addToken(f.File, &t))
		})
	}
	if err == nil {
		err = c.print(made)
	}
	if err != nil || c.json() {
		return err
	}
	next := "Add the line to the file that " + tokensFileVariable + " names (chmod 600)."
	if f.File != "" {
		next = "A worker that reads the file takes it up within 10 seconds."
	}
	fmt.Fprintln(c.out, "\n"+next)
	return nil
}

// make makes the token, or returns everything that is wrong with the flags.
func (f *tokenFlags) make(now time.Time) (string, access.Token, error) {
	wrong := func(flag string, err error) error {
		if err == nil {
			return nil
		}
		return fmt.Errorf("--%s %w", flag, err)
	}
	role, noRole := access.ParseRole(f.Role)
	expires, noExpiry := access.ParseExpiry(f.Expires, now)
	var teams access.Teams
	var noTeams error
	if f.Teams != "" {
		teams, noTeams = access.ParseTeams(f.Teams)
	}
	err := errors.Join(wrong("name is", access.CheckName(f.Name)), wrong("role is", noRole), wrong("expires is", noExpiry),
		wrong("teams are", noTeams))
	if err != nil {
		return "", access.Token{}, err
	}
	secret, t := access.NewToken(f.Name, role, expires)
	t.Teams = teams
	return secret, t, nil
}

// addToken adds a token to a file, if one is named. A name in use, and an invalid file, are usage errors.
func addToken(file string, t *access.Token) error {
	if file == "" {
		return nil
	}
	err := access.Append(file, t)
	if wrong, is := errors.AsType[access.FileError](err); is {
		return &usageError{wrong}
	}
	return err
}
