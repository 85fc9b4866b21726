-- +goose Up
-- How far each team has been told of its dead letters, by each channel. Nothing is written for a single dead letter.

CREATE TABLE notice_marks (
    team    TEXT    NOT NULL,
    channel TEXT    NOT NULL,
    kind    TEXT    NOT NULL,
    record  INTEGER NOT NULL, -- of news: up to which they have been told
    day     TEXT    NOT NULL, -- of digests: the last one's
    at      INTEGER NOT NULL,
    PRIMARY KEY (team, channel, kind)
) STRICT, WITHOUT ROWID;
