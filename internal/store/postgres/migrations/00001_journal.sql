-- +goose Up
-- Times are milliseconds since 1970, 0 for none. Keys of subjects are given in the order they were first seen,
-- so that what happens to a subject within its hours lies close together on disk. Texts that are compared are
-- in the collation "C": bytes, as SQLite compares them. Columns of fixed width come first, which saves padding.

CREATE TABLE subjects (
    key    bigint PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    policy text COLLATE "C" NOT NULL,
    id     text COLLATE "C" NOT NULL,
    UNIQUE (id, policy, tenant)
);

-- The fill factor leaves room for the next versions of an episode beside it.
CREATE TABLE episodes (
    subject              bigint NOT NULL,
    number               bigint NOT NULL,
    process_instance_key bigint NOT NULL,
    retries              bigint NOT NULL,
    scheduled            bigint NOT NULL,
    first_failure        bigint NOT NULL,
    opened_at            bigint NOT NULL,
    closed_at            bigint NOT NULL,
    next_retry_time      bigint NOT NULL,
    state                text COLLATE "C" NOT NULL,
    dead_letter          text COLLATE "C" NOT NULL, -- id of the one that is open or reprocessed, empty for none
    PRIMARY KEY (subject, number)
) WITH (fillfactor = 85);

CREATE INDEX episodes_pending ON episodes (next_retry_time, subject) WHERE state IN ('scheduled', 'reprocessing');

-- Append-only: RetryAttempt of RN-BIL-005 §12.2, the audit's record of §7.1.
CREATE TABLE attempts (
    record               bigint PRIMARY KEY,
    subject              bigint NOT NULL,
    number               bigint NOT NULL,
    revision             bigint NOT NULL,
    episode              bigint NOT NULL,
    job_key              bigint NOT NULL,
    element_instance_key bigint NOT NULL,
    process_instance_key bigint NOT NULL,
    given_count          bigint NOT NULL, -- −1 where the process gave none
    analysed_count       bigint NOT NULL,
    received_at          bigint NOT NULL,
    took_us              bigint NOT NULL,
    analysed_at          bigint NOT NULL,
    first_failure        bigint NOT NULL,
    retry_count          bigint NOT NULL,
    max_retries          bigint NOT NULL,
    delay_ns             bigint NOT NULL,
    raw_ns               bigint NOT NULL,
    next_retry_time      bigint NOT NULL,
    jitter_ratio         double precision NOT NULL,
    at_maximum           boolean NOT NULL,
    count_assumed        boolean NOT NULL,
    identity             bytea NOT NULL,
    rule                 text NOT NULL,
    error                text NOT NULL, -- redacted
    outcome              text NOT NULL,
    classification       text NOT NULL,
    reason               text NOT NULL,
    matched_rule         text NOT NULL,
    retry_reason         text NOT NULL,
    team                 text NOT NULL,
    dead_letter          text COLLATE "C" NOT NULL
);

CREATE UNIQUE INDEX attempts_of_subject ON attempts (subject, number, revision, identity);

CREATE TABLE dead_letters (
    subject              bigint NOT NULL,
    episode              bigint NOT NULL,
    record               bigint NOT NULL,
    retry_count          bigint NOT NULL,
    max_retries          bigint NOT NULL,
    process_instance_key bigint NOT NULL,
    created_at           bigint NOT NULL,
    changed_at           bigint NOT NULL,
    id                   text COLLATE "C" PRIMARY KEY,
    state                text COLLATE "C" NOT NULL,
    outcome              text NOT NULL,
    reason               text NOT NULL,
    team                 text NOT NULL
) WITH (fillfactor = 85);

CREATE INDEX dead_letters_of_subject ON dead_letters (subject);

-- Records of the audit that are no attempts: rejections, outcomes, reviews. They share the attempts' numbers.
CREATE TABLE entries (
    record bigint PRIMARY KEY,
    at     bigint NOT NULL,
    kind   text NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    policy text COLLATE "C" NOT NULL,
    id     text COLLATE "C" NOT NULL,
    body   text NOT NULL
);

