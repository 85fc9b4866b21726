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
CREATE TABLE ledger (
    number  bigint PRIMARY KEY,
    at      bigint NOT NULL,
    first   bigint NOT NULL,
    hash    bytea NOT NULL,
    digests bytea NOT NULL
);

ALTER TABLE ledger ALTER COLUMN digests SET STORAGE EXTERNAL;

-- One row: where the next link, record and subject are numbered from. Who writes takes it first. Every commit
-- makes a new version of it, so that its page has room for many, and is cleaned early.
CREATE TABLE ledger_head (
    one       bigint PRIMARY KEY CHECK (one = 1),
    link      bigint NOT NULL,
    record    bigint NOT NULL,
    subject   bigint NOT NULL,
    at        bigint NOT NULL,
    probed_at bigint NOT NULL,
    hash      bytea NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

INSERT INTO ledger_head (one, link, record, subject, at, probed_at, hash)
VALUES (1, 0, 0, 0, 0, 0, decode(repeat('00', 32), 'hex'));

-- Events on their way, one queue per destination, in order of sequence per key.
CREATE TABLE outbox (
    sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at       bigint NOT NULL,
    id       text COLLATE "C" NOT NULL,
    queue    text COLLATE "C" NOT NULL,
    key      text COLLATE "C" NOT NULL,
    type     text NOT NULL,
    body     text NOT NULL
);

-- One row: the oldest version of the schema that a binary must know to work on this database.
CREATE TABLE schema_compatibility (
    one            bigint PRIMARY KEY CHECK (one = 1),
    min_compatible bigint NOT NULL
);

INSERT INTO schema_compatibility (one, min_compatible) VALUES (1, 1);
