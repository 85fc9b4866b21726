-- +goose Up
-- Bulk runs: one decision on many dead letters, and what became of each. Workers of the versions before go on working on this
-- schema: they neither begin runs nor carry them on, and triggers keep the outcomes of dead letters that they change. Nothing
-- is done where no run has to do with a dead letter.

-- While a backup reads the table for minutes, the workers must not wait behind the change that waits for it: who brings
-- it tries again.
SET LOCAL lock_timeout = '500ms';
ALTER TABLE dead_letters ADD COLUMN run text COLLATE "C" NOT NULL DEFAULT ''; -- that decided on it

CREATE TABLE bulk_runs (
    filter_since       bigint  NOT NULL,
    filter_until       bigint  NOT NULL,
    through            bigint  NOT NULL,
    per_minute         bigint  NOT NULL,
    held_at            bigint  NOT NULL,
    changed_at         bigint  NOT NULL,
    created_at         bigint  NOT NULL,
    started_at         bigint  NOT NULL,
    ended_at           bigint  NOT NULL,
    -- The last record of the commit it was begun in; the record up to which dead letters are in it; the number of the last.
    begun              bigint  NOT NULL,
    gathered           bigint  NOT NULL DEFAULT 0,
    numbered           bigint  NOT NULL DEFAULT 0,
    force              boolean NOT NULL,
    fresh              boolean NOT NULL,
    now                boolean NOT NULL,
    id                 text COLLATE "C" PRIMARY KEY,
    state              text COLLATE "C" NOT NULL,
    action             text NOT NULL,
    filter_policy      text NOT NULL,
    filter_team        text NOT NULL,
    filter_reason      text NOT NULL,
    filter_fingerprint text NOT NULL,
    filter_query       text NOT NULL,
    reason             text NOT NULL, -- redacted
    begun_by           text NOT NULL,
    hold               text NOT NULL,
    changed_by         text NOT NULL
) WITH (fillfactor = 50);

CREATE INDEX bulk_runs_by_state ON bulk_runs (state, id);

CREATE TABLE bulk_items (
    number      bigint NOT NULL,
    subject     bigint NOT NULL,
    changed_at  bigint NOT NULL,
    decided_at  bigint NOT NULL,
    run         text COLLATE "C" NOT NULL,
    dead_letter text COLLATE "C" NOT NULL,
    outcome     text COLLATE "C" NOT NULL,
    code        text NOT NULL,
    PRIMARY KEY (run, number)
) WITH (fillfactor = 85);

CREATE INDEX bulk_items_by_outcome ON bulk_items (run, outcome, number);
CREATE INDEX bulk_items_of_letter  ON bulk_items (dead_letter, run);

-- How many items of each outcome a run has, those included that are purged. It changes with every item, so that its pages
-- have room for it, and are cleaned early.
CREATE TABLE bulk_counts (
    n       bigint NOT NULL,
    run     text COLLATE "C" NOT NULL,
    outcome text COLLATE "C" NOT NULL,
    PRIMARY KEY (run, outcome)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);

-- Who changes several of these counts at once takes them in the order of their keys.
-- +goose StatementBegin
CREATE FUNCTION bulk_items_added() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO bulk_counts AS c (n, run, outcome)
    SELECT count(*), run, outcome FROM added GROUP BY run, outcome ORDER BY run, outcome
    ON CONFLICT (run, outcome) DO UPDATE SET n = c.n + excluded.n;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER bulk_items_added AFTER INSERT ON bulk_items REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION bulk_items_added();

-- +goose StatementBegin
CREATE FUNCTION bulk_items_moved() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO bulk_counts AS c (n, run, outcome)
    SELECT sum(n)::bigint, run, outcome
    FROM (SELECT 1 AS n, run, outcome FROM after UNION ALL SELECT -1, run, outcome FROM before) m
    GROUP BY run, outcome HAVING sum(n) <> 0 ORDER BY run, outcome
    ON CONFLICT (run, outcome) DO UPDATE SET n = c.n + excluded.n;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER bulk_items_moved AFTER UPDATE ON bulk_items REFERENCING OLD TABLE AS before NEW TABLE AS after
    FOR EACH STATEMENT EXECUTE FUNCTION bulk_items_moved();