CREATE INDEX entries_of_subject ON entries (id, policy, tenant) WHERE id <> '';

-- Runs of attempts whose answer the engine took, both ends included, they never overlap.
CREATE TABLE answered (
    first bigint PRIMARY KEY,
    last  bigint NOT NULL
);

-- The hash chain, one link per commit. digests are 32 bytes for each of its records: not to be compressed.
-- latest is the greatest at so far, apart how far the instant of a record ever was from its link's latest:
-- neither ever falls, by which a period's records are found though the writers' clocks differ.
CREATE TABLE ledger (
    number  bigint PRIMARY KEY,
    at      bigint NOT NULL,
    latest  bigint NOT NULL,
    apart   bigint NOT NULL,
    first   bigint NOT NULL,
    hash    bytea NOT NULL,
    digests bytea NOT NULL
);

ALTER TABLE ledger ALTER COLUMN digests SET STORAGE EXTERNAL;

CREATE INDEX ledger_by_time ON ledger (latest, number);

-- One row: where the next link, record and subject are numbered from, and up to which record all are purged.
-- Who writes takes it first. Every commit makes a new version of it, so that its page has room for many, and is
-- cleaned early.
CREATE TABLE ledger_head (
    one       bigint PRIMARY KEY CHECK (one = 1),
    link      bigint NOT NULL,
    record    bigint NOT NULL,
    subject   bigint NOT NULL,
    at        bigint NOT NULL,
    probed_at bigint NOT NULL,
    purged    bigint NOT NULL,
    hash      bytea NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

INSERT INTO ledger_head (one, link, record, subject, at, probed_at, purged, hash)
VALUES (1, 0, 0, 0, 0, 0, 0, decode(repeat('00', 32), 'hex'));

-- Sums of what happened in each slot of time, and in slot 0 running totals (R19). Those of now change with every
-- commit, so that their pages have room for it, and are cleaned early.
CREATE TABLE figures (
    slot   bigint NOT NULL,
    bucket bigint NOT NULL,
    value  bigint NOT NULL,
    policy text COLLATE "C" NOT NULL,
    name   text COLLATE "C" NOT NULL,
    PRIMARY KEY (slot, policy, name, bucket)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);

-- What is known of all errors with one cause; kept for good (R24).
CREATE TABLE fingerprints (
    first_seen     bigint NOT NULL,
    last_seen      bigint NOT NULL,
    failures       bigint NOT NULL,
    retried        bigint NOT NULL,
    exhausted      bigint NOT NULL,
    permanent      bigint NOT NULL,
    recovered      bigint NOT NULL,
    id             text COLLATE "C" PRIMARY KEY,
    policy         text COLLATE "C" NOT NULL,
    reason         text NOT NULL,
    classification text NOT NULL,
    pattern        text NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);

-- Events on their way, one queue per destination, in order of sequence per key. What is published goes: it is
-- cleaned by the number of rows, however large the table was.
CREATE TABLE outbox (
    sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at       bigint NOT NULL,
    id       text COLLATE "C" NOT NULL,
    queue    text COLLATE "C" NOT NULL,
    key      text COLLATE "C" NOT NULL,
    type     text NOT NULL,
    body     text NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);

CREATE INDEX outbox_of_queue ON outbox (queue, sequence);

-- Who does alone what one of several must do, and until when by the database's clock.
CREATE TABLE leases (
    expires_at bigint NOT NULL,
    name       text COLLATE "C" PRIMARY KEY,
    holder     text COLLATE "C" NOT NULL
);

-- One row: the oldest version of the schema that a binary must know to work on this database.
CREATE TABLE schema_compatibility (
    one            bigint PRIMARY KEY CHECK (one = 1),
    min_compatible bigint NOT NULL
);

INSERT INTO schema_compatibility (one, min_compatible) VALUES (1, 1);
