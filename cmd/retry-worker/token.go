package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"retry-worker/internal/access"
	"retry-worker/internal/journal"
)

// tokensFileVariable names the tokens file for the worker.
const tokensFileVariable = "RETRY_WORKER_AUTH_TOKENS_FILE"

func (c *cli) tokenCommand() *cobra.Command {
	return group("token", "Make a token that lets somebody use the console and the API",
		"The worker reads the tokens from the file that "+tokensFileVariable+" names, and looks every\n"+
			"5 seconds whether it has changed; a line taken out ends that token and its sessions. Roles: viewer reads;\n"+
			"operator retries and discards too, once more at the limit, and in bulk for the teams that the token is\n"+
			"bound to; admin also begins the whole ladder again, and in bulk for all.",
		c.tokenNewCommand())
}

type tokenFlags struct{ name, role, teams, expires, file, tokenFile string }

func (c *cli) tokenNewCommand() *cobra.Command {
	var f tokenFlags
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Make a token; print it, once, and its line for the tokens file",
		Long: "Makes a token and prints it, this once, with its line for the tokens file, which holds its SHA-256\n" +
			"only. With --file the line is added to that file; a new file is readable by its owner only. With\n" +
			"--token-file the token is written there in place of being printed; where that file exists nothing is\n" +
			"made, so that a container may run it at each start. It needs no running worker.",
		Example: `  retry-worker token new --name maria.silva --role operator --file /etc/retry-worker/tokens
  retry-worker token new --name ana.souza --role operator --teams faturamento,cadastro
  retry-worker token new --name crm --role viewer --expires never -o json`,
		RunE: func(*cobra.Command, []string) error { return c.tokenNew(f, time.Now()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "",
		"person or program that it is for; stands in the audit with all that is done by it")
	flags.StringVar(&f.role, "role", "", "what it allows: viewer, operator or admin")
	flags.StringVar(&f.teams, "teams", "",
		"teams that it is bound to, such as faturamento,ti: it decides for no other; left out: bound to none")
	flags.StringVar(&f.expires, "expires", "90d",
		"how long it is valid: days such as 90d, a last day (UTC) such as 2027-01-31, or never")
	flags.StringVar(&f.file, "file", "", "tokens file to add it to; left out: none")
	flags.StringVar(&f.tokenFile, "token-file", "",
		"new file to write the token to, readable by its owner only; left out: it is printed")
	return cmd
}

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

func (c *cli) tokenNew(f tokenFlags, now time.Time) error {
	secret, t, err := f.make(now)
	if err != nil {
		return &usageError{err}
	}
	if _, err := os.Lstat(f.tokenFile); f.tokenFile != "" && err == nil {
		fmt.Fprintf(c.errOut, "retry-worker: %s exists, no token was made\n", f.tokenFile)
		return nil
	}
	made := madeToken{Name: t.Name, Role: t.Role, Line: t.Line(), Teams: journal.OrNull(f.teams), File: journal.OrNull(f.file)}
	if !t.Expires.IsZero() {
		made.Expires = journal.OrNull(t.Until())
	}
	if f.tokenFile == "" {
		made.Token = secret
		err = addToken(f.file, &t)
	} else {
		err = c.writeTo(f.tokenFile, func(to io.Writer) error { // write both files or neither
			_, err := fmt.Fprintln(to, secret)
			return errors.Join(err, addToken(f.file, &t))
		})
	}
	if err == nil {
		err = c.print(made)
	}
	if err != nil || c.json() {
		return err
	}
	next := "Add the line to the file that " + tokensFileVariable + " names (chmod 600)."
	if f.file != "" {
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
	role, noRole := access.ParseRole(f.role)
	expires, noExpiry := access.ParseExpiry(f.expires, now)
	var teams access.Teams
	var noTeams error
	if f.teams != "" {
		teams, noTeams = access.ParseTeams(f.teams)
	}
	err := errors.Join(wrong("name is", access.CheckName(f.name)), wrong("role is", noRole), wrong("expires is", noExpiry),
		wrong("teams are", noTeams))
	if err != nil {
		return "", access.Token{}, err
	}
	secret, t, err := access.NewToken(f.name, role, expires)
	t.Teams = teams
	return secret, t, err
}

// addToken adds a token to a file, if one is named. A name in use, and an invalid file, are usage errors.
func addToken(file string, t *access.Token) error {
	if file == "" {
		return nil
	}
	err := access.Append(file, t)
	if wrong, is := errors.AsType[*access.FileError](err); is {
		return &usageError{wrong}
	}
	return err
}
