-- +goose Up
-- Sessions of the console that ended before their time, by a hash.

CREATE TABLE ended_sessions (
    until bigint NOT NULL, -- when it would have ended by itself
    id    bytea NOT NULL PRIMARY KEY
);

-- Who may use the outbox and need not be the tables' owner may use it too.
-- +goose StatementBegin
DO $$
DECLARE
    g record;
BEGIN
    FOR g IN SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS name, a.privilege_type AS privilege
        FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = 'outbox'::regclass AND a.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE') LOOP
        EXECUTE format('GRANT %s ON ended_sessions TO ', g.privilege) || g.name;
    END LOOP;
END $$;
-- +goose StatementEnd
