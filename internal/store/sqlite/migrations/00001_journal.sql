-- +goose Up
-- Times are milliseconds since 1970, 0 for none. Keys of subjects are given in the order they were first seen,
-- so that what happens to a subject within its hours lies close together on disk.

CREATE TABLE subjects (
    key    INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    policy TEXT NOT NULL,
    id     TEXT NOT NULL,
    UNIQUE (id, policy, tenant)
) STRICT;

CREATE TABLE episodes (
    subject              INTEGER NOT NULL,
    number               INTEGER NOT NULL,
    state                TEXT    NOT NULL,
    process_instance_key INTEGER NOT NULL,
    retries              INTEGER NOT NULL,
    scheduled            INTEGER NOT NULL,
    first_failure        INTEGER NOT NULL,
    opened_at            INTEGER NOT NULL,
    closed_at            INTEGER NOT NULL,
    next_retry_time      INTEGER NOT NULL,
    dead_letter          TEXT    NOT NULL, -- id of the one that is open or reprocessed, empty for none
    PRIMARY KEY (subject, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX episodes_pending ON episodes (next_retry_time) WHERE state IN ('scheduled', 'reprocessing');

-- Append-only: RetryAttempt of RN-BIL-005 §12.2, the audit's record of §7.1.
CREATE TABLE attempts (
    record               INTEGER PRIMARY KEY,
    subject              INTEGER NOT NULL,
    number               INTEGER NOT NULL,
    revision             INTEGER NOT NULL,
    episode              INTEGER NOT NULL,
    identity             BLOB    NOT NULL,
    job_key              INTEGER NOT NULL,
    element_instance_key INTEGER NOT NULL,
    process_instance_key INTEGER NOT NULL,
    rule                 TEXT    NOT NULL,
    error                TEXT    NOT NULL, -- redacted
    given_count          INTEGER NOT NULL, -- −1 where the process gave none
    analysed_count       INTEGER NOT NULL,
    received_at          INTEGER NOT NULL,
    took_us              INTEGER NOT NULL,
    analysed_at          INTEGER NOT NULL,
    first_failure        INTEGER NOT NULL,
    outcome              TEXT    NOT NULL,
    classification       TEXT    NOT NULL,
    reason               TEXT    NOT NULL,
    matched_rule         TEXT    NOT NULL,
    retry_count          INTEGER NOT NULL,
    max_retries          INTEGER NOT NULL,
    delay_ns             INTEGER NOT NULL,
    raw_ns               INTEGER NOT NULL,
    jitter_ratio         REAL    NOT NULL,
    at_maximum           INTEGER NOT NULL,
    next_retry_time      INTEGER NOT NULL,
    retry_reason         TEXT    NOT NULL,
    team                 TEXT    NOT NULL,
    count_assumed        INTEGER NOT NULL,
    dead_letter          TEXT    NOT NULL
) STRICT;

CREATE UNIQUE INDEX attempts_of_subject ON attempts (subject, number, revision, identity);

CREATE TABLE dead_letters (
    id                   TEXT PRIMARY KEY,
    subject              INTEGER NOT NULL,
    state                TEXT    NOT NULL,
    episode              INTEGER NOT NULL,
    record               INTEGER NOT NULL,
    outcome              TEXT    NOT NULL,
    reason               TEXT    NOT NULL,
    team                 TEXT    NOT NULL,
    retry_count          INTEGER NOT NULL,
    max_retries          INTEGER NOT NULL,
    process_instance_key INTEGER NOT NULL,
    created_at           INTEGER NOT NULL,
    changed_at           INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX dead_letters_of_subject ON dead_letters (subject);

-- Records of the audit that are no attempts: rejections, outcomes, reviews. They share the attempts' numbers.
CREATE TABLE entries (
    record INTEGER PRIMARY KEY,
    kind   TEXT    NOT NULL,
    at     INTEGER NOT NULL,
    tenant TEXT    NOT NULL,
    policy TEXT    NOT NULL,
    id     TEXT    NOT NULL,
    body   TEXT    NOT NULL
) STRICT;

CREATE INDEX entries_of_subject ON entries (id, policy, tenant) WHERE id <> '';

-- Runs of attempts whose answer the engine took, both ends included; they never overlap.
CREATE TABLE answered (
    first INTEGER PRIMARY KEY,
    last  INTEGER NOT NULL
) STRICT;

-- The hash chain, one link per commit. digests are 32 bytes for each of its records. Clocks of several writers
-- differ, so that instants are not quite in order: latest is the greatest at so far, apart how far the instant
-- of a record ever was from its link's latest. Neither ever falls, by which a period's records are found.
CREATE TABLE ledger (
    number  INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    latest  INTEGER NOT NULL,
    apart   INTEGER NOT NULL,
    first   INTEGER NOT NULL,
    digests BLOB    NOT NULL,
    hash    BLOB    NOT NULL
) STRICT;

CREATE INDEX ledger_by_time ON ledger (latest);

-- One row: where the next link, record and subject are numbered from, and up to which record all are purged.
-- Who writes takes it first.
CREATE TABLE ledger_head (
    one       INTEGER PRIMARY KEY CHECK (one = 1),
    link      INTEGER NOT NULL,
    record    INTEGER NOT NULL,
    subject   INTEGER NOT NULL,
    hash      BLOB    NOT NULL,
    at        INTEGER NOT NULL,
    probed_at INTEGER NOT NULL,
    purged    INTEGER NOT NULL
) STRICT;

INSERT INTO ledger_head VALUES (1, 0, 0, 0, zeroblob(32), 0, 0, 0);

-- Sums of what happened in each slot of time, and in slot 0 running totals (R19).
CREATE TABLE figures (
    slot   INTEGER NOT NULL,
    policy TEXT    NOT NULL,
    name   TEXT    NOT NULL,
    bucket INTEGER NOT NULL,
    value  INTEGER NOT NULL,
    PRIMARY KEY (slot, policy, name, bucket)
) STRICT, WITHOUT ROWID;

-- What is known of all errors with one cause; kept for good (R24).
CREATE TABLE fingerprints (
    id             TEXT PRIMARY KEY,
    policy         TEXT    NOT NULL,
    reason         TEXT    NOT NULL,
    classification TEXT    NOT NULL,
    pattern        TEXT    NOT NULL,
    first_seen     INTEGER NOT NULL,
    last_seen      INTEGER NOT NULL,
    failures       INTEGER NOT NULL,
    retried        INTEGER NOT NULL,
    exhausted      INTEGER NOT NULL,
    permanent      INTEGER NOT NULL,
    recovered      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Events on their way, one queue per destination, in order of sequence per key.
CREATE TABLE outbox (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    id       TEXT    NOT NULL,
    queue    TEXT    NOT NULL,
    key      TEXT    NOT NULL,
    type     TEXT    NOT NULL,
    body     TEXT    NOT NULL,
    at       INTEGER NOT NULL
) STRICT;

CREATE INDEX outbox_of_queue ON outbox (queue);

-- Who does alone what one of several must do, and until when.
CREATE TABLE leases (
    name       TEXT PRIMARY KEY,
    holder     TEXT    NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One row: the oldest version of the schema that a binary must know to work on this database.
CREATE TABLE schema_compatibility (
    one            INTEGER PRIMARY KEY CHECK (one = 1),
    min_compatible INTEGER NOT NULL
) STRICT;

INSERT INTO schema_compatibility VALUES (1, 1);
