-- +goose Up
-- Dead letters as people work with them: a list, what was decided and by whom, whether a process waits. Workers of the
-- versions before go on working on this schema: they leave the new columns as they are, and triggers keep what they do not
-- know of. fingerprint is '-' in a row of theirs, and policy empty in one that is there already, until who opens the journal
-- next fills them in, some at a time: all at once would hold the workers up.

-- While a backup reads the table for minutes, the workers must not wait behind the change that waits for it: who brings
-- it tries again.
SET LOCAL lock_timeout = '500ms';
ALTER TABLE dead_letters
    ADD COLUMN answer         bigint  NOT NULL DEFAULT 0, -- record of the one on its way
    ADD COLUMN review_job_key bigint  NOT NULL DEFAULT 0,
    ADD COLUMN review_seen    bigint  NOT NULL DEFAULT 0,
    ADD COLUMN reviewed_at    bigint  NOT NULL DEFAULT 0,
    ADD COLUMN review_next    bigint  NOT NULL DEFAULT 0,
    ADD COLUMN review_discard boolean NOT NULL DEFAULT false,
    ADD COLUMN review_force   boolean NOT NULL DEFAULT false,
    ADD COLUMN review_fresh   boolean NOT NULL DEFAULT false,
    ADD COLUMN policy         text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN fingerprint    text COLLATE "C" NOT NULL DEFAULT '-',
    ADD COLUMN delivery       text NOT NULL DEFAULT '',
    ADD COLUMN review_reason  text NOT NULL DEFAULT '', -- redacted
    ADD COLUMN reviewed_by    text NOT NULL DEFAULT '';

-- Pages of a state; of a state, policy, team and reason; of a cause. Each is sought from the newest on.
CREATE INDEX dead_letters_by_state ON dead_letters (state, record, subject);
CREATE INDEX dead_letters_by_kind  ON dead_letters (state, policy, team, reason, record, subject);
CREATE INDEX dead_letters_by_cause ON dead_letters (fingerprint, state, team, reason, record);

-- How many there are of each kind, so that they need not be counted. Triggers keep it. It changes with every dead letter,
-- so that its pages have room for it, and are cleaned early.
CREATE TABLE dead_letter_counts (
    n      bigint NOT NULL,
    policy text COLLATE "C" NOT NULL,
    state  text COLLATE "C" NOT NULL,
    team   text NOT NULL,
    reason text NOT NULL,
    PRIMARY KEY (policy, state, team, reason)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);

INSERT INTO dead_letter_counts (n, policy, state, team, reason)
SELECT count(*), policy, state, team, reason FROM dead_letters GROUP BY policy, state, team, reason;

-- The same of each cause, for those who look for words of an error.
CREATE TABLE dead_letter_causes (
    n           bigint NOT NULL,
    fingerprint text COLLATE "C" NOT NULL,
    state       text COLLATE "C" NOT NULL,
    team        text NOT NULL,
    reason      text NOT NULL,
    PRIMARY KEY (fingerprint, state, team, reason)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);

INSERT INTO dead_letter_causes (n, fingerprint, state, team, reason)
SELECT count(*), fingerprint, state, team, reason FROM dead_letters GROUP BY fingerprint, state, team, reason;

-- A worker of a version before does not say of which policy a dead letter is.
-- +goose StatementBegin
CREATE FUNCTION dead_letter_named() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.policy := coalesce((SELECT s.policy FROM subjects s WHERE s.key = NEW.subject), '');
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER dead_letter_named BEFORE INSERT ON dead_letters FOR EACH ROW WHEN (NEW.policy = '') EXECUTE FUNCTION dead_letter_named();

-- +goose StatementBegin
CREATE FUNCTION dead_letters_born() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO dead_letter_counts AS c (n, policy, state, team, reason)
    SELECT count(*), policy, state, team, reason FROM born GROUP BY policy, state, team, reason
    ON CONFLICT (policy, state, team, reason) DO UPDATE SET n = c.n + excluded.n;
    INSERT INTO dead_letter_causes AS c (n, fingerprint, state, team, reason)
    SELECT count(*), fingerprint, state, team, reason FROM born GROUP BY fingerprint, state, team, reason
    ON CONFLICT (fingerprint, state, team, reason) DO UPDATE SET n = c.n + excluded.n;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER dead_letters_born AFTER INSERT ON dead_letters REFERENCING NEW TABLE AS born
    FOR EACH STATEMENT EXECUTE FUNCTION dead_letters_born();

-- +goose StatementBegin
CREATE FUNCTION dead_letters_moved() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO dead_letter_counts AS c (n, policy, state, team, reason)
    SELECT sum(n)::bigint, policy, state, team, reason
    FROM (SELECT 1 AS n, policy, state, team, reason FROM after UNION ALL SELECT -1, policy, state, team, reason FROM before) m
    GROUP BY policy, state, team, reason HAVING sum(n) <> 0
    ON CONFLICT (policy, state, team, reason) DO UPDATE SET n = c.n + excluded.n;
    INSERT INTO dead_letter_causes AS c (n, fingerprint, state, team, reason)
    SELECT sum(n)::bigint, fingerprint, state, team, reason
    FROM (SELECT 1 AS n, fingerprint, state, team, reason FROM after UNION ALL SELECT -1, fingerprint, state, team, reason FROM before) m
    GROUP BY fingerprint, state, team, reason HAVING sum(n) <> 0
    ON CONFLICT (fingerprint, state, team, reason) DO UPDATE SET n = c.n + excluded.n;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER dead_letters_moved AFTER UPDATE ON dead_letters REFERENCING OLD TABLE AS before NEW TABLE AS after
    FOR EACH STATEMENT EXECUTE FUNCTION dead_letters_moved();

-- What is purged is counted no longer, nor among the figures' running totals.
-- +goose StatementBegin
CREATE FUNCTION dead_letters_purged() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    UPDATE dead_letter_counts c SET n = c.n - g.n
    FROM (SELECT count(*) AS n, policy, state, team, reason FROM gone GROUP BY policy, state, team, reason) g
    WHERE c.policy = g.policy AND c.state = g.state AND c.team = g.team AND c.reason = g.reason;
    UPDATE dead_letter_causes c SET n = c.n - g.n
    FROM (SELECT count(*) AS n, fingerprint, state, team, reason FROM gone GROUP BY fingerprint, state, team, reason) g
    WHERE c.fingerprint = g.fingerprint AND c.state = g.state AND c.team = g.team AND c.reason = g.reason;
    UPDATE figures f SET value = f.value - g.n
    FROM (SELECT count(*) AS n, policy, state FROM gone GROUP BY policy, state) g
    WHERE f.slot = 0 AND f.bucket = 0 AND f.policy = g.policy AND f.name = 'dead_letters_' || g.state;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER dead_letters_purged AFTER DELETE ON dead_letters REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION dead_letters_purged();

-- Who writes dead letters need not be the tables' owner: the triggers count as the owner, in this schema alone; and who may
-- read dead letters may read how many there are.
-- +goose StatementBegin
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['dead_letters_born', 'dead_letters_moved', 'dead_letters_purged'] LOOP
        EXECUTE format('ALTER FUNCTION %I() SET search_path = %I, pg_temp', name, current_schema());
    END LOOP;
    FOR name IN SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
        FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = 'dead_letters'::regclass AND a.privilege_type = 'SELECT' LOOP
        EXECUTE 'GRANT SELECT ON dead_letter_counts, dead_letter_causes TO ' || name;
    END LOOP;
END $$;
-- +goose StatementEnd
