-- +goose Up
-- How far each team has been told of its dead letters, by each channel. Nothing is written for a single dead letter.

CREATE TABLE notice_marks (
    record  bigint NOT NULL, -- of news: up to which they have been told
    at      bigint NOT NULL,
    team    text COLLATE "C" NOT NULL,
    channel text COLLATE "C" NOT NULL,
    kind    text COLLATE "C" NOT NULL,
    day     text COLLATE "C" NOT NULL, -- of digests: the last one's
    PRIMARY KEY (team, channel, kind)
);

-- Who may use the outbox and need not be the tables' owner may use it too.
-- +goose StatementBegin
DO $$
DECLARE
    g record;
BEGIN
    FOR g IN SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS name, a.privilege_type AS privilege
        FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = 'outbox'::regclass AND a.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE') LOOP
        EXECUTE format('GRANT %s ON notice_marks TO ', g.privilege) || g.name;
    END LOOP;
END $$;
-- +goose StatementEnd
