-- Keys that may label.

alter table api_keys
  drop constraint scopes_are_known,
  add constraint scopes_are_known
    check (scopes <@ array['read', 'alerts:write', 'lists:write', 'labels:write']);
