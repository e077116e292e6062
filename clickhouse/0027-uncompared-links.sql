-- Whether an install was compared with others when its phone was decided. One that its tenant's
-- bound left out is the first of its phone, until it is decided again.
alter table phone_links add column if not exists is_compared Bool default true;
