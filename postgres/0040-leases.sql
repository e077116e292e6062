-- Leases of named work: one of any number of processes does it at a time. See shared/io/leases.
-- `migrate` needs one before it looks at the files, so it runs this one then as well.
create table if not exists leases (
  name text primary key,
  -- Of one holding. It is a key, so taking a lease over waits for transactions that have the row
  -- `for key share`, and renewing it does not.
  token uuid not null unique,
  -- Host and process, for people.
  holder text not null,
  -- By the clock of the database.
  expires_at timestamptz not null
);
