package events

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Stream is the name of the JetStream stream that takes the events.
const Stream = "RETRY"

const (
	// keptFor is how long a stream that we create keeps events: the audit's own archive is the journal.
	keptFor = 30 * 24 * time.Hour
	// duplicateWindow is how long that stream knows the ids it took: longer than a crashed relay's lease and
	// what its successor needs to send the rest again.
	duplicateWindow = 5 * time.Minute
)

// subjects are what a stream that we create takes, and what another's must.
var subjects = []string{eventSubjects + "*", auditSubject}

// ensureStream makes the stream where there is none. One that is there is its owner's, and never changed: it is
// only checked.
func ensureStream(ctx context.Context, js jetstream.JetStream) error {
	s, err := js.Stream(ctx, Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		s, err = js.CreateStream(ctx, jetstream.StreamConfig{
			Name: Stream, Description: "What the retry-worker recorded (CloudEvents)", Subjects: subjects,
			Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage, MaxAge: keptFor,
			Discard:    jetstream.DiscardNew, // a stream that is full refuses: the outbox keeps what it refused
			Duplicates: duplicateWindow,
		})
	}
	switch {
	case errors.Is(err, jetstream.ErrStreamNameAlreadyInUse): // another made it just now: look next time
		return fmt.Errorf("the stream %s is being made by another", Stream)
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount),
		errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("the server offers no JetStream for this account; enable it: %w", err)
	case err != nil:
		return fmt.Errorf("look for the stream %s, or create it: %w", Stream, err)
	}
	return checkStream(&s.CachedInfo().Config)
}

// checkStream tells why a stream cannot take our events.
func checkStream(c *jetstream.StreamConfig) error {
	if c.NoAck {
		return fmt.Errorf("the stream %s acknowledges nothing (no_ack), and what is not acknowledged cannot be let go of; "+
			"change the stream", Stream)
	}
	for _, subject := range subjects {
		if !slices.ContainsFunc(c.Subjects, func(pattern string) bool { return covers(pattern, subject) }) {
			return fmt.Errorf("the stream %s takes the subjects %q, expected %s among them; add it to the stream, or remove "+
				"the stream and it is created anew",
				Stream, c.Subjects, subject)
		}
	}
	return nil
}

// covers reports whether a pattern of NATS matches all that subject does, which is one of ours.
func covers(pattern, subject string) bool {
	p := strings.NewReplacer(`\*`, `[^.]+`, `>`, `.+`).Replace(regexp.QuoteMeta(pattern))
	matched, err := regexp.MatchString("^"+p+"$", subject)
	return err == nil && matched
}
