-- +goose Up
-- Bulk runs: one decision on many dead letters, and what became of each. Workers of the versions before go on working on this
-- schema: they neither begin runs nor carry them on, and triggers keep the outcomes of dead letters that they change. Nothing
-- is done where no run has to do with a dead letter.

ALTER TABLE dead_letters ADD COLUMN run TEXT NOT NULL DEFAULT ''; -- that decided on it

-- What a plan sums up, it reads from the index that it seeks in. The names stay, and what is sought by.
DROP INDEX dead_letters_by_kind;
CREATE INDEX dead_letters_by_kind ON dead_letters (state, policy, team, reason, record, subject, fingerprint, created_at, retry_count,
    max_retries, review_job_key, delivery);
DROP INDEX dead_letters_by_cause;
CREATE INDEX dead_letters_by_cause ON dead_letters (fingerprint, state, team, reason, record, subject, policy, created_at, retry_count,
    max_retries, review_job_key, delivery);

CREATE TABLE bulk_runs (
    id                 TEXT PRIMARY KEY,
    state              TEXT    NOT NULL,
    action             TEXT    NOT NULL,
    filter_policy      TEXT    NOT NULL,
    filter_team        TEXT    NOT NULL,
    filter_reason      TEXT    NOT NULL,
    filter_fingerprint TEXT    NOT NULL,
    filter_since       INTEGER NOT NULL,
    filter_until       INTEGER NOT NULL,
    filter_query       TEXT    NOT NULL,
    through            INTEGER NOT NULL,
    reason             TEXT    NOT NULL, -- redacted
    begun_by           TEXT    NOT NULL,
    force              INTEGER NOT NULL,
    fresh              INTEGER NOT NULL,
    now                INTEGER NOT NULL,
    per_minute         INTEGER NOT NULL,
    hold               TEXT    NOT NULL,
    held_at            INTEGER NOT NULL,
    changed_by         TEXT    NOT NULL,
    changed_at         INTEGER NOT NULL,
    created_at         INTEGER NOT NULL,
    started_at         INTEGER NOT NULL,
    ended_at           INTEGER NOT NULL,
    -- The last record of the commit it was begun in; the record up to which dead letters are in it; the number of the last.
    begun              INTEGER NOT NULL,
    gathered           INTEGER NOT NULL DEFAULT 0,
    numbered           INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE INDEX bulk_runs_by_state ON bulk_runs (state, id);

CREATE TABLE bulk_items (
    run         TEXT    NOT NULL,
    number      INTEGER NOT NULL,
    dead_letter TEXT    NOT NULL,
    subject     INTEGER NOT NULL,
    outcome     TEXT    NOT NULL,
    code        TEXT    NOT NULL,
    changed_at  INTEGER NOT NULL,
    decided_at  INTEGER NOT NULL,
    PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX bulk_items_by_outcome ON bulk_items (run, outcome, number);
CREATE INDEX bulk_items_of_letter  ON bulk_items (dead_letter, run);

-- How many items of each outcome a run has, those included that are purged.
CREATE TABLE bulk_counts (
    run     TEXT    NOT NULL,
    outcome TEXT    NOT NULL,
    n       INTEGER NOT NULL,
    PRIMARY KEY (run, outcome)
) STRICT, WITHOUT ROWID;

-- +goose StatementBegin
CREATE TRIGGER bulk_items_added AFTER INSERT ON bulk_items BEGIN
    INSERT INTO bulk_counts VALUES (NEW.run, NEW.outcome, 1) ON CONFLICT (run, outcome) DO UPDATE SET n = n + 1;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER bulk_items_moved AFTER UPDATE OF outcome ON bulk_items WHEN OLD.outcome <> NEW.outcome BEGIN
    UPDATE bulk_counts SET n = n - 1 WHERE run = OLD.run AND outcome = OLD.outcome;
    INSERT INTO bulk_counts VALUES (NEW.run, NEW.outcome, 1) ON CONFLICT (run, outcome) DO UPDATE SET n = n + 1;
END;
-- +goose StatementEnd

-- What is purged before its turn came is not decided any more: the run would wait for it for ever.
-- +goose StatementBegin
CREATE TRIGGER bulk_items_gone AFTER DELETE ON bulk_items WHEN OLD.outcome = 'planned' BEGIN
    UPDATE bulk_counts SET n = n - 1 WHERE run = OLD.run AND outcome = 'planned';
    INSERT INTO bulk_counts VALUES (OLD.run, 'refused', 1) ON CONFLICT (run, outcome) DO UPDATE SET n = n + 1;
END;
-- +goose StatementEnd

-- What a run decided on is verified as the dead letter goes on, whoever changes it. Episodes are saved before dead letters:
-- where the latest one names another dead letter, that took its place. A run decides on a dead letter once: where somebody
-- decided anew who knows of no runs, it is the run's no longer. What has ended stays as it ended.
-- +goose StatementBegin
CREATE TRIGGER dead_letters_verified AFTER UPDATE ON dead_letters
    WHEN NEW.run <> '' AND (OLD.run <> NEW.run OR OLD.reviewed_at = NEW.reviewed_at)
        AND (OLD.run <> NEW.run OR OLD.state <> NEW.state OR OLD.delivery <> NEW.delivery) BEGIN
    UPDATE bulk_items SET outcome = v.outcome, decided_at = NEW.reviewed_at, changed_at = (SELECT at FROM ledger_head WHERE one = 1)
        FROM (SELECT CASE
            WHEN NEW.state = 'recovered' THEN 'recovered'
            WHEN NEW.state = 'superseded' THEN CASE WHEN (SELECT dead_letter FROM episodes WHERE subject = NEW.subject
                ORDER BY number DESC LIMIT 1) NOT IN ('', NEW.id) THEN 'dead_again' ELSE 'superseded' END
            WHEN NEW.state = 'discarded' THEN CASE NEW.delivery WHEN 'pending' THEN 'decided' WHEN 'nobody' THEN 'nobody' ELSE 'discarded' END
            WHEN NEW.state = 'open' OR NEW.delivery = 'nobody' THEN 'nobody'
            WHEN NEW.delivery = 'taken' THEN 'taken'
            ELSE 'decided' END AS outcome) v
        WHERE run = NEW.run AND number = (SELECT number FROM bulk_items WHERE dead_letter = NEW.id AND run = NEW.run)
            AND bulk_items.outcome IN ('planned', 'decided', 'taken') AND bulk_items.outcome <> v.outcome;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER dead_letters_taken_over AFTER UPDATE ON dead_letters
    WHEN OLD.run <> '' AND NEW.run = OLD.run AND OLD.reviewed_at <> NEW.reviewed_at BEGIN
    UPDATE dead_letters SET run = '' WHERE id = NEW.id;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER dead_letters_forgotten AFTER DELETE ON dead_letters BEGIN
    DELETE FROM bulk_items WHERE (run, number) IN (SELECT run, number FROM bulk_items WHERE dead_letter = OLD.id);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER bulk_runs_gone AFTER DELETE ON bulk_runs BEGIN
    DELETE FROM bulk_counts WHERE run = OLD.id;
    DELETE FROM bulk_items WHERE run = OLD.id;
END;
-- +goose StatementEnd