-- What is purged before its turn came is not decided any more: the run would wait for it for ever.
-- +goose StatementBegin
CREATE FUNCTION bulk_items_gone() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO bulk_counts AS c (n, run, outcome)
    SELECT sum(m.n)::bigint, m.run, m.outcome
    FROM (SELECT -1 AS n, run, 'planned' AS outcome FROM gone WHERE outcome = 'planned'
        UNION ALL SELECT 1, run, 'refused' FROM gone WHERE outcome = 'planned') m
    GROUP BY m.run, m.outcome ORDER BY m.run, m.outcome
    ON CONFLICT (run, outcome) DO UPDATE SET n = c.n + excluded.n;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER bulk_items_gone AFTER DELETE ON bulk_items REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION bulk_items_gone();

-- What a run decided on is verified as the dead letter goes on, whoever changes it. Episodes are saved before dead letters:
-- where the latest one names another dead letter, that took its place. What has ended stays as it ended.
-- +goose StatementBegin
CREATE FUNCTION dead_letter_verified() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    became text;
BEGIN
    became := CASE
        WHEN NEW.state = 'recovered' THEN 'recovered'
        WHEN NEW.state = 'superseded' THEN CASE WHEN (SELECT e.dead_letter FROM episodes e WHERE e.subject = NEW.subject
            ORDER BY e.number DESC LIMIT 1) NOT IN ('', NEW.id) THEN 'dead_again' ELSE 'superseded' END
        WHEN NEW.state = 'discarded' THEN CASE NEW.delivery WHEN 'pending' THEN 'decided' WHEN 'nobody' THEN 'nobody' ELSE 'discarded' END
        WHEN NEW.state = 'open' OR NEW.delivery = 'nobody' THEN 'nobody'
        WHEN NEW.delivery = 'taken' THEN 'taken'
        ELSE 'decided' END;
    UPDATE bulk_items i SET outcome = became, decided_at = NEW.reviewed_at, changed_at = (SELECT at FROM ledger_head WHERE one = 1)
    WHERE i.dead_letter = NEW.id AND i.run = NEW.run AND i.outcome IN ('planned', 'decided', 'taken') AND i.outcome <> became;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER dead_letter_verified AFTER UPDATE ON dead_letters FOR EACH ROW
    WHEN (NEW.run <> '' AND (OLD.run <> NEW.run OR OLD.state <> NEW.state OR OLD.delivery <> NEW.delivery))
    EXECUTE FUNCTION dead_letter_verified();

-- A run decides on a dead letter once: where somebody decided anew who knows of no runs, it is the run's no longer.
-- +goose StatementBegin
CREATE FUNCTION dead_letter_taken_over() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.run := '';
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER dead_letter_taken_over BEFORE UPDATE ON dead_letters FOR EACH ROW
    WHEN (OLD.run <> '' AND NEW.run = OLD.run AND NEW.reviewed_at <> OLD.reviewed_at) EXECUTE FUNCTION dead_letter_taken_over();

-- +goose StatementBegin
CREATE FUNCTION dead_letters_forgotten() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    DELETE FROM bulk_items i USING gone g WHERE i.dead_letter = g.id;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER dead_letters_forgotten AFTER DELETE ON dead_letters REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION dead_letters_forgotten();

-- +goose StatementBegin
CREATE FUNCTION bulk_run_gone() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    DELETE FROM bulk_items WHERE run = OLD.id;
    DELETE FROM bulk_counts WHERE run = OLD.id;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER bulk_run_gone AFTER DELETE ON bulk_runs FOR EACH ROW EXECUTE FUNCTION bulk_run_gone();

-- Who writes dead letters need not be the tables' owner: the triggers write as the owner, in this schema alone. Who may do
-- something with dead letters may do it with runs.
-- +goose StatementBegin
DO $$
DECLARE
    name text;
    may record;
BEGIN
    FOREACH name IN ARRAY ARRAY['bulk_items_added', 'bulk_items_moved', 'bulk_items_gone', 'dead_letter_verified', 'dead_letters_forgotten',
            'bulk_run_gone'] LOOP
        EXECUTE format('ALTER FUNCTION %I() SET search_path = %I, pg_temp', name, current_schema());
    END LOOP;
    FOR may IN SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS who, a.privilege_type AS what
        FROM pg_class c, aclexplode(c.relacl) a
        WHERE c.oid = 'dead_letters'::regclass AND a.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE') LOOP
        EXECUTE 'GRANT ' || may.what || ' ON bulk_runs, bulk_items TO ' || may.who;
        IF may.what = 'SELECT' THEN
            EXECUTE 'GRANT SELECT ON bulk_counts TO ' || may.who;
        END IF;
    END LOOP;
END $$;
-- +goose StatementEnd
