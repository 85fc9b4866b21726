-- The journal's schema, version 1, of both dialects: a dialect says what it calls INT, BLOB and JSON, and what it puts
-- behind a table. Instants are milliseconds since 1970, 0 is none.

-- Append-only: what happened. body is the JSON that the digest in the ledger covers, with record, kind, subject and at.
CREATE TABLE records (
    record  INT  NOT NULL PRIMARY KEY,
    kind    TEXT NOT NULL,
    subject INT  NOT NULL, -- subjects.key, 0 for none
    at      INT  NOT NULL,
    body    JSON NOT NULL
)STRICT;

CREATE INDEX records_of_subject ON records (subject);

CREATE INDEX records_of_expunges ON records (record) WHERE kind IN ('purge', 'erasure');

-- The hash chain, one link per commit. digests are 32 bytes for each of its records; answered are runs of records whose
-- answer the engine took. messages are those of the outbox that came with it, as digests and from the number in message
-- on, and letgo runs of those that were let go of.
CREATE TABLE ledger (
    number   INT  NOT NULL PRIMARY KEY,
    at       INT  NOT NULL,
    first    INT  NOT NULL,
    digests  BLOB NOT NULL,
    answered TEXT NOT NULL,
    message  INT  NOT NULL,
    messages BLOB NOT NULL,
    letgo    TEXT NOT NULL,
    hash     BLOB NOT NULL
)STRICT;

CREATE INDEX ledger_by_first ON ledger (first, number);

CREATE INDEX ledger_by_message ON ledger (message, number);

-- One row: where the next link, record, subject and message are numbered from. Who writes takes the row first.
CREATE TABLE ledger_head (
    one       INT  NOT NULL PRIMARY KEY CHECK (one = 1),
    link      INT  NOT NULL,
    record    INT  NOT NULL,
    subject   INT  NOT NULL,
    message   INT  NOT NULL,
    hash      BLOB NOT NULL,
    at        INT  NOT NULL,
    probed_at INT  NOT NULL
)STRICT;

-- One row, made with the tables: what the identities in records are keyed with. It goes where the journal goes, and nowhere
-- else.
CREATE TABLE identity_key (
    key BLOB NOT NULL
)STRICT;

-- What follows is derived from the records above; `audit verify` holds it against them, `journal rebuild` makes it anew.

-- A subject's state. last, dead_letter and destination are what of the body is sought by.
CREATE TABLE subjects (
    key         INT  NOT NULL PRIMARY KEY,
    tenant      TEXT NOT NULL,
    policy      TEXT NOT NULL,
    id          TEXT NOT NULL,
    last        INT  NOT NULL,
    dead_letter TEXT NOT NULL,
    destination TEXT NOT NULL, -- that it is, or is held for; empty for none
    body        JSON NOT NULL,
    UNIQUE (id, policy, tenant)
)STRICT;

CREATE INDEX subjects_held ON subjects (key) WHERE destination <> '';

-- chance is the thousandths of retries of its kind that are accepted, by what was learnt: no record tells it. deadline is
-- 2^62 where there is none, cents what the claim is worth. assignee is empty for nobody.
CREATE TABLE dead_letters (
    record      INT  NOT NULL PRIMARY KEY,
    id          TEXT NOT NULL,
    subject     INT  NOT NULL,
    state       TEXT NOT NULL,
    policy      TEXT NOT NULL,
    team        TEXT NOT NULL,
    reason      TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    at          INT  NOT NULL,
    chance      INT  NOT NULL,
    deadline    INT  NOT NULL,
    cents       INT  NOT NULL,
    assignee    TEXT NOT NULL,
    follow_up   INT  NOT NULL,
    body        JSON NOT NULL
)STRICT;

CREATE INDEX dead_letters_by_id ON dead_letters (id);

CREATE INDEX dead_letters_of_subject ON dead_letters (subject);

-- In the order in which dead letters are counted, with what filters and the order by urgency ask for.
CREATE INDEX dead_letters_by_cause ON dead_letters (state, fingerprint, policy, team, reason, assignee, record, at, cents,
    deadline, chance, subject, follow_up);

-- One for each other order of a list.
CREATE INDEX dead_letters_by_record ON dead_letters (state, record);

