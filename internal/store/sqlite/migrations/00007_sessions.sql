-- +goose Up
-- Sessions of the console that ended before their time, by a hash.

CREATE TABLE ended_sessions (
    id    BLOB    NOT NULL PRIMARY KEY,
    until INTEGER NOT NULL -- when it would have ended by itself
) STRICT, WITHOUT ROWID;
