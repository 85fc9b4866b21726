-- +goose Up
-- Dead letters as people work with them: a list, what was decided and by whom, whether a process waits. Workers of the
-- versions before go on working on this schema: they leave the new columns as they are, and triggers keep what they do not
-- know of. fingerprint is '-' in a row of theirs until somebody who knows computes it.

ALTER TABLE dead_letters ADD COLUMN policy         TEXT    NOT NULL DEFAULT '';
ALTER TABLE dead_letters ADD COLUMN fingerprint    TEXT    NOT NULL DEFAULT '-';
ALTER TABLE dead_letters ADD COLUMN delivery       TEXT    NOT NULL DEFAULT '';
ALTER TABLE dead_letters ADD COLUMN answer         INTEGER NOT NULL DEFAULT 0; -- record of the one on its way
ALTER TABLE dead_letters ADD COLUMN review_job_key INTEGER NOT NULL DEFAULT 0;
ALTER TABLE dead_letters ADD COLUMN review_seen    INTEGER NOT NULL DEFAULT 0;
ALTER TABLE dead_letters ADD COLUMN review_discard INTEGER NOT NULL DEFAULT 0;
ALTER TABLE dead_letters ADD COLUMN review_force   INTEGER NOT NULL DEFAULT 0;
ALTER TABLE dead_letters ADD COLUMN review_fresh   INTEGER NOT NULL DEFAULT 0;
ALTER TABLE dead_letters ADD COLUMN review_reason  TEXT    NOT NULL DEFAULT ''; -- redacted
ALTER TABLE dead_letters ADD COLUMN reviewed_by    TEXT    NOT NULL DEFAULT '';
ALTER TABLE dead_letters ADD COLUMN reviewed_at    INTEGER NOT NULL DEFAULT 0;
ALTER TABLE dead_letters ADD COLUMN review_next    INTEGER NOT NULL DEFAULT 0;

UPDATE dead_letters SET policy = coalesce((SELECT policy FROM subjects WHERE key = subject), '');

-- Pages of a state; of a state, policy, team and reason; of a cause. Each is sought from the newest on.
CREATE INDEX dead_letters_by_state ON dead_letters (state, record, subject);
CREATE INDEX dead_letters_by_kind  ON dead_letters (state, policy, team, reason, record, subject);
CREATE INDEX dead_letters_by_cause ON dead_letters (fingerprint, state, team, reason, record);

-- How many there are of each kind, so that they need not be counted. Triggers keep it.
CREATE TABLE dead_letter_counts (
    policy TEXT    NOT NULL,
    state  TEXT    NOT NULL,
    team   TEXT    NOT NULL,
    reason TEXT    NOT NULL,
    n      INTEGER NOT NULL,
    PRIMARY KEY (policy, state, team, reason)
) STRICT, WITHOUT ROWID;

INSERT INTO dead_letter_counts SELECT policy, state, team, reason, count(*) FROM dead_letters GROUP BY policy, state, team, reason;

-- The same of each cause, for those who look for words of an error.
CREATE TABLE dead_letter_causes (
    fingerprint TEXT    NOT NULL,
    state       TEXT    NOT NULL,
    team        TEXT    NOT NULL,
    reason      TEXT    NOT NULL,
    n           INTEGER NOT NULL,
    PRIMARY KEY (fingerprint, state, team, reason)
) STRICT, WITHOUT ROWID;

INSERT INTO dead_letter_causes SELECT fingerprint, state, team, reason, count(*) FROM dead_letters GROUP BY fingerprint, state, team, reason;

-- +goose StatementBegin
CREATE TRIGGER dead_letters_born AFTER INSERT ON dead_letters BEGIN
    INSERT INTO dead_letter_counts VALUES (NEW.policy, NEW.state, NEW.team, NEW.reason, 1)
        ON CONFLICT (policy, state, team, reason) DO UPDATE SET n = n + 1;
    INSERT INTO dead_letter_causes VALUES (NEW.fingerprint, NEW.state, NEW.team, NEW.reason, 1)
        ON CONFLICT (fingerprint, state, team, reason) DO UPDATE SET n = n + 1;
    -- A worker of a version before does not say of which policy it is.
    UPDATE dead_letters SET policy = coalesce((SELECT policy FROM subjects WHERE key = NEW.subject), '') WHERE NEW.policy = '' AND id = NEW.id;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER dead_letters_moved AFTER UPDATE OF policy, fingerprint, state, team, reason ON dead_letters
    WHEN OLD.state <> NEW.state OR OLD.policy <> NEW.policy OR OLD.fingerprint <> NEW.fingerprint OR OLD.team <> NEW.team OR OLD.reason <> NEW.reason BEGIN
    UPDATE dead_letter_counts SET n = n - 1 WHERE policy = OLD.policy AND state = OLD.state AND team = OLD.team AND reason = OLD.reason;
    UPDATE dead_letter_causes SET n = n - 1 WHERE fingerprint = OLD.fingerprint AND state = OLD.state AND team = OLD.team AND reason = OLD.reason;
    INSERT INTO dead_letter_counts VALUES (NEW.policy, NEW.state, NEW.team, NEW.reason, 1)
        ON CONFLICT (policy, state, team, reason) DO UPDATE SET n = n + 1;
    INSERT INTO dead_letter_causes VALUES (NEW.fingerprint, NEW.state, NEW.team, NEW.reason, 1)
        ON CONFLICT (fingerprint, state, team, reason) DO UPDATE SET n = n + 1;
END;
-- +goose StatementEnd

-- What is purged is counted no longer, nor among the figures' running totals.
-- +goose StatementBegin
CREATE TRIGGER dead_letters_purged AFTER DELETE ON dead_letters BEGIN
    UPDATE dead_letter_counts SET n = n - 1 WHERE policy = OLD.policy AND state = OLD.state AND team = OLD.team AND reason = OLD.reason;
    UPDATE dead_letter_causes SET n = n - 1 WHERE fingerprint = OLD.fingerprint AND state = OLD.state AND team = OLD.team AND reason = OLD.reason;
    UPDATE figures SET value = value - 1 WHERE slot = 0 AND policy = OLD.policy AND name = 'dead_letters_' || OLD.state AND bucket = 0;
END;
-- +goose StatementEnd
