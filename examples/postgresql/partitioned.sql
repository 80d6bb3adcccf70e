-- Tables of a trimtab store (layout 1) for many tenants and years: made once, before the first
-- replica starts; trimtab then makes none of its own.
--
--     psql -v ON_ERROR_STOP=1 -f examples/postgresql/partitioned.sql
--
-- Entries and originals are partitioned by the month in which they were written, and each month by
-- tenant; conversations and facts by tenant.  To forget a month:
--     DROP TABLE trimtab_entries_2026_11, trimtab_originals_2026_11;
-- What a conversation decided in a month that was dropped is decided anew (one cache miss), and its
-- originals are gone.  Run the block at the end each month, from cron or pg_cron.
BEGIN;
CREATE TABLE trimtab_conversations (
    tenant text, conversation text, used_at double precision NOT NULL,
    PRIMARY KEY (tenant, conversation)
) PARTITION BY HASH (tenant);
CREATE TABLE trimtab_facts (
    tenant text, name text, data bytea NOT NULL, PRIMARY KEY (tenant, name)
) PARTITION BY HASH (tenant);
CREATE TABLE trimtab_entries (
    place bigserial,
    tenant text NOT NULL, conversation text NOT NULL, id text NOT NULL, data bytea NOT NULL,
    month date NOT NULL DEFAULT date_trunc('month', now()),
    PRIMARY KEY (tenant, conversation, id, month)
) PARTITION BY RANGE (month);
CREATE INDEX trimtab_entries_of ON trimtab_entries (tenant, conversation, place);
CREATE TABLE trimtab_originals (
    number bigserial, tenant text, handle text, conversation text NOT NULL, data bytea NOT NULL,
    month date NOT NULL DEFAULT date_trunc('month', now()),
    PRIMARY KEY (tenant, handle, month)
) PARTITION BY RANGE (month);
CREATE INDEX trimtab_originals_of ON trimtab_originals (tenant, conversation);
CREATE TABLE trimtab_version (version integer NOT NULL);
INSERT INTO trimtab_version VALUES (1);

DO $$
DECLARE part integer; base text;
BEGIN
    FOREACH base IN ARRAY ARRAY['conversations', 'facts'] LOOP
        FOR part IN 0..3 LOOP
            EXECUTE format('CREATE TABLE trimtab_%s_%s PARTITION OF trimtab_%s '
                'FOR VALUES WITH (MODULUS 4, REMAINDER %s)', base, part, base, part);
        END LOOP;
    END LOOP;
END $$;

-- The partitions of this month and the next: again each month; what is there stays.
DO $$
DECLARE first date; ahead integer; part integer; base text; name text;
BEGIN
    FOREACH base IN ARRAY ARRAY['entries', 'originals'] LOOP
        FOR ahead IN 0..1 LOOP
            first := date_trunc('month', now()) + make_interval(months => ahead);
            name := format('trimtab_%s_%s', base, to_char(first, 'YYYY_MM'));
            CONTINUE WHEN to_regclass(name) IS NOT NULL;
            EXECUTE format('CREATE TABLE %s PARTITION OF trimtab_%s FOR VALUES FROM (%L) TO (%L) '
                'PARTITION BY HASH (tenant)', name, base, first, first + interval '1 month');
            FOR part IN 0..3 LOOP
                EXECUTE format('CREATE TABLE %s_%s PARTITION OF %s '
                    'FOR VALUES WITH (MODULUS 4, REMAINDER %s)', name, part, name, part);
            END LOOP;
        END LOOP;
    END LOOP;
END $$;
COMMIT;