CREATE INDEX dead_letters_by_deadline ON dead_letters (state, deadline, (-cents), record);

CREATE INDEX dead_letters_by_amount ON dead_letters (state, (-cents), record);

-- Runs of at most 4096 records of attempts whose answer the engine took, both ends included. until is when the engine
-- would have given the job to another, in milliseconds, where who answered was not who recorded; else 0.
CREATE TABLE answered (
    first INT NOT NULL,
    last  INT NOT NULL,
    until INT NOT NULL,
    PRIMARY KEY (first, until)
)KEYED;

-- Sums of what happened: in a slot of time (R19), in a week of a cause (fingerprints.id) at a destination (R26), and in
-- slot 0 of a cause for good (R24).
CREATE TABLE sums (
    slot        INT  NOT NULL,
    name        TEXT NOT NULL,
    policy      TEXT NOT NULL,
    cause       TEXT NOT NULL,
    destination TEXT NOT NULL,
    bucket      INT  NOT NULL,
    n           INT  NOT NULL,
    PRIMARY KEY (slot, cause, name, policy, destination, bucket)
)KEYED;

-- What is known of all errors with one cause; kept for good (R24).
CREATE TABLE fingerprints (
    id             TEXT NOT NULL PRIMARY KEY,
    policy         TEXT NOT NULL,
    reason         TEXT NOT NULL,
    classification TEXT NOT NULL,
    pattern        TEXT NOT NULL,
    first_seen     INT  NOT NULL,
    last_seen      INT  NOT NULL,
    began          INT  NOT NULL, -- with what follows work in hand, which no record tells (R34)
    prior          INT  NOT NULL,
    told           INT  NOT NULL,
    news           TEXT NOT NULL
)KEYED;

CREATE TABLE bulk_runs (
    id    TEXT NOT NULL PRIMARY KEY,
    state TEXT NOT NULL,
    body  JSON NOT NULL
)KEYED;

CREATE TABLE bulk_items (
    run     TEXT NOT NULL,
    number  INT  NOT NULL,
    record  INT  NOT NULL, -- dead_letters.record
    outcome TEXT NOT NULL,
    code    TEXT NOT NULL,
    changed INT  NOT NULL,
    decided INT  NOT NULL,
    PRIMARY KEY (run, number)
)KEYED;

CREATE INDEX bulk_items_by_outcome ON bulk_items (run, outcome, number);

CREATE INDEX bulk_items_of_letter ON bulk_items (record, run);

-- Events and answers on their way, one queue per destination, in order of sequence per key; the queue sessions is of those
-- that were ended. Links vouch for what is there.
CREATE TABLE outbox (
    sequence INT  NOT NULL PRIMARY KEY,
    id       TEXT NOT NULL,
    queue    TEXT NOT NULL,
    key      TEXT NOT NULL,
    subject  INT  NOT NULL, -- subjects.key, 0 for none
    type     TEXT NOT NULL,
    body     TEXT NOT NULL,
    at       INT  NOT NULL
)STRICT;

CREATE INDEX outbox_of_queue ON outbox (queue, sequence);

-- What follows is work in hand, and no part of the audit.

-- Who does alone what one of several must do, and until when.
CREATE TABLE leases (
    name       TEXT NOT NULL PRIMARY KEY,
    holder     TEXT NOT NULL,
    expires_at INT  NOT NULL
)KEYED;

-- How many claims passed a destination's gate at once in a minute, counted from 1970.
CREATE TABLE admissions (
    minute      INT  NOT NULL,
    destination TEXT NOT NULL,
    n           INT  NOT NULL,
    PRIMARY KEY (minute, destination)
)KEYED;

-- How far a team has been told by one channel.
CREATE TABLE notice_marks (
    team    TEXT NOT NULL,
    channel TEXT NOT NULL,
    kind    TEXT NOT NULL,
    record  INT  NOT NULL,
    day     TEXT NOT NULL,
    at      INT  NOT NULL,
    PRIMARY KEY (team, channel, kind)
)KEYED;

-- One row: the version of this schema.
CREATE TABLE journal_schema (
    version INT NOT NULL PRIMARY KEY
)STRICT;
