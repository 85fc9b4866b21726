package postgres

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// statement is one that a writer's connection has prepared.
type statement int

const (
	beginIt statement = iota
	takeHead
	loadHistories
	insertSubjects
	replaceEpisodes
	insertAttempts
	replaceDeadLetters
	loadRuns
	replaceRuns
	insertEntries
	insertOutbox
	insertAnswered
	mergeFigures
	mergeFingerprints
	letGo
	insertLink
	moveHead
	commitIt
	probeHead
	lockPurge
	purgeRecords
	purgeRest
	purgeRuns
)

const headText = "SELECT link, record, subject, at, hash FROM ledger_head WHERE one = 1"

// statements by their texts. All of them find rows by key alone.
var statements = [...]string{
	beginIt:            "BEGIN ISOLATION LEVEL READ COMMITTED", // each statement sees what was committed before it
	takeHead:           headText + " FOR UPDATE",
	loadHistories:      loadText(),
	insertSubjects:     subjectsTable.insert(""),
	replaceEpisodes:    episodesTable.replace("subject, number"),
	insertAttempts:     attemptsTable.insert(""),
	replaceDeadLetters: deadLettersTable.replace("id", "policy", "fingerprint"),
	loadRuns:           selectRuns + "WHERE r.id = ANY($1::text[]) FOR UPDATE OF r",
	replaceRuns:        bulkRunsTable.replace("id", bulkKept...),
	insertEntries:      entriesTable.insert(""),
	insertOutbox:       outboxTable.insert(""),
	// A run may come again after an ambiguous commit.
	insertAnswered: "INSERT INTO answered (first, last) SELECT first, max(last) FROM " + unnest(answeredTable.kinds) +
		" AS run (first, last) GROUP BY first ON CONFLICT (first) DO UPDATE SET last = greatest(answered.last, excluded.last)",
	mergeFigures:      figuresTable.merge(4, figureSums),
	mergeFingerprints: fingerprintTable.merge(1, fingerprintSums),
	letGo:             "DELETE FROM outbox WHERE sequence = ANY($1::bigint[])",
	// The last two are the earliest and the latest instant of the link's records.
	insertLink: `INSERT INTO ledger (number, at, first, digests, hash, latest, apart)
		SELECT $1::bigint, $2::bigint, $3::bigint, $4::bytea, $5::bytea, latest, greatest(apart, latest - $6::bigint, $7::bigint - latest)
		FROM (SELECT greatest($2::bigint, p.latest) AS latest, coalesce(p.apart, 0) AS apart
			FROM (SELECT) one LEFT JOIN ledger p ON p.number = $1::bigint - 1) now`,
	moveHead: "UPDATE ledger_head SET link = $1::bigint, record = $2::bigint, subject = $3::bigint, at = $4::bigint, hash = $5::bytea" +
		" WHERE one = 1",
	commitIt:     "COMMIT",
	probeHead:    "UPDATE ledger_head SET probed_at = $1::bigint WHERE one = 1",
	lockPurge:    "SELECT pg_advisory_xact_lock(7234297712310423)",
	purgeRecords: purgeRecordsText,
	purgeRest:    purgeRestText,
	purgeRuns:    purgeRunsText,
}

// loadText loads what is remembered of each lookup: a row for each subject that is known. It must come after
// takeHead has its row, in a statement of its own, or it would not see what the writer before has saved.
func loadText() string {
	return `SELECT l.n, s.key, ` + episodesTable.columns("e") + `, ` + attemptsTable.columns("last") + `, ` +
		attemptsTable.columns("same") + `, taken.answer, own.state, ` + deadLettersTable.columns("d") + `
FROM ` + unnest(lookupsTable.kinds) + ` WITH ORDINALITY AS l (` + lookupsTable.list() + `, n)
JOIN subjects s ON s.id = l.id AND s.policy = l.policy AND s.tenant = l.tenant
LEFT JOIN LATERAL (SELECT ` + episodesTable.list() + ` FROM episodes WHERE subject = s.key ORDER BY number DESC LIMIT 1) e ON true
LEFT JOIN LATERAL (SELECT ` + attemptsTable.list() + ` FROM attempts WHERE subject = s.key ORDER BY number DESC, revision DESC LIMIT 1) last ON true
LEFT JOIN LATERAL (SELECT ` + attemptsTable.list() + ` FROM attempts WHERE subject = s.key AND identity = l.identity
	ORDER BY number DESC, revision DESC LIMIT 1) same ON true
LEFT JOIN LATERAL (SELECT true AS answer FROM attempts r
	JOIN LATERAL (SELECT last FROM answered WHERE first <= r.record ORDER BY first DESC LIMIT 1) run ON run.last >= r.record
	WHERE r.subject = s.key AND r.number = same.number LIMIT 1) taken ON true
LEFT JOIN dead_letters own ON own.id = same.dead_letter AND own.subject = s.key
LEFT JOIN dead_letters d ON d.subject = s.key
	AND d.id = CASE WHEN l.dead_letter = '' THEN e.dead_letter ELSE l.dead_letter END`
}

// preparedKey is where a connection keeps what it has prepared.
const preparedKey = "retry-worker"

// prepare prepares all statements on a new connection, in one round trip.
func prepare(ctx context.Context, c *pgx.Conn) error {
	p := c.PgConn().StartPipeline(ctx)
	for s, text := range statements {
		p.SendPrepare(statement(s).name(), text, nil)
	}
	described, err := descriptions(p)
	if closed := p.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("prepare the statements: %w", err)
	}
	c.PgConn().CustomData()[preparedKey] = described
	return nil
}

func (s statement) name() string { return "retry_worker_" + strconv.Itoa(int(s)) }

func descriptions(p *pgconn.Pipeline) ([]*pgconn.StatementDescription, error) {
	if err := p.Sync(); err != nil {
		return nil, err
	}
	all := make([]*pgconn.StatementDescription, len(statements))
	for s := range all {
		result, err := p.GetResults()
		if err != nil {
			return nil, err
		}
		d, ok := result.(*pgconn.StatementDescription)
		if !ok {
			return nil, fmt.Errorf("%T is not the answer to a statement that is prepared", result)
		}
		d.Name = statement(s).name()
		all[s] = d
	}
	return all, nil
}

// prepared are the statements of a writer's connection.
func prepared(c *pgconn.PgConn) []*pgconn.StatementDescription {
	all, _ := c.CustomData()[preparedKey].([]*pgconn.StatementDescription)
	return all
}
