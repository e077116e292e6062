-- What a label that the tenant declared means: fraud or legitimate. Empty of the others, and of
-- labels from before there were declarations, which are fraud.
alter table labels_replica add column if not exists code_means LowCardinality(String) default '';
