-- A rotation ends the webhook secret before it at once. The column `signs_until` stays for delivery
-- processes of the release before, and is empty.
update tenant_secrets set signs_until = null, sealed = null where signs_until is not null;
