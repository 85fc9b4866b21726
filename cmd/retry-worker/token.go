package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/journal"
)

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

func (c *cli) tokenNew(context.Context, []string) error {
	secret, t, err := c.newToken(time.Now())
	if err != nil {
		return err
	}
	if _, err := os.Lstat(c.TokenFile); c.TokenFile != "" && err == nil {
		fmt.Fprintf(c.errOut, "retry-worker: %s exists, no token was made\n", c.TokenFile)
		return nil
	}
	c.begun = true
	made := madeToken{Name: t.Name, Role: t.Role, Line: t.Line(), Teams: journal.OrNull(c.Teams),
		File: journal.OrNull(c.File)}
	if !t.Expires.IsZero() {
		made.Expires = journal.OrNull(t.Until())
	}
	add := func() error {
		if c.File == "" {
			return nil
		}
		return access.Append(c.File, &t)
	}
	if c.TokenFile == "" {
		made.Token = secret
		err = add()
	} else {
		err = c.writeTo(c.TokenFile, func(to io.Writer) error { // write both files or neither
			_, err := fmt.Fprintln(to, secret)
			return errors.Join(err, add())
		})
	}
	if err == nil {
		err = c.print(made)
	}
	if err != nil || c.json() {
		return err
	}
	next := "Add the line to the file that RETRY_WORKER_AUTH_TOKENS_FILE names (chmod 600)."
	if c.File != "" {
		next = "A worker that reads the file takes it up within 10 seconds."
	}
	fmt.Fprintln(c.out, "\n"+next)
	return nil
}

// newToken makes the token, or returns everything that is wrong with the flags.
func (c *cli) newToken(now time.Time) (string, access.Token, error) {
	wrong := func(flag string, err error) error {
		if err == nil {
			return nil
		}
		return fmt.Errorf("--%s %w", flag, err)
	}
	role, noRole := access.ParseRole(c.Role)
	expires, noExpiry := access.ParseExpiry(c.Expires, now)
	var teams access.Teams
	var noTeams error
	if c.Teams != "" {
		teams, noTeams = access.ParseTeams(c.Teams)
	}
	err := errors.Join(wrong("name is", access.CheckName(c.Name)), wrong("role is", noRole), wrong("expires is", noExpiry),
		wrong("teams are", noTeams))
	if err != nil {
		return "", access.Token{}, err
	}
	secret, t := access.NewToken(c.Name, role, expires)
	t.Teams = teams
	return secret, t, nil
}
